"""Machines of Cluster API, metal3, kubespray or a table that will become nodes: planned nodes.

A Machine's node has the Machine's name where the provider does that (metal3, vSphere, Docker, OpenStack, by
the templates that they come with), or the name in `status.nodeRef` once it has joined: then it is no planned
node. Cluster API gives a node only some labels of its Machine (`util/labels/helpers.go`), and others if
`--additional-sync-machine-labels` of its manager lists them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ipamc.importing import import_rules
from ipamc.importing.files import flow, inventory_head, is_wanted, planned_fields
from ipamc.importing.refresh import is_inventory
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import At, Diagnostic, Log, Refused, Span
from ipamc.model.selector.label_syntax import label_key_problem, label_value_problem, subdomain_problem
from ipamc.read import rules
from ipamc.read.ansible import read_inventory
from ipamc.read.csv_table import Table, column_missing
from ipamc.read.dump.machines import Machine

FILE = "machines.yaml"
COLUMNS = {"name": ("name", "hostname", "node", "host")}
"""The column for the name; all others are labels."""
SUFFIXES = (".csv", ".tsv", ".txt")
"""Suffixes of files that are tables."""
_DOMAINS = ("node-restriction.kubernetes.io", "node.cluster.x-k8s.io")
"""Labels in these domains and their subdomains are copied to the node."""
_ROLES = "node-role.kubernetes.io"
_METAL3 = "Metal3Machine"
_BY_INSTANCE = frozenset({"AWSMachine"})
"""Providers whose nodes have the cloud's name of the instance, which is unknown before."""
_HEAD = "# Planned nodes. 'ipamc import --machines' adds nodes and changes no other line\n"
_LIST = re.compile(rb"^nodes:(?P<none>[ \t]*\[[ \t]*\])?[ \t\r]*(?:#[^\n]*)?$", re.MULTILINE)
_DASH = re.compile(rb"^( *)-[ \t\r\n]", re.MULTILINE)
_OTHER = re.compile(rb"^[^ \t\r\n#-]", re.MULTILINE)
"""A line behind the list that is not part of it."""


class PlannedNode(Struct, frozen=True, kw_only=True):
    """A node that has not joined yet."""

    name: str
    labels: Mapping[str, str]
    at: At
    labels_at: Mapping[str, At] = {}
    """The places of single labels, if not `at`."""


class Machines(Struct, frozen=True, kw_only=True):
    """The nodes of one cluster in files of machines."""

    planned: tuple[PlannedNode, ...]
    joined: Mapping[str, At]
    """Machines whose node has joined, by its name."""
    findings: tuple[Diagnostic, ...]


def of_objects(
    machines: Sequence[Machine], kinds: Collection[str], path: str, cluster: str, labels: Sequence[str]
) -> Machines:
    """Return the machines and hosts of a cluster. Raises Refused if it is not clear which are its own.
    `kinds` are those of all objects in the files, of which `path` is the first. `labels`: keys, which may end
    in `*`, of labels that its nodes have besides those of Cluster API.
    """
    if not machines:
        raise Refused((import_rules.no_machines(Span(path), kinds),))
    hosts = {host.refers: host for host in machines if host.is_host and host.refers[0] == _METAL3}
    every = [machine for machine in machines if not machine.is_host]
    clusters = {machine.cluster for machine in every}
    if len(clusters) > 1 and cluster not in clusters:
        raise Refused((import_rules.several_clusters(every[0].at, cluster, sorted(clusters)),))
    own, guessed = list[PlannedNode](), list[Machine]()
    joined: dict[str, At] = {}
    for machine in every:
        if machine.deleting or (len(clusters) > 1 and machine.cluster != cluster):
            continue
        if machine.node:
            joined[machine.node] = machine.at
            continue
        guessed += [machine] if machine.refers[0] in _BY_INSTANCE else []
        on_host = hosts[machine.refers].labels if machine.refers in hosts else {}
        found = {key: text for key, text in {**on_host, **machine.labels}.items() if is_wanted(key, labels)}
        found |= {key: text for key, text in machine.labels.items() if _of_node(key)}
        own.append(PlannedNode(name=machine.name, labels=found, at=machine.at))
    free = [host for host in machines if host.is_host and not host.deleting and host.refers[0] != _METAL3]
    for host in free:
        found = {key: text for key, text in host.labels.items() if is_wanted(key, labels)}
        own.append(PlannedNode(name=host.name, labels=found, at=host.at))
    used = {machine.refers for machine in every}
    unclear = [host for refers, host in hosts.items() if refers not in used]
    return Machines(
        planned=tuple(own), joined=joined, findings=tuple(import_rules.names_unknown(guessed, free, unclear))
    )


