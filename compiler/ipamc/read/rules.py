"""The findings of reading: a document as text and its fields, single values, a dump, a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath

from ipamc.model.cidr import CidrError
from ipamc.model.cluster import Scheme
from ipamc.model.diagnostics import At, Diagnostic, Place, Related, Span, count, error, warning
from ipamc.model.limits import DEEPEST_DOCUMENT, MOST_NODES
from ipamc.model.selector.label_syntax import as_subdomain
from ipamc.model.space import Ask
from ipamc.model.wording import listing, shown, typed
from ipamc.read.node_names import of_ansible


def yaml_syntax(at: At, problem: str, also: Iterable[Related] = (), way_out: str = "") -> Diagnostic:
    """IPC0001: an input document is YAML."""
    return error("IPC0001", at, problem, also=also, help=way_out)


def json_syntax(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0002: a file that ends in .json contains one JSON value."""
    return error("IPC0002", at, problem, help=way_out)


def duplicate_key(key: str, at: At, first: At) -> Diagnostic:
    """IPC0003: a mapping has each key only once."""
    way_out = "remove one of the two"
    if key in {"apiVersion", "kind"}:
        way_out = f"if a new document begins here, write --- on a line above it; else {way_out}"
    also = [Related(first, "first here")]
    return error("IPC0003", at, f"the mapping has the key {shown(key)} twice", also=also, help=way_out)


