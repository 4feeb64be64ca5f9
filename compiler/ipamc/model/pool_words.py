"""Advice in findings on what to write into a pool, whose fields have other names in each dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ipamc.model.cidr import BITS
from ipamc.model.cluster import AddressSpace, Dialect, Pool, Scheme, SpaceMode
from ipamc.model.follows import networks
from ipamc.model.limits import SELECTOR_SHOWN
from ipamc.model.lock import Lock

FLAG_FIELDS = {"allowFirstIP": "allow-first-ip", "allowLastIP": "allow-last-ip"}
"""Fields of a CiliumPodIPPool and their names in `auto-create-cilium-pod-ip-pools`, in Helm's order."""

_ONE_LINE = 1 << 30
"""More columns than any document has."""


def native_form(pool: Pool, fields: Mapping[str, Any]) -> str:
    """Return a pool as a native IPPool with further fields of `spec`: a whole YAML document in one line."""
    import yaml  # noqa: PLC0415 - only findings need it

    spec: dict[str, Any] = {
        f"ipv{family}": {"cidrs": [str(cidr.block) for cidr in part.ranges], "blockSize": part.block_size}
        for family, part in pool.families.items()
    }
    if source := pool.selector.source:
        spec["nodeSelector"] = source if len(pool.selector.canonical) <= SELECTOR_SHOWN else "…"
    if pool.disabled:
        spec["disabled"] = True
    spec |= {name: selector.label_selector or selector.source for name, selector in pool.by_pods.items()}
    document = {
        "apiVersion": "ipamc/v1alpha1",
        "kind": "IPPool",
        "metadata": {"name": pool.name, **({"labels": dict(pool.labels)} if pool.labels else {})},
        "spec": {**spec, **fields},
    }
    text: str = yaml.safe_dump(
        document, default_flow_style=True, sort_keys=False, width=_ONE_LINE, allow_unicode=True
    )
    return text.strip()


def with_native_field(pool: Pool, field: str, value: object) -> str:
    """Return how to give a pool of another dialect a field that only native pools have."""
    return f"write the pool in the native form, which has {field}: {native_form(pool, {field: value})}"


def with_reserved(pool: Pool, cidr: object, what: str) -> str:
    """Return how to reserve a CIDR in a pool; `what` names it if it only has to be added."""
    if pool.dialect is Dialect.NATIVE:
        return f"add {what} to the pool's reserved"
    return with_native_field(pool, "reserved", [str(cidr)])


def no_new_blocks(pool: Pool) -> str:
    """Return how to keep a pool from giving new blocks; held ones stay."""
    if pool.dialect is Dialect.CLUSTER_CIDR:
        return with_native_field(pool, "disabled", value=True)
    return "set disabled: true"


def why_only_pins(pool: Pool) -> str:
    """Return why a pool gives out only pins, as a predicate; "" if it gives out more."""
    if pool.follows:
        return f"follows {networks(pool)}"
    if pool.pods_only:
        return "serves only pods"
    return "is disabled" if pool.disabled else "serves only unlisted nodes" if pool.unlisted else ""


def block_size(pool: Pool, family: int, size: int) -> str:
    """Return the field that sets a prefix length of blocks."""
    if pool.dialect is Dialect.CLUSTER_CIDR:
        return f"perNodeHostBits: {BITS[family] - size}"
    return f"blockSize: {size}"


def larger_block(pool: Pool) -> str:
    """Return the advice to give nodes more addresses each."""
    field = "more perNodeHostBits" if pool.dialect is Dialect.CLUSTER_CIDR else "a shorter blockSize"
    return f"use a larger block ({field})"


def larger_block_for_some(pool: Pool) -> str:
    """Return the advice to give some of a pool's nodes more addresses each."""
    if pool.dialect is Dialect.NATIVE and not pool.follows:
        return "use a larger block for these nodes (blockSizes)"
    return larger_block(pool)


