"""One cluster, reached by kubectl and kustomize: `ipamc apply` works through this module alone.

No secret is an argument of a command. CiliumNodes are read once, before an apply; then one watch keeps them
up to date. A large cluster has a job for each shard: repeated reads by all these jobs would overload the
apiserver. `kubectl get --watch` reads all of them first.
"""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct, field

from ipamc.model.admission import POLICIES
from ipamc.model.cilium.operator_list import CONFIG, OPERATOR
from ipamc.model.limits import (
    KUBECTL_SECONDS,
    NAMES_IN_COMMAND,
    NODES_LISTED_ALONE,
    RETRY_PAUSE,
    WATCH_EARLY,
    WATCH_GRACE,
    WATCH_PAUSE,
)
from ipamc.read.dump.shapes import PodIp
from ipamc.read.rendered import identity
from ipamc.review.live.apply import Pod
from ipamc.review.live.objects import CILIUM_NODE, MANAGER, NODE, Object, name_of
from ipamc.review.live.rights import ADMISSION, CILIUM, RESOURCES
from ipamc.workspace import shapes
from ipamc.workspace.environment import command, program, variable
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.shapes import checked, decoded

CRDS = {kind: f"{resource}.{CILIUM}" for kind, resource in RESOURCES.items()}
"""The CRD of each kind; kubectl knows the kind by this name too."""
LISTED = {**CRDS, **{kind: f"{resource}.{ADMISSION}" for kind, resource in POLICIES.items()}}
"""The rendered kinds that are listed whole, by the names that kubectl has for them."""

PATH = "/apis/cilium.io/v2/ciliumnodes"  # every Cilium since 1.6 serves CiliumNodes in this version alone
SERVER = "{.clusters[0].cluster.server}"  # the path of the apiserver's URL in a kubeconfig

_NO_SUCH_KIND = ("the server doesn't have a resource type", "could not find the requested")


Answer = TypeVar("Answer")


class Forbidden(EnvironmentFailure):
    """The credentials may not do this."""


def if_allowed(read: Callable[[], Answer]) -> Answer | None:
    """Return the result of `read`; None if the credentials may not read it."""
    try:
        return read()
    except Forbidden:
        return None


class Applied(Struct, frozen=True, kw_only=True):
    """The objects that the apiserver refused, and kubectl's complaint; "" where it exits with 0."""

    refused: Sequence[Object]
    problem: str