def too_much(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0004: a document stays within limits of nesting and size."""
    return error("IPC0004", at, problem, help=way_out)


def too_deep(at: At) -> Diagnostic:
    """Return the finding, by the rule of `too_much`, about more than DEEPEST_DOCUMENT levels of nesting."""
    return too_much(at, f"more than {DEEPEST_DOCUMENT} levels of nesting", "flatten the document")


def too_many(at: At, what: str) -> Diagnostic:
    """Return the finding, by the rule of `too_much`, about more than MOST_NODES of something."""
    way_out = "divide the cluster, or remove what is not one of its nodes"
    return too_much(at, f"more than {MOST_NODES:,} {what}", way_out)


def not_text(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0005: an input file is UTF-8 text without control characters."""
    return error("IPC0005", at, problem, help=way_out)


def unknown_field(at: At, name: str, owner: str, known: Iterable[str], better: str) -> Diagnostic:
    """IPC0006: a document of one of ipamc's own kinds has only known fields."""
    known = list(known)
    others = f"use one of {listing(known)}" if known else "remove it: no field is allowed here"
    return error("IPC0006", at, f"unknown field {shown(name)} in {owner}", help=better or others)


def wrong_shape(at: At, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0007: every value has the type of its field, and required fields are present."""
    return error("IPC0007", at, problem, help=way_out)


def ambiguous_scalar(at: At, text: str, readings: str, quoted: str) -> Diagnostic:
    """IPC0008: a text without quotes means the same to YAML 1.1 and YAML 1.2 readers."""
    return warning("IPC0008", at, f"{text} is {readings}; ipamc reads it as text", help=f"write {quoted}")


def unknown_kind(at: At, api_version: str, kind: str, way_out: str) -> Diagnostic:
    """IPC0009: every document of a cluster's folder is of a kind that ipamc reads."""
    return error("IPC0009", at, f"unknown kind {shown(kind)} of {shown(api_version)}", help=way_out)


def empty_file(at: At) -> Diagnostic:
    """IPC0010: an input file is not empty."""
    way_out = (
        f"remove it, or restore it: git checkout HEAD -- {typed(at.path)} "
        "(an interrupted command leaves an empty file)"
    )
    return error("IPC0010", at, "the file is empty", help=way_out)


def not_plain_yaml(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0011: a document has no merge keys, and only the core tags."""
    return error("IPC0011", at, problem, help=way_out)


def native_fields(spec: Place, dialect: str, fields: Sequence[str], way_out: str) -> Diagnostic:
    """IPC0012: a Calico IPPool or a ClusterCIDR has no fields that only ipamc's own IPPool has."""
    at, *others = (Place(spec.path, spec.document, (*spec.keys, name), key=True) for name in fields)
    also = [Related(other, f"{name} is here") for other, name in zip(others, fields[1:], strict=True)]
    problem = f"a {dialect} cannot have {listing(fields)}: only ipamc's own IPPool can"
    return error("IPC0012", at, problem, also=also, help=way_out)


_BESIDE_FOLLOWS = {
    "ipv4": "the IPv6 network does not determine IPv4 blocks",
    "ipv6": "the IPv4 network does not determine IPv6 blocks",
    "nodeSelector": "the network determines its nodes",
    "priority": "it always comes first for the nodes of its network",
    "overflow": "it has a block for each address of its network, so it is never full",
    "blocksPerNode": "a node has one block, which its address determines",
    "blockSizes": "all its blocks must have one size",
    "reserved": "the policy that assigns blocks to joining nodes does not know it",
    "pins": "the address of a node determines its block",
    "unlisted": "only the network determines its blocks",
    "disabled": "the address of a joining node determines its block",
    "usage": "a node has one block, which its address determines",
}
"""Why a pool whose blocks follow the nodes' network does not have a field."""


def beside_follows(at: At, pool: str, field: str, follows: At) -> Diagnostic:
    """IPC0223: a pool with `follows` has no field that chooses nodes or blocks."""
    problem = f'pool "{pool}" cannot have both follows and {field}: {_BESIDE_FOLLOWS[field]}'
    way_out = {
        "ipv4": "set follows there, too, or move ipv4 to another pool",
        "ipv6": "set follows there, too, or move ipv6 to another pool",
        "disabled": "remove one of the two: without follows, nodes keep what they hold",
    }.get(field, f"remove {field}, or remove follows")
    return error("IPC0223", at, problem, also=[Related(follows, "follows is here")], help=way_out)


def beside_pods_only(at: At, pool: str, field: str, pods_only: At) -> Diagnostic:
    """IPC0228: a pool with `podsOnly` has no field about nodes and their blocks."""
    problem = f'pool "{pool}" cannot have both podsOnly and {field}: it serves only pods'
    way_out = f"remove {field if field not in {'ipv4', 'ipv6'} else f'follows of {field}'}, or podsOnly"
    return error("IPC0228", at, problem, also=[Related(pods_only, "podsOnly is here")], help=way_out)


NODE_NAME = "the name of a node"


def bad_name(at: At, what: str, name: str, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0101: names of nodes, pools and clusters are DNS-1123 subdomains."""
    write = f"write {better}: " if (better := as_subdomain(name)) not in {"", name} else ""
    pattern = of_ansible(name[:60])
    if "{" in pattern and what == NODE_NAME:
        way_out = f'write names: "{pattern}", planned: true for several planned nodes'
    way_out = way_out or f"{write}use only lower-case letters, digits, . and -"
    return error("IPC0101", at, f"{shown(name)} is not {what}: it {problem}", help=way_out)


def bad_label(at: At, what: str, text: str, problem: str) -> Diagnostic:
    """IPC0102: labels are valid in Kubernetes."""
    way_out = "use at most 63 letters, digits, -, . and _"
    return error("IPC0102", at, f"{shown(text)} is not a {what}: it {problem}", help=way_out)


def same_name(what: str, twice: Sequence[str], at: At, first: At, *, copied: bool) -> Diagnostic:
    """IPC0103: no two nodes, pools, CiliumNodes or Clusters of a folder have the same name."""
    if len(twice) == 1:
        message, way_out = f"{what} {shown(twice[0])} is defined twice", "remove or rename one of the two"
    else:
        message = f"{count(len(twice), what)} are defined twice: {', '.join(twice[:5])}"
        message += f" and {len(twice) - 5:,} more" if len(twice) > 5 else ""
        way_out = "keep each of them only once"
    if copied:
        remove = f"rm {typed(at.path)} (it has nothing else)"
        way_out = f"if {first.path} is the original: {remove}; if not, remove them from {first.path}"
    return error("IPC0103", at, message, also=[Related(first, "first here")], help=way_out)


def bad_cluster_name(at: At, named: str, problem: str, name: str, folder: str) -> Diagnostic:
    """Return the finding of `bad_name` for the name of a Cluster or of its folder."""
    better = as_subdomain(name)
    write = f"write name: {better}" if better else "choose another name"
    way_out = write if better in {"", name} else f"{_renamed(name, folder, better)}, and {write}"
    return bad_name(at, "the name of a cluster", named, problem, way_out)


def _renamed(name: str, folder: str, better: str) -> str:
    """Return the command that renames a cluster's folder. The folder may be typed as `.`."""
    here = PurePath(folder)
    if here.name != name:
        return f"rename the folder to {better}"
    return f"git mv {typed(str(here))} {typed(str(here.with_name(better)))}"


def other_folder(at: At, found: Scheme, name: str, folder: str, *, second: bool) -> Diagnostic:
    """IPC0104: a Cluster has the name of its folder."""
    named, kind = found.name, type(found).__name__
    way_out = f"write name: {name}, or {_renamed(name, folder, named)}"
    if second:
        other = typed(str(PurePath(folder).with_name(named)))
        way_out = f"a folder has one Cluster, and {name} is here: move this one to {other}/"
    return error("IPC0104", at, f"{kind} {shown(named)} is in the folder {shown(name)}", help=way_out)


def no_cluster(at: At, name: str, folder: str, kind: str, lost: str = "") -> Diagnostic:
    """IPC0105: a folder has exactly one Cluster."""
    if kind == "AddressSpace":
        message = f"no {kind} in the folder {shown(name)}, which has its lock"
        restore = f"restore its document: git checkout HEAD -- {typed(folder)}"
        fix = f"{restore}; or, once no pool requests from it, remove the folder: git rm -r {typed(folder)}"
        return error("IPC0105", at, message, help=fix)
    better = as_subdomain(name)
    rename = "" if better in {"", name} else f"{_renamed(name, folder, better)}, then "
    here = PurePath(folder)
    below = here.name == name and here.parent.name == "clusters"
    cluster = (better or name) if below else typed(folder if better == name else str(here.with_name(better)))
    init = f"{rename}run ipamc init {cluster}, which writes only missing files"
    return error("IPC0105", at, f"no Cluster in the folder {shown(name)}", help=lost or init)


def not_a_regular_file(at: At, name: str, problem: str, fix: str) -> Diagnostic:
    """IPC0107: an input is a regular file inside its cluster's folder, of at most 256 MiB."""
    return error("IPC0107", at, f"{name!r} {problem}", help=fix)


def names_syntax(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0109: `names` of an inventory contains ranges in braces, such as `worker-{001..400}`."""
    return error("IPC0109", at, problem, help=way_out or "write, for example, worker-{001..400}")


def not_planned_names(at: At, of_one: Sequence[At]) -> Diagnostic:
    """IPC0110: an inventory entry with `names` has `planned: true` and no field of a single node."""
    if of_one:
        fields = listing(str(place.keys[-1]) for place in of_one if isinstance(place, Place))
        also = [Related(at, "names is here")]
        fix = f"remove it, or write one entry with name for each node that has {fields}"
        return error(
            "IPC0110", of_one[0], f"names is for several nodes, but {fields} is for one", also=also, help=fix
        )
    fix = "write planned: true; a node that exists needs its own entry with name"
    return error("IPC0110", at, "names is only for planned nodes, but planned is not true", help=fix)


def too_many_names(at: At, number: int, total: int, most: int) -> Diagnostic:
    """Return the finding, by the rule of `too_much`, about patterns of more than `most` names."""
    stands = "more than 10^18" if number > 10**18 else f"{number:,}"
    all_of_them = f" ({total:,} with those above)" if number < total <= 10**18 else ""
    problem = f"names expands to {stands} nodes{all_of_them}, more than {most:,}"
    return too_much(at, problem, "write shorter ranges: each name gets a block")


def not_an_input(at: Place, name: str, what: str, better: str) -> Diagnostic:
    """IPC0108: a file with objects for ipamc has a name that ipamc reads."""
    path = typed(at.path)
    problem = f"{shown(name)} {what}, but is ignored: inputs end in .yaml, .yml or .json"
    way_out = f"replace it by the unpacked file, named *.yaml or *.json; or remove it: rm {path}"
    if better:
        way_out = f"to use it: mv {path} {typed(better)}; else: rm {path}"
    return warning("IPC0108", at, problem, help=way_out)


def other_space(ask: Ask, space: str) -> Diagnostic:
    """IPC0708: all pools of a cluster request ranges from its own address space."""
    message = f"the pool requests from {shown(ask.space)}, but the cluster belongs to {shown(space)}"
    return error(
        "IPC0708", ask.at, message, help=f"write from: {space}, or change addressSpace of the cluster"
    )


def index_unreadable(path: str, problem: str) -> Diagnostic:
    """IPC0705: ipamc can read the index of an address space."""
    space = PurePath(path).parent.parent.name
    message = f"the index of address space {shown(space)} cannot be read: {problem}"
    return error("IPC0705", Span(path), message, help=f"write it again: ipamc compile {space}")


def beside_space(at: At, space: str) -> Diagnostic:
    """IPC0709: the folder of an address space contains only its AddressSpace and Tests."""
    message = f"the folder of address space {space} has a pool, a node or a CIDR of a cluster"
    return error("IPC0709", at, message, help="move it into the folder of its cluster, beside this one")


def level_outside(at: At, cidr: str, space: str) -> Diagnostic:
    """IPC0706: the CIDRs of a level lie in its address space."""
    fix = f"write a part of the CIDRs of {space}, or add {cidr} to the space"
    return error("IPC0706", at, f"{cidr} is outside address space {space}", help=fix)


def not_tests(at: At, kind: str) -> Diagnostic:
    """IPC1011: a file beside the clusters has only documents of kind Tests."""
    way_out = "move it into the folder of its cluster"
    return error("IPC1011", at, f"a document of kind {kind} beside the clusters", help=way_out)


def host_bits(at: At, reason: str, better: str) -> Diagnostic:
    """IPC0201: a CIDR has no bits set beyond its prefix length."""
    return error("IPC0201", at, reason, help=f"write {better}" if better else "")


def wrong_family(at: At, text: str, family: int) -> Diagnostic:
    """IPC0202: an IPv4 field has IPv4 CIDRs, an IPv6 field has IPv6 CIDRs."""
    other = 10 - family
    prefix = int(text.partition("/")[2])
    size = max(24, min(prefix + 2, 32)) if other == 4 else max(64, min(prefix + 8, 128))
    cidr = f'"{text}"' if other == 6 else text
    way_out = f"move it to ipv{other}, for example ipv{other}: {{cidrs: [{cidr}], blockSize: {size}}}"
    return error("IPC0202", at, f"{shown(text)} is not an IPv{family} CIDR", help=way_out)


def mapped(at: At, reason: str, better: str) -> Diagnostic:
    """IPC0203: no CIDR is an IPv4-mapped IPv6 address."""
    return error("IPC0203", at, reason, help=f"write {better}" if better else "write the IPv4 range")


def not_for_pods(at: At, reason: str) -> Diagnostic:
    """IPC0204: pods have no link-local, multicast or loopback addresses."""
    return error("IPC0204", at, reason, help="use a range of unicast addresses")


def not_canonical(at: At, text: str, canonical: str) -> Diagnostic:
    """IPC0205: a CIDR is in canonical form (RFC 5952)."""
    return warning("IPC0205", at, f"{shown(text)} is not canonical", help=f"write {canonical}")


def not_cidr(at: At, reason: str, better: str) -> Diagnostic:
    """IPC0206: a CIDR is an address, a slash and a prefix length."""
    ipv6 = "::" in reason or (isinstance(at, Place) and "ipv6" in at.keys)
    example = f"an address and a prefix length, such as {'fd00:10:244::/48' if ipv6 else '10.0.0.0/16'}"
    return error("IPC0206", at, reason, help=f"write {better or example}")


def refused_cidr(at: At, problem: CidrError, better: str) -> Diagnostic:
    """Return the finding for a text that is no CIDR, by the rule that it breaks."""
    if problem.rule == "not for pods":
        return not_for_pods(at, problem.reason)
    rule = {"host bits": host_bits, "mapped": mapped, "syntax": not_cidr, "no length": not_cidr}[problem.rule]
    return rule(at, problem.reason, better)


def selector_syntax(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0301: a selector is valid in its language."""
    return error("IPC0301", at, problem, help=way_out)


DUMP = (
    "kubectl get nodes,ciliumnodes,ciliumpodippools,ciliumnodeconfigs,ciliumendpoints,pods,cm,deployments,"
    "daemonsets -A -o json"
)
"""The command that makes a dump; `ipamc ci rbac` has the role for it."""
DUMP_OF_POLICIES = (
    ", and for another FILE kubectl get mutatingadmissionpolicies,mutatingadmissionpolicybindings,"
    "validatingadmissionpolicies,validatingadmissionpolicybindings -o json"
)
"""The command for the rest of a cluster with admission policies: older apiservers lack some kinds."""


AGAIN = f"{DUMP} > dump.json"
"""The complete command line that writes a dump."""


def unreadable_dump(at: Span, problem: str, way_out: str = f"write it again: {AGAIN}") -> Diagnostic:
    """IPC0801: a dump is complete JSON or YAML from kubectl."""
    return error("IPC0801", at, problem, help=way_out)


def too_many_objects(at: Span, most: int, what: str) -> Diagnostic:
    """Return the finding, by the rule of `unreadable_dump`, about more objects than are read."""
    return unreadable_dump(at, f"more than {most:,} {what}", "dump only one cluster, and fewer kinds")


def continued(at: Span) -> Diagnostic:
    """IPC0802: a dump contains all pages of a list."""
    problem = "the list is one page of several: metadata.continue is set"
    return error("IPC0802", at, problem, help=f"run {DUMP}, which reads all pages")


def two_states(what: str, at: At, first: At) -> Diagnostic:
    """IPC0803: a dump does not contain an object twice with different contents."""
    problem, also = f"{what} is in the dump twice, with different contents", [Related(first, "first here")]
    return error("IPC0803", at, problem, also=also, help="dump all files at the same time")


def wrong_object(at: Span, what: str, problem: str) -> Diagnostic:
    """IPC0804: the fields of objects in a dump have the types of their kinds."""
    return error("IPC0804", at, f"{what}: {problem}", help=f"use the unchanged output of {DUMP}")


def unreadable(
    at: At, what: str, odd: Sequence[object], way_out: str = "", *, make: Callable[..., Diagnostic] = warning
) -> Diagnostic:
    """IPC0805: ipamc can read the CIDRs, addresses and flags in a dump."""
    more = f" and {len(odd) - 3} more" if len(odd) > 3 else ""
    return make("IPC0805", at, f"{what} has {', '.join(map(str, odd[:3]))}{more}", help=way_out)


def no_nodes(at: Span, kinds: list[str]) -> Diagnostic:
    """IPC0806: a dump contains the Nodes of the cluster."""
    found = f"only {', '.join(kinds)}" if kinds else "no objects"
    way_out = f"run {DUMP}, with a role that may list Nodes"
    return error("IPC0806", at, f"the dump has no Nodes: {found}", help=way_out)


def other_value(at: At, config: At, key: str, given: str, runs: str | None) -> Diagnostic:
    """IPC0838: Helm values match the running cluster."""
    has = "does not set it" if runs is None else f"has {shown(runs)}"
    text = f"the values set {key} to {shown(given)}, but cilium-config {has}: cilium-config is used"
    way_out = "roll out the values and make the dump again; or correct the values"
    return warning("IPC0838", at, text, also=[Related(config, "the ConfigMap that runs")], help=way_out)