def smaller_block(pool: Pool) -> str:
    """Return the advice to give nodes fewer addresses each."""
    field = "fewer perNodeHostBits" if pool.dialect is Dialect.CLUSTER_CIDR else "a longer blockSize"
    return f"use a smaller block ({field})"


def other_family(pool: Pool, family: int) -> str:
    """Return how to give a pool a range of a further family."""
    if pool.dialect is not Dialect.CALICO:
        return f"add ipv{family} to the pool"
    native = f"write pool {pool.name} in the native form and add ipv{family}: {native_form(pool, {})}"
    return f"a {pool.dialect} has one family; {native}"


def range_for(prefix: int, blocks: int) -> int:
    """Return the prefix length of a range with at least `blocks` blocks of a prefix length."""
    return max(prefix - max(blocks - 1, 0).bit_length(), 1)


def suggest_pool(cluster: Scheme, pool: Pool, family: int, size: int) -> str:
    """Return the command line that finds free space for a pool."""
    of = "" if len(cluster.families) == 1 else f" --family IPv{family}"
    return f"ipamc suggest pool {cluster.name} --pool {pool.name} --size {size}{of}"


def more_room(cluster: Scheme, pool: Pool, family: int, size: int) -> str:
    """Return how to give a pool more addresses, a range with a given prefix length.
    Pools of other dialects have one CIDR of a family. If nodes have one block, another pool with the same
    selector replaces a full one; elsewhere it would give every node more blocks.
    """
    if ask := pool.families[family].ask:
        another = f"set ranges: {ask.ranges + 1} in ipv{family} of pool {pool.name}"
        return f"{another}, and let address space {ask.space} choose it: ipamc compile"
    if isinstance(cluster, AddressSpace):
        return f"add a /{size} to the cidrs of {pool.name}"
    search = suggest_pool(cluster, pool, family, size)
    if pool.dialect is Dialect.NATIVE:
        return f"append a free /{size} to cidrs of pool {pool.name}: {search}"
    if cluster.mode.one_block:
        another = f"another {pool.dialect} with the nodeSelector of {pool.name} and a free /{size}"
        return f"add {another}: {search}"
    native = f"write pool {pool.name} in the native form: {native_form(pool, {})}"
    return f"a {pool.dialect} has one CIDR; {native}; append a free /{size} to cidrs: {search}"


class Terms(NamedTuple):
    """Words for the owner of blocks: a node, or a range that a pool requests from an address space."""

    unit: str
    block: str  # what it owns
    owner: str
    listed: str  # where present owners are listed
    home: str  # what to remove such an owner from
    selector: str  # the field that selects owners
    size: str  # the field of a prefix length
    left: str  # what owners with blocks did that are listed no more
    none: str  # no owner is listed
    again: str  # how to list them again
    keeps: str  # why a held block stays
    gone: str  # why the block of a former owner stays for a while
    other: str = ""  # the question if all of them left


_NODES = Terms(
    unit="node",
    block="block",
    owner="node",
    listed="in the inventory",
    home="the inventory",
    selector="nodeSelector",
    size="blockSize",
    left="left the inventory",
    none="the inventory is empty",
    again="add the nodes again (kubectl get nodes,ciliumnodes -o yaml > nodes.yaml)",
    keeps="a node keeps the block it holds",
    gone="its node left the inventory",
    other="is this the inventory of another cluster? ",
)
_RANGES = Terms(
    unit="range",
    block="range",
    owner="cluster",
    listed="requested by a cluster",
    home="its cluster",
    selector="clusterSelector",
    size="prefixLength",
    left="are no longer requested",
    none="no cluster requests a range",
    again="restore the folders of their clusters, and `from` in their pools",
    keeps="a pool keeps the range it has",
    gone="no cluster requests it any more",
)


def terms(of: Scheme | Lock | str) -> Terms:
    """Return the words for a cluster or an address space, or for a line by its name: a range has a slash."""
    return _RANGES if ("/" in of if isinstance(of, str) else of.mode is SpaceMode.SPACE) else _NODES
