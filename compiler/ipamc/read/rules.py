"""Rules about single names, CIDRs and selectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from ipamc.model.diagnostics import At, Diagnostic, Place, Related, count, error, warning
from ipamc.model.selector.label_syntax import as_subdomain
from ipamc.model.wording import listing, shown, typed


def native_fields(spec: Place, dialect: str, fields: Sequence[str], way_out: str) -> Diagnostic:
    """IPC0012: a pool of Calico or a ClusterCIDR has no fields of ipamc's own IPPool."""
    first, *others = fields
    return error(
        "IPC0012",
        Place(spec.path, spec.document, (*spec.keys, first), key=True),
        f"a {dialect} has no {listing(fields)}: only ipamc's own IPPool has",
        also=[
            Related(Place(spec.path, spec.document, (*spec.keys, name), key=True), f"{name} is here")
            for name in others
        ],
        help=way_out,
    )


def bad_name(at: At, what: str, name: str, problem: str, way_out: str = "") -> Diagnostic:
    """IPC0101: names of nodes, pools and clusters are DNS-1123 subdomains."""
    better = as_subdomain(name)
    write = f"write {better}: " if better not in {"", name} else ""
    return error(
        "IPC0101",
        at,
        f"{shown(name)} is not {what}: it {problem}",
        help=way_out or f"{write}use lower-case letters, digits, - and . only",
    )


def bad_label(at: At, what: str, text: str, problem: str) -> Diagnostic:
    """IPC0102: labels are valid in Kubernetes."""
    return error(
        "IPC0102",
        at,
        f"{shown(text)} is not a {what}: it {problem}",
        help="use letters, digits, -, _ and . only, 63 characters at most",
    )


def same_name(what: str, twice: Sequence[str], at: At, first: At, *, copied: bool) -> Diagnostic:
    """IPC0103: no two nodes, pools, CiliumNodes or Clusters of a folder have the same name."""
    if len(twice) == 1:
        message, way_out = f"{what} {shown(twice[0])} is defined twice", "remove or rename one of the two"
    else:
        message = f"{count(len(twice), what)} are defined twice: {', '.join(twice[:5])}"
        message += f" and {len(twice) - 5:,} more" if len(twice) > 5 else ""
        way_out = "keep each of them once"
    if copied:
        way_out = f"if {at.path} is the copy, git rm {typed(at.path)}: nothing else is in it; else remove them from {first.path}"
    return error("IPC0103", at, message, also=[Related(first, "first here")], help=way_out)


def bad_cluster_name(at: At, named: str, problem: str, name: str, folder: str) -> Diagnostic:
    """Return the finding of `bad_name` for a Cluster, or its folder, of which `name` is the name."""
    better = as_subdomain(name)
    write = f"write name: {better}" if better else "choose another name"
    way_out = write if better in {"", name} else f"{_renamed(name, folder, better)}, and {write}"
    return bad_name(at, "the name of a cluster", named, problem, way_out)


def _renamed(name: str, folder: str, better: str) -> str:
    """Return the command that gives a cluster's folder another name. The folder may be typed as `.`."""
    here = PurePath(folder)
    if here.name != name:
        return f"rename the folder to {better}"
    return f"git mv {typed(str(here))} {typed(str(here.with_name(better)))}"


def other_folder(at: At, named: str, name: str, folder: str, *, second: bool) -> Diagnostic:
    """IPC0104: a Cluster has the name of its folder."""
    way_out = f"write name: {name}, or {_renamed(name, folder, named)}"
    if second:
        way_out = f"a folder has one Cluster, and {name} is here: move this one to {typed(str(PurePath(folder).with_name(named)))}/"
    return error("IPC0104", at, f"Cluster {shown(named)} is in the folder {shown(name)}", help=way_out)


def no_cluster(at: At, name: str, folder: str) -> Diagnostic:
    """IPC0105: a folder has exactly one Cluster."""
    better = as_subdomain(name)
    rename = "" if better in {"", name} else f"{_renamed(name, folder, better)}, then "
    here = PurePath(folder)
    below = here.name == name and here.parent.name == "clusters"
    cluster = (better or name) if below else typed(folder if better == name else str(here.with_name(better)))
    return error(
        "IPC0105",
        at,
        f"no Cluster in the folder {shown(name)}",
        help=f"{rename}run ipamc init {cluster}, which writes what is missing beside what is there",
    )


def not_a_regular_file(at: At, name: str, problem: str, fix: str) -> Diagnostic:
    """IPC0107: an input is a regular file inside its cluster's folder, of at most 256 MiB."""
    return error("IPC0107", at, f"{name!r} {problem}", help=fix)


def not_an_input(at: Place, name: str, what: str, better: str) -> Diagnostic:
    """IPC0108: a file with objects that ipamc reads has the name of an input."""
    if better:
        way_out = f"git mv {typed(at.path)} {typed(better)} if it counts, else git rm {typed(at.path)}"
    else:
        way_out = f"put the file itself there, unpacked, with a name that ends in .yaml or .json; or remove it: rm {typed(at.path)}"
    return warning(
        "IPC0108",
        at,
        f"{shown(name)} {what}, and is passed over: inputs end in .yaml, .yml or .json",
        help=way_out,
    )


def not_tests(at: At, kind: str) -> Diagnostic:
    """IPC1011: a file beside the clusters has documents of kind Tests alone."""
    return error(
        "IPC1011",
        at,
        f"a document of kind {kind} beside the clusters",
        help="move it into the folder of a cluster",
    )


def host_bits(at: At, reason: str, better: str) -> Diagnostic:
    """IPC0201: a CIDR has no bits set beyond its prefix length."""
    return error("IPC0201", at, reason, help=f"write {better}" if better else "")


def wrong_family(at: At, text: str, family: int) -> Diagnostic:
    """IPC0202: an IPv4 field has IPv4 CIDRs, an IPv6 field has IPv6 CIDRs."""
    other = 10 - family
    prefix = int(text.partition("/")[2])
    size = max(24, min(prefix + 2, 32)) if other == 4 else max(64, min(prefix + 8, 128))
    cidr = f'"{text}"' if other == 6 else text
    return error(
        "IPC0202",
        at,
        f"{shown(text)} is not an IPv{family} CIDR",
        help=f"move it to ipv{other}, for example ipv{other}: {{cidrs: [{cidr}], blockSize: {size}}}",
    )


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
    example = "fd00:10:244::/48" if ipv6 else "10.0.0.0/16"
    return error(
        "IPC0206",
        at,
        reason,
        help=f"write {better}" if better else f"write an address and a prefix length, such as {example}",
    )


def selector_syntax(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0301: a selector is valid in its language."""
    return error("IPC0301", at, problem, help=way_out)
