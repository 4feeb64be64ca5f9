"""Rules about single names, CIDRs and selectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from ipamc.model.diagnostics import At, Diagnostic, Place, Related, count, error, warning
from ipamc.model.selector.label_syntax import as_subdomain
from ipamc.model.wording import listing, shown, typed


def native_fields(spec: Place, dialect: str, fields: Sequence[str], way_out: str) -> Diagnostic:
    """IPC0012: a pool of Calico or a ClusterCIDR has no fields of ipamc's own IPPool.

    These are fields such as `reserved`, `pins`, `priority` and `overflow`.

    Why: in the dialects where these fields do not exist nothing would be reserved, pinned or put first by
    them.

    Run: write the pool as an IPPool of ipamc/v1alpha1 with the same name, ranges, block size and selector;
    `ipamc schema IPPool` prints its fields. After `ipamc compile CLUSTER` all nodes have the blocks that
    they had.
    """
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
    """IPC0101: names of nodes, pools and clusters are DNS-1123 subdomains.

    Lower-case letters, digits, `-` and `.`, with a letter or digit at both ends, at most 253 characters. A
    namespace has no dot and at most 63 characters.

    Why: the kube-apiserver refuses any other name (apimachinery, validation of names), so the manifests
    could not be applied.

    Run: take the names from the cluster: `kubectl get nodes -o name`. Then `ipamc compile CLUSTER`.
    """
    better = as_subdomain(name)
    write = f"write {better}: " if better not in {"", name} else ""
    return error(
        "IPC0101",
        at,
        f"{shown(name)} is not {what}: it {problem}",
        help=way_out or f"{write}use lower-case letters, digits, - and . only",
    )


def bad_label(at: At, what: str, text: str, problem: str) -> Diagnostic:
    """IPC0102: labels are valid in Kubernetes.

    A key is an optional DNS prefix and a name of at most 63 characters; a value is empty, or at most 63
    characters of letters, digits, `-`, `_` and `.`.

    Why: no node in Kubernetes can have an invalid label, so a selector that asks for it never finds a node,
    and the pool stays unused.

    Run: take the labels from the cluster: `kubectl get nodes --show-labels`. Then `ipamc compile CLUSTER`.
    """
    return error(
        "IPC0102",
        at,
        f"{shown(text)} is not a {what}: it {problem}",
        help="use letters, digits, -, _ and . only, 63 characters at most",
    )


def same_name(what: str, twice: Sequence[str], at: At, first: At, *, copied: bool) -> Diagnostic:
    """IPC0103: no two nodes, pools, CiliumNodes or Clusters of a folder have the same name.

    A `v1 Node` may have the name of a `planned` entry of an inventory, and replaces it. Pools of all
    dialects share one space of names.

    Why: the lock identifies nodes and pools by name. Of two pools with one name nobody could say which of
    them a block belongs to, and two entries of a node may have different labels.

    Run: remove or rename one of the two; the finding names both places. Then `ipamc compile CLUSTER`.
    """
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
    """IPC0104: a Cluster has the name of its folder.

    The lock and the rendered tree are found by the folder, and commands accept either name.

    Why: with two names a command would be given to one cluster and do its work in another. A folder that
    was copied to start a new cluster still has the old name, and an old lock.

    Run: change `metadata.name`, or rename the folder: `git mv clusters/OLD clusters/NAME`. Then `ipamc
    compile NAME`.
    """
    way_out = f"write name: {name}, or {_renamed(name, folder, named)}"
    if second:
        way_out = f"a folder has one Cluster, and {name} is here: move this one to {typed(str(PurePath(folder).with_name(named)))}/"
    return error("IPC0104", at, f"Cluster {shown(named)} is in the folder {shown(name)}", help=way_out)


def no_cluster(at: At, name: str, folder: str) -> Diagnostic:
    """IPC0105: a folder has exactly one Cluster.

    It may be in any file of the folder.

    Why: the Cluster names the Cilium version and the IPAM mode of the output. Neither has a safe default:
    with another mode, agents ignore the blocks that were rendered.

    Run: `ipamc init NAME` writes a Cluster to start from, beside the files that are there; `ipamc import
    NAME dump.json` makes one from a running cluster. Then `ipamc compile NAME`.
    """
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
    """IPC0107: an input is a regular file inside its cluster's folder, of at most 256 MiB.

    A link may point to another file of the same folder. Links that leave the folder, links to folders,
    links to nothing, pipes and devices are refused. All inputs of a cluster have at most 1 GiB together.

    Why: everything that decides a cluster's addresses is in its folder, so that a review sees every cause
    of a change. A link of a stranger could read a file of the CI machine.

    Run: put a copy of the file there instead: `cp --remove-destination TARGET LINK`. Then `ipamc compile
    CLUSTER`.
    """
    return error("IPC0107", at, f"{name!r} {problem}", help=fix)


def not_an_input(at: Place, name: str, what: str, better: str) -> Diagnostic:
    """IPC0108: a file with objects that ipamc reads has the name of an input.

    Inputs end in .yaml, .yml or .json, in lower case. `better` is the name that the file could have. Files
    without such objects are not named, and files whose names start with a dot are never looked at.

    Why: a Node in nodes.txt, in nodes.yaml.gz, in a copy that a merge left behind, or behind a link of another
    name gets no block, and nothing says so.

    Run: `git mv` the file to the name that the finding shows, or take it out of the cluster's folder. Then
    `ipamc compile CLUSTER`.
    """
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
    """IPC1011: a file beside the clusters has documents of kind Tests alone.

    It is `tests.yaml` (or `.yml`, `.json`) in the folder of all clusters.

    Why: what stands there holds for each cluster, so a pool would be in all of them at once, with the same
    addresses. It is refused, and not passed over: somebody believes that it counts.

    Run: move the document into the folder of its cluster, `clusters/CLUSTER/`, and `ipamc compile CLUSTER`.
    What is no test and of no cluster belongs into a file with another name.
    """
    return error(
        "IPC1011",
        at,
        f"a document of kind {kind} beside the clusters",
        help="move it into the folder of a cluster",
    )


def host_bits(at: At, reason: str, better: str) -> Diagnostic:
    """IPC0201: a CIDR has no bits set beyond its prefix length.

    The addresses below the prefix length are zero: 10.244.0.0/16, and not 10.244.8.0/16.

    Why: either the address or the length is wrong, so ipamc does not guess: a pool could be sixteen times
    too large. Kubernetes refuses such podCIDRs from 1.36 on (StrictIPCIDRValidation), and warns before;
    Calico always refuses them.

    Run: write the CIDR that is meant; the finding shows the one with this length. Then `ipamc compile
    CLUSTER`.
    """
    return error("IPC0201", at, reason, help=f"write {better}" if better else "")


def wrong_family(at: At, text: str, family: int) -> Diagnostic:
    """IPC0202: an IPv4 field has IPv4 CIDRs, an IPv6 field has IPv6 CIDRs.

    Lists such as `excludedCIDRs`, `reserved` and `pins` accept both families.

    Why: block sizes are set for each family. A block of /24 is 256 addresses of IPv4, and more than the
    whole range of an IPv6 pool: in the wrong field no block would be what was planned.

    Run: move the CIDR to the other field; then `ipamc compile CLUSTER`.
    """
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
    """IPC0203: no CIDR is an IPv4-mapped IPv6 address.

    This is about `::ffff:0:0/96`, where IPv6 has a copy of all IPv4 addresses.

    Why: `::ffff:10.0.0.0/104` is an IPv4 range to some programs and an IPv6 range to others. Kubernetes
    refuses it from 1.36 on, and warns before.

    Run: write the IPv4 range in the IPv4 field; then `ipamc compile CLUSTER`.
    """
    return error("IPC0203", at, reason, help=f"write {better}" if better else "write the IPv4 range")


def not_for_pods(at: At, reason: str) -> Diagnostic:
    """IPC0204: pods have no link-local, multicast or loopback addresses.

    As excluded CIDRs such addresses may be named.

    Why: routers do not forward link-local and loopback addresses, and a multicast address is no source of a
    packet: pods with such addresses reach nothing outside their node.

    Run: use a range of unicast addresses: private (RFC 1918), shared (RFC 6598), unique local (RFC 4193) or
    public. Then `ipamc compile CLUSTER`.
    """
    return error("IPC0204", at, reason, help="use a range of unicast addresses")


def not_canonical(at: At, text: str, canonical: str) -> Diagnostic:
    """IPC0205: a CIDR is in canonical form (RFC 5952).

    ipamc reads other forms and renders the canonical one, in lower case and as short as can be.

    Why: Kubernetes compares podCIDRs as text, so another spelling on a Node counts as a change, which it
    refuses. A search in git for the rendered form does not find the input.

    Run: write the form that the finding shows; then `ipamc compile CLUSTER`.
    """
    return warning("IPC0205", at, f"{shown(text)} is not canonical", help=f"write {canonical}")


def not_cidr(at: At, reason: str, better: str) -> Diagnostic:
    """IPC0206: a CIDR is an address, a slash and a prefix length.

    A single address has the length 32 or 128.

    Why: Kubernetes refuses what is no CIDR. Leading zeros (`010.0.0.0/8`) are octal to some programs, which
    read 8.0.0.0/8, and decimal to others.

    Run: write an address and a prefix length, such as 10.0.0.0/16; then `ipamc compile CLUSTER`.
    """
    return error(
        "IPC0206",
        at,
        reason,
        help=f"write {better}" if better else "write an address and a prefix length, such as 10.0.0.0/16",
    )


def selector_syntax(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0301: a selector is valid in its language.

    A text is in Calico's language, and is read exactly as Calico reads it: `rack == "r1" && has(gpu)`. An
    object is a Kubernetes NodeSelector if it has nodeSelectorTerms, else a LabelSelector.

    Why: a selector that is read otherwise than it was meant gives nodes blocks of another rack, and routes
    of a whole rack are wrong.

    Run: correct it where the finding points; then `ipamc compile CLUSTER`, and `ipamc why NODE` shows which
    pools select a node.
    """
    return error("IPC0301", at, problem, help=way_out)