class Kube(Struct, frozen=True, kw_only=True):
    """The cluster that a context of the kubeconfig leads to."""

    name: str
    context: str
    kubectl: tuple[str, ...] = field(default_factory=lambda: tuple(command("KUBECTL", "kubectl")))

    def build(self, folder: str) -> str:
        """Return the output of a kustomization's build. Raises EnvironmentFailure if the build fails."""
        if variable("KUSTOMIZE") or program("kustomize"):
            builder = [*command("KUSTOMIZE", "kustomize"), "build"]
        else:
            builder = [*self.kubectl, "kustomize"]
        code, text, complaint = _run([*builder, folder])
        if code:
            raise EnvironmentFailure(f"{folder} does not build: {complaint.strip()}")
        return text

    def wait_for_crds(self, crds: Sequence[str], seconds: int) -> None:
        """Wait for CRDs, which a new Cilium operator registers. Raises EnvironmentFailure after `seconds`."""
        end = time.monotonic() + seconds
        established = '.status.conditions[?(@.type=="Established")].status'
        columns = f"custom-columns=NAME:.metadata.name,ESTABLISHED:{established}"
        while crds:  # not `kubectl wait`, which must be allowed to list and watch
            code, said, complaint = self._ask("get", "crds", *crds, "--no-headers", "-o", columns)
            rows = (row.split() for row in said.splitlines())
            missing = set(crds) - {row[0] for row in rows if row[1:] == ["True"]}
            if not missing:
                return
            # One exit code is for all failures. Without context, permission or route, waiting is no help.
            if code and "NotFound" not in complaint:
                raise EnvironmentFailure(f"the cluster does not answer: {complaint.strip()}")
            if time.monotonic() > end:
                late = f"still missing after {seconds} seconds; is Cilium installed? {complaint.strip()}"
                raise EnvironmentFailure(f"{', '.join(sorted(missing))}: {late}")
            time.sleep(1)

    def apply(
        self,
        objects: Sequence[Object],
        is_late: Callable[[str], bool] = lambda _: False,
        seconds: int = 0,
        *,
        force: bool = False,
    ) -> Applied:
        """Apply objects server-side, as one List: kubectl before 1.33 reads no JSON stream.
        Refused ones are sent again while `is_late` of kubectl's complaint, for up to `seconds`.
        """
        end = time.monotonic() + seconds
        while True:
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
            forced = ("--force-conflicts",) if force else ()
            options = ("--server-side", f"--field-manager={MANAGER}", *forced)
            code, said, complaint = self._ask("apply", *options, "-f", "-", stdin=text)
            lines = (line for line in said.splitlines() if line.endswith("serverside-applied"))
            named = (line.split()[0].partition("/") for line in lines)
            taken = {(resource.partition(".")[0], name) for resource, _, name in named}
            refused = [each for each in objects if (str(each["kind"]).lower(), name_of(each)) not in taken]
            if not refused or not is_late(complaint) or time.monotonic() > end:
                problem = complaint.strip() or f"kubectl exits with {code}"
                return Applied(refused=refused, problem=problem if code else "")
            objects = refused
            time.sleep(RETRY_PAUSE)

    def dry_run(self, document: Object, wanted: str, seconds: int) -> str:
        """Apply an object in a server dry run until the answer contains `wanted`, or `seconds` passed.
        Return the last output of kubectl. A missing right or kind ends the wait: time does not change it.
        """
        options = ("--server-side", "--dry-run=server", f"--field-manager={MANAGER}", "-o", "json")
        end = time.monotonic() + seconds
        while True:
            _, said, complaint = self._ask("apply", *options, "-f", "-", stdin=json.dumps(document))
            never = "(Forbidden)" in complaint or "no matches for kind" in complaint
            if never or wanted in said + complaint or time.monotonic() > end:
                return said + complaint
            time.sleep(RETRY_PAUSE)

    def flags(self, namespace: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Return ConfigMap cilium-config and Deployment cilium-operator, None for a missing one."""
        return (
            self._one(namespace, "configmaps", CONFIG, shapes.ConfigMap),
            self._one(namespace, "deployments.apps", OPERATOR, shapes.Deployment),
        )

    def _one(self, namespace: str, kind: str, name: str, shape: Any) -> dict[str, Any] | None:
        what = f"{kind} {name} in {namespace}"
        text = self.read(what, "get", kind, name, "-n", namespace, "--ignore-not-found", "-o", "json")
        found: dict[str, Any] | None = decoded(what, text, shape) if text.strip() else None
        return found

    def listed(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the objects of a kind by identity; none if the cluster has no such kind."""
        text = self.read(f"{kind}s", "get", LISTED[kind], "-A", "--show-managed-fields", "-o", "json") or "{}"
        shape: Any = shapes.KINDS.get(kind, shapes.ANY)
        answer = msgspec.defstruct("List", [("items", list[shape] | None, None)])
        items = decoded(f"{kind}s", text, answer).get("items")
        if odd := next((item["kind"] for item in items or () if item["kind"] != kind), None):
            raise EnvironmentFailure(f"{kind}s: the cluster returns a {odd}")
        return {identity(item): item for item in items or ()}

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Return the Nodes by identity, with only the fields that ipamc needs: whole Nodes are large."""
        metadata, spec = ("metadata.name", "metadata.uid"), ("spec.unschedulable", "spec.podCIDRs")
        fields = (*metadata, *spec, "metadata.annotations")
        found = {}
        for name, uid, cordoned, pod_cidrs, text in self._rows("Nodes", fields, "get", "nodes"):
            cidrs = decoded("Nodes", pod_cidrs or "[]", list[str])
            notes = decoded("Nodes", text or "{}", dict[str, str])
            node = {
                "kind": NODE,
                "metadata": {"name": name, "uid": uid, "annotations": notes},
                # The apiserver keeps podCIDR equal to the first of podCIDRs.
                "spec": {"unschedulable": cordoned == "true", "podCIDRs": cidrs, "podCIDR": [*cidrs, ""][0]},
            }
            found[identity(node)] = node
        return found

    def pods(self, nodes: Collection[str]) -> dict[str, list[Pod]]:
        """Return nodes' running pods that have their own address, by node, in one call or one per node."""
        fields = ("spec.nodeName", "spec.hostNetwork", "metadata.ownerReferences", "status.podIPs")
        running = "status.phase!=Succeeded,status.phase!=Failed"
        several = len(nodes) <= NODES_LISTED_ALONE
        selectors = [f"{running},spec.nodeName={node}" for node in sorted(nodes)] if several else [running]
        found: dict[str, list[Pod]] = defaultdict(list)
        for selector in selectors:
            asked = ("get", "pods", "-A", "--field-selector", selector)
            for node, on_host, owned_by, addresses in self._rows("pods", fields, *asked):
                if node in nodes and on_host != "true":
                    owners = decoded("pods", owned_by or "[]", list[shapes.Owner])
                    stays = any(owner.get("kind") in {"DaemonSet", NODE} for owner in owners)
                    pod_ips = decoded("pods", addresses or "[]", list[PodIp])
                    every = tuple(ip for each in pod_ips if (ip := each.get("ip")))
                    found[node].append(Pod(node=node, addresses=every, stays=stays))
        return found

    def delete(self, kind: str, namespace: str, names: Sequence[str]) -> str:
        """Delete objects of a kind; return the error, or ""."""
        asked = ["delete", LISTED[kind], "--ignore-not-found", "--wait=false"]
        asked += ["-n", namespace] if namespace else []
        problems = []
        for start in range(0, len(names), NAMES_IN_COMMAND):
            code, _, complaint = self._ask(*asked, *names[start : start + NAMES_IN_COMMAND])
            problems += [complaint.strip()] if code else []
        return "; ".join(problems)

    def _rows(self, what: str, fields: Sequence[str], *arguments: str) -> Iterator[list[str]]:
        """Yield fields of each item of a list: JSON, or text that cannot contain a line break."""
        line = '{"\\t"}'.join(f"{{.{field}}}" for field in fields)
        template = f'{{range .items[*]}}{line}{{"\\n"}}{{end}}'
        for row in self.read(what, *arguments, "-o", f"jsonpath={template}").split("\n"):
            values = row.split("\t")
            if row and len(values) != len(fields):
                number = f"{len(values)} fields instead of {len(fields)}"
                raise EnvironmentFailure(f"{what}: kubectl prints {number}: {row:.80}")
            if row:
                yield values

    def read(self, what: str, *arguments: str, limit: float = KUBECTL_SECONDS) -> str:
        """Return the output of kubectl; "" if the cluster has no such kind.
        Raises Forbidden and EnvironmentFailure.
        """
        code, text, complaint = self._ask(*arguments, limit=limit)
        if not code:
            return text
        if any(said in complaint for said in _NO_SUCH_KIND):
            return ""
        kind = Forbidden if "(Forbidden)" in complaint else EnvironmentFailure
        rename = f"kubectl config rename-context CONTEXT {shlex.quote(self.name)}"
        name = f"; set spec.context of the cluster, or rename the context: {rename}"
        context = name if "context" in complaint else ""
        raise kind(f"{what} cannot be read: {complaint.strip()}{context}")

    def _ask(self, *arguments: str, stdin: str = "", limit: float = KUBECTL_SECONDS) -> tuple[int, str, str]:
        return _run([*self.kubectl, "--context", self.context, *arguments], stdin, limit)


def _run(words: Sequence[str], stdin: str = "", limit: float = KUBECTL_SECONDS) -> tuple[int, str, str]:
    """Run a program; return exit code, stdout and stderr.
    Raises EnvironmentFailure if it does not start or end.
    """
    try:
        done = subprocess.run(  # noqa: S603 - no shell
            words, input=stdin.encode(), capture_output=True, check=False, timeout=limit
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentFailure(f"{words[0]} did not end within {limit:g} seconds") from None
    except OSError as problem:
        reason = (problem.strerror or type(problem).__name__).lower()
        raise EnvironmentFailure(f"{words[0]} cannot be run: {reason}; see $KUBECTL and $KUSTOMIZE") from None
    try:
        return done.returncode, done.stdout.decode(), done.stderr.decode("utf-8", "replace")
    except UnicodeDecodeError:
        raise EnvironmentFailure(f"{words[0]} prints text that is not UTF-8") from None


class CiliumNodes:
    """The CiliumNodes of a cluster by identity, as of the last `follow`."""

    def __init__(self, kube: Kube, live: Mapping[str, Mapping[str, Any]], version: str) -> None:
        """Begin with `live`, read after `version_of` returned `version` ("" if watching is impossible)."""
        self._kube = kube
        self._version = version
        self._may_watch = bool(version)
        self.live = {key: document for key, document in live.items() if document["kind"] == CILIUM_NODE}
        self.refused = ""
        """What the apiserver says if the role of this job may not watch; "" if it may."""

    def follow(self, seconds: float) -> None:
        """Keep the objects up to date for some seconds. Raises EnvironmentFailure if they cannot be read at
        the end. A watch ends early if the apiserver restarts or has forgotten the version (410 Gone): then
        all are listed again, and watched from there. If a watch is impossible, they are listed at the end.
        """
        end = time.monotonic() + seconds
        current = False
        while self._may_watch and not current and (left := end - time.monotonic()) > 0:
            try:
                if not self._version:
                    self._read()
                self._watch(left)
                current = True
            except Forbidden as problem:
                self._may_watch, self.refused = False, str(problem)
            except EnvironmentFailure:
                self._version = ""
                time.sleep(max(0.0, min(WATCH_PAUSE, end - time.monotonic())))
        if not current:
            time.sleep(max(0.0, end - time.monotonic()))
            self._read()

    def _read(self) -> None:
        self._version = version_of(self._kube) if self._may_watch else ""
        self.live = dict(self._kube.listed(CILIUM_NODE))

    def _watch(self, seconds: float) -> None:
        """Record the changes of some seconds. Raises EnvironmentFailure if the watch ends before."""
        start, whole = time.monotonic(), math.ceil(seconds)
        query = f"watch=1&resourceVersion={quote(self._version)}&timeoutSeconds={whole}"
        what = "changes of CiliumNodes"
        text = self._kube.read(what, "get", "--raw", f"{PATH}?{query}", limit=whole + WATCH_GRACE)
        for line in text.splitlines():
            event = decoded(what, line, shapes.Event)
            kind, document = event["type"], event["object"]
            if kind == "ERROR":
                raise EnvironmentFailure(f"{what}: {document.get('message')}")
            if checked(what, document)["kind"] != CILIUM_NODE:
                raise EnvironmentFailure(f"{what}: the cluster returns a {document['kind']}")
            self._version = document["metadata"].get("resourceVersion") or ""
            if kind == "DELETED":
                self.live.pop(identity(document), None)
            else:
                self.live[identity(document)] = document
        if time.monotonic() - start < seconds - WATCH_EARLY:
            raise EnvironmentFailure("the watch of CiliumNodes ended early")


def version_of(kube: Kube) -> str:
    """Return the version from which CiliumNodes can be watched; "" if they cannot: one small request.
    They cannot if the URL of the apiserver has a path, as behind Rancher: kubectl before 1.35 leaves it out
    of a raw request, which may then reach another cluster.
    """
    url = kube.read("the kubeconfig", "config", "view", "--minify", "-o", f"jsonpath={SERVER}")
    if urlsplit(url.strip()).path.strip("/"):
        return ""
    text = kube.read("CiliumNodes", "get", "--raw", f"{PATH}?limit=1")
    found = decoded("CiliumNodes", text or "{}", shapes.Versioned)
    return str((found.get("metadata") or {}).get("resourceVersion") or "")
