"""A cluster's folder as a user has it, next to the live cluster that it is for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Network, ip_network
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.api import NODES, Api, Object
from tests.support import kustomize
from tests.support.forking import serve

CLUSTERS = Path(__file__).parents[2] / "clusters"


@dataclass
class Site:
    """One cluster: its folder below `clusters/` of a working directory of its own, and the kube-apiserver that it is applied to."""

    api: Api
    work: Path
    name: str
    version: str
    """The Cilium minor that it is compiled for: the one of the operator that runs."""
    said: str = field(default="", init=False)
    """What the last command printed."""

    @property
    def folder(self) -> Path:
        """The cluster's folder."""
        return self.work / "clusters" / self.name

    @property
    def rendered(self) -> Path:
        """What the compiler wrote."""
        return self.folder / "rendered"

    @classmethod
    def example(cls, api: Api, work: Path, name: str, version: str) -> Site:
        """Copy one of the examples, for another Cilium minor than its own where need be, and without what it is rendered to.
        The address space is beside it, for those that ask.
        """
        site = cls(api, work, name, version)
        shutil.copytree(CLUSTERS / "fleet", site.folder.parent / "fleet")
        shutil.copytree(CLUSTERS / name, site.folder, ignore=shutil.ignore_patterns("rendered"))
        site.rendered.mkdir()  # a lock has one beside it
        site.edit(
            lambda document: (
                document["spec"]["cilium"].update(version=version) if document["kind"] == "Cluster" else None
            )
        )
        return site

    @classmethod
    def made(cls, api: Api, work: Path, documents: Iterable[Object], version: str) -> Site:
        """Write documents, a Cluster among them, as a cluster's folder."""
        every = [dict(each) for each in documents]
        cluster = next(each for each in every if each["kind"] == "Cluster")
        cluster["spec"] = {**cluster["spec"], "cilium": {**cluster["spec"]["cilium"], "version": version}}
        site = cls(api, work, str(cluster["metadata"]["name"]), version)
        site.folder.mkdir(parents=True)
        for index, document in enumerate(every):
            site.write(f"{index:02}-{document['kind'].lower()}.yaml", document)
        return site

    # Its files.

    def write(self, file: str, *documents: Object) -> None:
        """Write an input file."""
        (self.folder / file).write_text(dumped(documents))

    def edit(self, change: Callable[[Object], object]) -> None:
        """Change input documents where they stand."""
        for file in sorted(self.folder.glob("*.yaml")):
            documents = loaded(file.read_text())
            for document in documents:
                change(document)
            file.write_text(dumped(documents))

    def documents(self) -> list[Object]:
        """Read the input documents."""
        return [
            document for file in sorted(self.folder.glob("*.yaml")) for document in loaded(file.read_text())
        ]

    @property
    def cluster(self) -> Object:
        """The Cluster's spec."""
        files = [
            text
            for file in sorted(self.folder.glob("*.yaml"))
            if "kind: Cluster" in (text := file.read_text()) or '"Cluster"' in text
        ]
        return dict(
            next(each["spec"] for text in files for each in loaded(text) if each["kind"] == "Cluster")
        )

    def rendering(self, *paths: str) -> list[Object]:
        """Read rendered documents, by globs below `rendered/`."""
        return [
            each
            for path in paths
            for file in sorted(self.rendered.glob(path))
            for each in loaded(file.read_text())
        ]

    @property
    def config(self) -> dict[str, str]:
        """The keys of cilium-config."""
        return dict(self.rendering("cilium/configmap.yaml")[0]["data"])

    @property
    def arguments(self) -> list[str]:
        """What the operator's command line needs besides, as the Helm values have it."""
        return list(self.rendering("cilium/helm-values.yaml")[0].get("operator", {}).get("extraArgs", ()))

    def lock(self, state: str = "held") -> dict[str, list[tuple[str, str]]]:
        """Read pools and blocks from the lock, by node: held ones, or pending, quarantined or released ones."""
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for row in (self.folder / "ipam.lock").read_text().splitlines()[1:]:
            line = json.loads(row)
            if (
                next((each for each in ("released", "quarantined", "pending") if each in line), "held")
                == state
            ):
                found[line["node"]].append((line.get("pool", ""), line["block"]))
        return dict(found)

    # Commands.

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run ipamc as a user would, and give what it says; fail if it exits otherwise."""
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1795219200", "NO_COLOR": "1"}
        command = [str(serve() / "ipamc"), *arguments]
        done = subprocess.run(
            command, cwd=self.work, env=environment, capture_output=True, text=True, check=False
        )
        self.said = done.stdout + done.stderr
        assert done.returncode == code, self.said
        return self.said

    def compile(self, *options: str, code: int = 0) -> str:
        """Run `ipamc compile`."""
        return self.run("compile", self.name, *options, code=code)

    def build(self, path: str = "") -> str:
        """Build what was rendered, or a part of it, with kustomize."""
        return kustomize.build(self.rendered / path)

    def apply(self, path: str = "") -> None:
        """Do what the README says: `kustomize build … | kubectl apply --server-side …`."""
        self.api.applied(self.build(path))

    # The live cluster.

    def join(self) -> None:
        """Let the nodes of the inventory join, and export the inventory anew: the uids are the server's own."""
        listed = [
            each for document in self.documents() if document["kind"] == "List" for each in document["items"]
        ]
        short = [
            each
            for document in self.documents()
            if document["kind"] == "NodeInventory"
            for each in document["nodes"]
        ]
        live = [
            {"metadata": {"name": each["name"], "labels": each.get("labels", {})}}
            for each in short
            if not each.get("planned")
        ]
        nodes = [
            {**each, "metadata": {key: value for key, value in each["metadata"].items() if key != "uid"}}
            for each in listed
        ]
        self.api.create(NODES, *live, *nodes)
        self.export()

    def export(self) -> None:
        """Export the nodes of the live cluster into the inventory, as `kubectl get nodes -o json` gives them."""
        listed = any(document["kind"] == "List" for document in self.documents())
        if listed:
            done = self.api.kubectl("get", "nodes", "-o", "json")
            assert done.returncode == 0, done.stderr
            self.edit(
                lambda document: (
                    document.update(json.loads(done.stdout)) if document["kind"] == "List" else None
                )
            )
        uids = {name: each["metadata"]["uid"] for name, each in self.api.items(NODES).items()}
        for document in self.documents():
            if document["kind"] == "NodeInventory":
                self.edit(lambda each: _take_uids(each, uids))
                break