def _of_node(key: str) -> bool:
    """Return whether Cluster API copies this label from a Machine to its node."""
    domain = key.partition("/")[0]
    return domain == _ROLES or any(domain == each or domain.endswith(f".{each}") for each in _DOMAINS)


def of_table(table: Table) -> Machines:
    """Return the rows of a table. Raises Refused for errors in its form."""
    log = Log()
    if "name" not in table.columns:
        way_out = "rename the column of node names to name, in English"
        log.add([*table.findings, column_missing(Span(table.path, table.head), COLUMNS["name"], way_out)])
    log.add(table.findings)
    keys = [key for key in table.columns if key != "name"]
    log.add(
        rules.bad_label(table.cell(table.head, table.columns[key]), "label key", key, problem)
        for key in keys
        if (problem := label_key_problem(key))
    )
    planned = []
    for row in table.rows:
        labels = {key: text for key in keys if (text := row.cells.get(key, ""))}
        wrong = {key: table.at(row, key) for key, text in labels.items() if label_value_problem(text)}
        at = table.at(row, "name")
        planned.append(PlannedNode(name=row.cells.get("name", ""), labels=labels, at=at, labels_at=wrong))
    return Machines(planned=tuple(planned), joined={}, findings=())


def of_inventory(path: str, data: bytes) -> Machines:
    """Return the nodes of an inventory of kubespray. Raises Refused if it has none, or is in error."""
    hosts, found = read_inventory(path, data)
    if not hosts:
        none = "no host belongs to kube_node or kube_control_plane"
        raise Refused((import_rules.not_of_one_cluster(Span(path), none, "pass an inventory of Kubespray"),))
    planned = [PlannedNode(name=name, labels=labels, at=at) for name, (at, labels) in hosts.items()]
    return Machines(planned=tuple(planned), joined={}, findings=tuple(found))


def check(planned: Iterable[PlannedNode]) -> Iterator[Diagnostic]:
    """Yield errors in names and labels, and repeated names."""
    first: dict[str, At] = {}
    for node in planned:
        if problem := subdomain_problem(node.name):
            yield rules.bad_name(node.at, rules.NODE_NAME, node.name, problem)
        elif (there := first.setdefault(node.name, node.at)) is not node.at:
            yield rules.same_name("node", [node.name], node.at, there, copied=False)
        for key, text in node.labels.items():
            at = node.labels_at.get(key, node.at)
            if problem := label_key_problem(key):
                yield rules.bad_label(at, "label key", key, problem)
            elif problem := label_value_problem(text):
                yield rules.bad_label(at, "label value", text, problem)


class Additions(Struct, frozen=True, kw_only=True):
    """Nodes that machines add to an inventory."""

    nodes: tuple[PlannedNode, ...]
    """By name."""
    there: int
    """The number of names in the files that the cluster already has."""
    findings: tuple[Diagnostic, ...]


def additions(found: Sequence[Machines], cluster: Cluster, path: str) -> Additions:
    """Return the planned nodes that a cluster does not have. Raises Refused. O(n log n).
    `path` is the inventory with nodes of earlier files. Nodes that left the files are reported, not removed.
    """
    log = Log()
    planned = [node for each in found for node in each.planned]
    log.add(finding for each in found for finding in each.findings)
    log.add(check(planned))
    there = {node.name for node in cluster.nodes}
    joined = {name: at for each in found for name, at in each.joined.items()}
    known = {node.name for node in planned} | joined.keys()
    if late := {name: at for name, at in joined.items() if name not in there}:
        log.add([import_rules.joined_already(next(iter(late.values())), cluster.name, late)])
    left = [node for node in cluster.nodes if node.at.path == path and node.name not in known]
    if left:
        log.add([import_rules.left_the_files(left[0].at, FILE, [node.name for node in left])])
    new = sorted((node for node in planned if node.name not in there), key=lambda node: node.name)
    return Additions(nodes=tuple(new), there=len(known & there), findings=tuple(log.diagnostics))


def extended(path: str, data: bytes | None, nodes: Iterable[PlannedNode]) -> bytes | None:
    """Append planned nodes to an inventory, a line each behind its nodes; keep all other bytes.
    None if the file has something behind its nodes, or is no inventory in block style.
    """
    if data is None:
        data = inventory_head(_HEAD).encode()
    listed = _LIST.search(data)
    if not is_inventory(path, data) or listed is None or _OTHER.search(data, listed.end()):
        return None
    dash = _DASH.search(data, listed.end())
    indent = dash[1].decode() if dash else ""
    if listed["none"]:
        data = data[: listed.start("none")] + data[listed.end("none") :]
    lines = "".join(f"{indent}- {flow(planned_fields(node.name, node.labels))}\n" for node in nodes)
    return data + (b"" if data.endswith(b"\n") else b"\n") + lines.encode()
