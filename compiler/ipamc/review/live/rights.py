"""The RBAC rules that the jobs of a pipeline need in a cluster: no verb more.

Must match `workspace/kubectl.py`, which makes all requests of the jobs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from ipamc.model.admission import POLICIES
from ipamc.model.cilium.operator_list import AGENT, CONFIG, KUBEADM, OPERATOR
from ipamc.model.cilium.support import NODE_CONFIG_CRD
from ipamc.review.live.objects import CILIUM_NODE, NODE, NODE_CONFIG, POOL, PROBED, Object, node_of, probed

CILIUM = "cilium.io"
ADMISSION = "admissionregistration.k8s.io"
RESOURCES = {CILIUM_NODE: "ciliumnodes", POOL: "ciliumpodippools", NODE_CONFIG: "ciliumnodeconfigs"}
"""The custom resources that are rendered, by kind."""


class Right(Struct, frozen=True, kw_only=True, order=True):
    """Verbs on one resource. With `namespace` it is a rule of a Role there, else of a ClusterRole."""

    namespace: str = ""
    group: str
    resource: str
    names: tuple[str, ...] = ()  # the only objects that it applies to; empty for all
    verbs: tuple[str, ...]


def apply_rights(objects: Collection[Object], namespace: str, mode: str, *, prune: bool) -> list[Right]:
    """Return the rights that `ipamc apply` needs, with and without `--repair`.
    `objects` are the rendered ones, `namespace` is Cilium's, `mode` is `ipam` of cilium-config: two modes
    apply CiliumNodes, including ones that are not rendered yet. Only kubelets create Nodes.
    """
    kinds = {document["kind"] for document in objects}
    if mode in {"cluster-pool", "crd"}:
        kinds.add(CILIUM_NODE)
    of_nodes = CILIUM_NODE in kinds or any(map(node_of, objects))
    rules = [
        Right(group="", resource="nodes", verbs=("list", "patch") if NODE in kinds else ("list",)),
        Right(namespace=namespace, group="apps", resource="deployments", names=(OPERATOR,), verbs=("get",)),
    ]
    maps = {each["metadata"]["name"] for each in objects if each["kind"] == "ConfigMap"}
    for name in sorted({CONFIG, *maps}):
        verbs = ("create", "get", "patch") if name in maps else ("get",)
        rules.append(Right(namespace=namespace, group="", resource="configmaps", names=(name,), verbs=verbs))
    if custom := tuple(sorted(f"{RESOURCES[kind]}.{CILIUM}" for kind in kinds & RESOURCES.keys())):
        group, resource = "apiextensions.k8s.io", "customresourcedefinitions"
        rules.append(Right(group=group, resource=resource, names=custom, verbs=("get",)))
    for resource in sorted(PROBED.keys() & probed(objects).keys()):
        version, _, name = PROBED[resource]
        group = version.rpartition("/")[0]
        rules.append(Right(group=group, resource=resource, names=(name,), verbs=("create", "patch")))
    for kind, resource in POLICIES.items() if prune or kinds & POLICIES.keys() else ():
        writes = (("create", "patch") if kind in kinds else ()) + (("delete",) if prune else ())
        rules.append(Right(group=ADMISSION, resource=resource, verbs=tuple(sorted((*writes, "list")))))
    if of_nodes or prune:
        rules.append(Right(group="", resource="pods", verbs=("list",)))
    for kind, resource in RESOURCES.items():
        writes = (("create", "patch") if kind in kinds else ()) + (("delete",) if prune else ())
        reads = ("list", "watch") if kind == CILIUM_NODE else ("list",)
        where = namespace if kind == NODE_CONFIG else ""
        if where or not writes:  # listing all namespaces needs a ClusterRole
            rules.append(Right(group=CILIUM, resource=resource, verbs=reads))
            rules += [Right(namespace=where, group=CILIUM, resource=resource, verbs=writes)] if writes else ()
        else:
            rules.append(Right(group=CILIUM, resource=resource, verbs=tuple(sorted((*writes, *reads)))))
    return sorted(rules)


class Listed(Struct, frozen=True, kw_only=True):
    """A kind of which a dump has all objects, or one object. Others are not read: they may hold secrets."""

    group: str
    resource: str
    namespace: str = ""
    name: str = ""  # the one object; "" for all
    optional: bool = False  # a dump continues without it if an older role may not read it

    @property
    def full_name(self) -> str:
        """The name of the resource for kubectl."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


def dumped(job: str, namespace: str) -> Iterator[Listed]:
    """Yield what a dump for `refresh` or `audit` contains, in this order; `namespace` is Cilium's."""
    yield Listed(group="", resource="nodes")
    yield Listed(group=CILIUM, resource="ciliumnodes")
    # Which nodes run Cilium. An older role for a refresh may not read it.
    may = job == "refresh"
    yield Listed(group="apps", resource="daemonsets", namespace=namespace, name=AGENT, optional=may)
    if job == "audit":
        yield Listed(group="", resource="configmaps", namespace=namespace, name=CONFIG)
        yield Listed(group=CILIUM, resource="ciliumpodippools")
        yield Listed(group=CILIUM, resource="ciliumnodeconfigs")
        yield Listed(group=CILIUM, resource="ciliumendpoints")
        yield Listed(group="", resource="pods")
        yield Listed(group="", resource="configmaps", namespace="kube-system", name=KUBEADM)
        yield Listed(group="apps", resource="deployments", namespace=namespace, name=OPERATOR)
        crds = "customresourcedefinitions"
        yield Listed(group="apiextensions.k8s.io", resource=crds, name=NODE_CONFIG_CRD, optional=True)
        for resource in POLICIES.values():
            yield Listed(group=ADMISSION, resource=resource, optional=True)


def dump_rights(wanted: Iterable[Listed]) -> list[Right]:
    """Return the rights that a dump needs."""
    names: dict[tuple[str, str, str], list[str]] = {}
    rules = []
    for item in wanted:
        if item.name:
            names.setdefault((item.namespace, item.group, item.resource), []).append(item.name)
        else:
            rules.append(Right(group=item.group, resource=item.resource, verbs=("list",)))
    rules += [
        Right(namespace=namespace, group=group, resource=resource, names=tuple(sorted(found)), verbs=("get",))
        for (namespace, group, resource), found in names.items()
    ]
    return sorted(rules)