def _take_uids(document: Object, uids: Mapping[str, str]) -> None:
    for node in document.get("nodes", ()):
        if node["name"] in uids:
            node["uid"] = uids[node["name"]]


def loaded(text: str) -> list[Object]:
    """Read the documents of a YAML stream."""
    return [
        each
        for each in yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        if each is not None
    ]


def dumped(documents: Iterable[Any]) -> str:
    """Write documents as a YAML stream."""
    return "---\n".join(json.dumps(each) + "\n" for each in documents)


def by_address(blocks: Iterable[str]) -> list[str]:
    """Sort CIDRs: IPv4 first, then by address."""
    return sorted(blocks, key=lambda text: (ip_network(text).version, int(ip_network(text).network_address)))


def second_family(site: Site) -> None:
    """Write IPv6 into the Cluster and every pool from which somebody gives blocks."""
    numbers, adopts = count(), site.cluster["ipam"].get("operator") == "adopt"

    def change(document: Object) -> None:
        if document["kind"] == "Cluster":
            document["spec"]["ipFamilies"] = ["IPv4", "IPv6"]
        if document["kind"] == "IPPool" and (adopts or not document["spec"].get("unlisted")):
            cidr = str(IPv6Network(f"fd00:0:{next(numbers)}::/116"))
            document["spec"]["ipv6"] = {"cidrs": [cidr], "blockSize": 122}

    site.edit(change)
