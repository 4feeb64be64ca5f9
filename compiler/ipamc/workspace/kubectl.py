"""One cluster, reached by kubectl and kustomize: `ipamc ci apply` works through this module alone.

No secret is an argument of a command.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from ipamc.read.rendered import identity
from ipamc.review.live.blocks import Pod
from ipamc.review.live.config import CONFIG, OPERATOR
from ipamc.review.live.objects import NODE, Object, name_of
from ipamc.review.live.rights import CILIUM, RESOURCES
from ipamc.workspace import shapes
from ipamc.workspace.environment import command, program, variable
from ipamc.workspace.shapes import decoded
from ipamc.workspace.trouble import Trouble

FEW = 8
"""The most nodes whose pods are asked for one by one; for more, all pods are listed once."""
AT_ONCE = 100
"""Names in one `kubectl delete`."""
LONGEST = 600
"""Seconds that one run of kubectl or kustomize may take; `ipamc ci apply --help` says so."""

CRDS = {kind: f"{resource}.{CILIUM}" for kind, resource in RESOURCES.items()}
"""The CRD of each kind; kubectl knows the kind by this name too."""


def _name_context(name: str) -> str:
    """Return how a context gets the name that ipamc uses: the cluster's."""
    return f"a context is called as the cluster: kubectl config rename-context CONTEXT {shlex.quote(name)}"


class Forbidden(Trouble):
    """The credentials may not do this."""


class Applied(Struct, frozen=True, kw_only=True):
    """The answer to `kubectl apply`."""

    refused: Sequence[Object]
    """Those of the objects that the apiserver did not take."""
    problem: str
    """What kubectl complains of; "" where it exits with 0."""


class Kube(Struct, frozen=True, kw_only=True):
    """The cluster that a context of the kubeconfig leads to."""

    context: str
    kubectl: tuple[str, ...] = field(default_factory=lambda: tuple(command("KUBECTL", "kubectl")))

    def build(self, folder: str) -> str:
        """Return what a kustomization builds to. Raises Trouble where it does not build."""
        if variable("KUSTOMIZE") or program("kustomize"):
            builder = [*command("KUSTOMIZE", "kustomize"), "build"]
        else:
            builder = [*self.kubectl, "kustomize"]
        code, text, complaint = _run([*builder, folder])
        if code:
            raise Trouble(f"{folder} does not build: {complaint.strip()}")
        return text

    def wait_for_crds(self, crds: Sequence[str], seconds: int) -> None:
        """Wait until the cluster has these CRDs. Raises Trouble after `seconds`.

        In a new cluster, Cilium's operator registers them when it starts.
        """
        end = time.monotonic() + seconds
        established = '.status.conditions[?(@.type=="Established")].status'
        columns = f"custom-columns=NAME:.metadata.name,ESTABLISHED:{established}"
        while crds:  # not `kubectl wait`, which must be allowed to list and watch
            code, said, complaint = self._ask("get", "crds", *crds, "--no-headers", "-o", columns)
            rows = (row.split() for row in said.splitlines())
            missing = set(crds) - {row[0] for row in rows if row[1:] == ["True"]}
            if not missing:
                return
            # kubectl has one exit code for all failures. No such context, no permission, no route: waiting does not help.
            if code and "NotFound" not in complaint:
                raise Trouble(f"the cluster does not answer: {complaint.strip()}")
            if time.monotonic() > end:
                raise Trouble(
                    f"{', '.join(sorted(missing))}: not there after {seconds} seconds; is Cilium installed? {complaint.strip()}"
                )
            time.sleep(1)

    def apply(self, objects: Sequence[Object]) -> Applied:
        """Apply objects, server-side, without --force-conflicts.

        As one List: kubectl before 1.33 reads no JSON documents with `---` between them.
        """
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        code, said, complaint = self._ask(
            "apply", "--server-side", "--field-manager=ipamc", "-f", "-", stdin=text
        )
        lines = (line for line in said.splitlines() if line.endswith("serverside-applied"))
        named = (line.split()[0].partition("/") for line in lines)
        taken = {(resource.partition(".")[0], name) for resource, _, name in named}
        refused = [each for each in objects if (str(each["kind"]).lower(), name_of(each)) not in taken]
        problem = complaint.strip() or f"kubectl exits with {code}"
        return Applied(refused=refused, problem=problem if code else "")

    def flags(self, namespace: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Return ConfigMap cilium-config and Deployment cilium-operator, None for what is not there."""
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
        """Return the objects of a custom resource by identity, with managed fields.

        Nothing where the cluster has no such kind.
        """
        text = self.read(f"{kind}s", "get", CRDS[kind], "-A", "--show-managed-fields", "-o", "json") or "{}"
        items = decoded(f"{kind}s", text, _list_of(shapes.KINDS.get(kind, shapes.ANY))).get("items")
        if odd := next((item["kind"] for item in items or () if item["kind"] != kind), None):
            raise Trouble(f"{kind}s: the cluster answers with a {odd}")
        return {identity(item): item for item in items or ()}

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Return the Nodes by identity, with what ipamc needs of them: whole Nodes are large."""
        fields = (
            "metadata.name",
            "metadata.uid",
            "spec.unschedulable",
            "spec.podCIDRs",
            "metadata.annotations",
        )
        found = {}
        for name, uid, cordoned, pod_cidrs, notes in self._rows("Nodes", fields, "get", "nodes"):
            cidrs = decoded("Nodes", pod_cidrs or "[]", list[str])
            node = {
                "kind": NODE,
                "metadata": {
                    "name": name,
                    "uid": uid,
                    "annotations": decoded("Nodes", notes or "{}", dict[str, str]),
                },
                "spec": {
                    "unschedulable": cordoned == "true",
                    "podCIDRs": cidrs,
                    "podCIDR": cidrs[0] if cidrs else "",  # the apiserver keeps it the first one
                },
            }
            found[identity(node)] = node
        return found

    def pods(self, nodes: Collection[str]) -> dict[str, list[Pod]]:
        """Return the pods of some nodes that run and have addresses of their own, by node.

        A call for each of a few nodes, one call for all pods where there are many.
        """
        fields = ("spec.nodeName", "spec.hostNetwork", "metadata.ownerReferences", "status.podIPs")
        running = "status.phase!=Succeeded,status.phase!=Failed"
        several = len(nodes) <= FEW
        selectors = [f"{running},spec.nodeName={node}" for node in sorted(nodes)] if several else [running]
        found: dict[str, list[Pod]] = defaultdict(list)
        for selector in selectors:
            asked = ("get", "pods", "-A", "--field-selector", selector)
            for node, on_host, owned_by, addresses in self._rows("pods", fields, *asked):
                if node in nodes and on_host != "true":
                    owners = decoded("pods", owned_by or "[]", list[shapes.Owner])
                    every = [
                        each.get("ip") for each in decoded("pods", addresses or "[]", list[shapes.PodIp])
                    ]
                    stays = any(owner.get("kind") in {"DaemonSet", NODE} for owner in owners)
                    found[node].append(Pod(node=node, addresses=tuple(filter(None, every)), stays=stays))
        return found

    def delete(self, kind: str, namespace: str, names: Sequence[str]) -> str:
        """Delete objects of a custom resource; return what went wrong, or ""."""
        where = ("-n", namespace) if namespace else ()
        problems = []
        for start in range(0, len(names), AT_ONCE):
            code, _, complaint = self._ask(
                "delete",
                CRDS[kind],
                *where,
                "--ignore-not-found",
                "--wait=false",
                *names[start : start + AT_ONCE],
            )
            problems += [complaint.strip()] if code else []
        return "; ".join(problems)

    def _rows(self, what: str, fields: Sequence[str], *arguments: str) -> Iterator[list[str]]:
        """Yield these fields of each item that kubectl lists.

        kubectl prints a text as it is, so only texts may be asked for that the apiserver allows no tab and no
        line break in. Lists and mappings are JSON, which has none.
        """
        line = '{"\\t"}'.join(f"{{.{field}}}" for field in fields)
        template = f'{{range .items[*]}}{line}{{"\\n"}}{{end}}'
        for row in self.read(what, *arguments, "-o", f"jsonpath={template}").split("\n"):
            values = row.split("\t")
            if row and len(values) != len(fields):
                raise Trouble(
                    f"{what}: kubectl prints {len(values)} fields instead of {len(fields)}: {row:.80}"
                )
            if row:
                yield values

    def read(self, what: str, *arguments: str, limit: float = LONGEST) -> str:
        """Return what kubectl prints, "" where the cluster has no such kind. Raises Forbidden and Trouble."""
        code, text, complaint = self._ask(*arguments, limit=limit)
        if not code:
            return text
        if (
            "the server doesn't have a resource type" in complaint
            or "could not find the requested" in complaint
        ):
            return ""
        kind = Forbidden if "(Forbidden)" in complaint else Trouble
        context = f"; {_name_context(self.context)}" if "context" in complaint else ""
        raise kind(f"{what} cannot be read: {complaint.strip()}{context}")

    def _ask(self, *arguments: str, stdin: str = "", limit: float = LONGEST) -> tuple[int, str, str]:
        return _run([*self.kubectl, "--context", self.context, *arguments], stdin, limit)


def _list_of(shape: Any) -> Any:
    return msgspec.defstruct("List", [("items", list[shape] | None, None)])


def _run(words: Sequence[str], stdin: str = "", limit: float = LONGEST) -> tuple[int, str, str]:
    """Run a program; return its exit code and what it prints. Raises Trouble where it does not run or end."""
    try:
        done = subprocess.run(  # noqa: S603 - no shell
            words, input=stdin.encode(), capture_output=True, check=False, timeout=limit
        )
    except subprocess.TimeoutExpired:
        raise Trouble(f"{words[0]} did not end within {limit:g} seconds") from None
    except OSError as problem:
        reason = (problem.strerror or type(problem).__name__).lower()
        raise Trouble(f"{words[0]} cannot be run: {reason}; see $KUBECTL and $KUSTOMIZE") from None
    try:
        return done.returncode, done.stdout.decode(), done.stderr.decode("utf-8", "replace")
    except UnicodeDecodeError:
        raise Trouble(f"{words[0]} prints what is not UTF-8") from None
