"""The words of ipamc, each in a few lines, with what to run and the codes that belong to it. Data for `ipamc explain WORD`.

They are the words of docs/architecture.md, and say what holds; why is told by the rules and by docs/.
"""

from __future__ import annotations

from typing import NamedTuple


class Concept(NamedTuple):
    """A word, and what it means here."""

    name: str
    also: tuple[str, ...]
    """Other words for it."""
    text: str
    run: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()


CONCEPTS = (
    Concept(
        "pool",
        ("pools", "ippool"),
        """A pool has ranges (CIDRs) and a block size, and a selector for the nodes that it serves. Of the pools that
select a node, the one with the highest priority comes first, then the one with the most requirements, then
the first name. A block belongs to the pool whose range contains it, so a pool can be renamed or split.""",
        ("ipamc show CLUSTER", "ipamc suggest pool CLUSTER", "ipamc explain IPPool.spec"),
        ("IPC0207", "IPC0302", "IPC0303"),
    ),
    Concept(
        "block",
        ("blocks", "podcidr", "podcidrs"),
        """A block is the CIDR that one node has for its pods. In kubernetes and cluster-pool mode a node has one
block of each family; in multi-pool and crd mode it has `blocksPerNode` of each pool that serves it. A block
is held, pending, quarantined or released. No address is in two blocks, whatever their states.""",
        ("ipamc which NODE", "ipamc show --show-blocks"),
        ("IPC0407", "IPC0415", "IPC0502"),
    ),
    Concept(
        "lock",
        ("ipam.lock", "lockfile", "state"),
        """clusters/CLUSTER/ipam.lock says which node has which block: a header, then a line for each block in order of
address. ipamc alone writes it, and it is committed. A line goes only when its addresses are given out again.
Who edits it, deletes it or merges it by hand may give a block to a second node: such locks are refused.""",
        ("ipamc lock CLUSTER", "ipamc lock --onto origin/main", "ipamc plan --base origin/main"),
        ("IPC0401", "IPC0402", "IPC0403", "IPC0405", "IPC0413"),
    ),
    Concept(
        "held",
        ("hold",),
        """A held block is the node's now, and is rendered. A node in the inventory keeps it: also where its pool no
longer selects the node, or has another block size today. Only consent moves a node.""",
        ("ipamc which NODE", "ipamc why NODE"),
        ("IPC0304", "IPC0410", "IPC0411", "IPC0415"),
    ),
    Concept(
        "pending",
        (),
        """A pending block is reserved for a node that is to move there. Nothing is rendered for it: first the node is
drained, then `ipamc lock --settle NODE` makes the block held, and the old one goes into quarantine.
`--release` cancels it.""",
        ("ipamc lock CLUSTER --settle NODE", "ipamc lock CLUSTER --release NODE", "ipamc runbook CLUSTER"),
        ("IPC0428", "IPC0433"),
    ),
    Concept(
        "quarantine",
        ("quarantined", "leave", "left", "leaver"),
        """A block whose node left, or moved away, is quarantined: its addresses wait for `quarantineDays` of the Cluster
before another node gets them, because pods, routes and connections may still know them. A node that comes
back gets its block again. `ipamc lock --release` frees one at once.""",
        (
            "ipamc show --state quarantined",
            "ipamc lock CLUSTER --release NODE",
            "ipamc explain quarantineDays",
        ),
        ("IPC0418", "IPC0419", "IPC0422", "IPC0429", "IPC0923"),
    ),
    Concept(
        "released",
        ("release", "free"),
        """A released block can be given out again. Its line stays in the lock until another block takes its addresses.
Free addresses are used first, then released ones, then those whose quarantine is over.""",
        ("ipamc lock CLUSTER --release NODE", "ipamc show --state released"),
        ("IPC0429",),
    ),
    Concept(
        "consent",
        (),
        """What a compile never does by itself is done by an option of `ipamc lock`, once: let many nodes leave, move a
node, free a quarantined block, switch the mode. The effect is in the lines of the lock, where a reviewer sees it.""",
        ("ipamc lock --help", "ipamc plan --base origin/main"),
        ("IPC0406", "IPC0418", "IPC0427"),
    ),
    Concept(
        "renumber",
        ("renumbering", "move", "settle"),
        """A node gets another block in three steps: `ipamc lock --renumber` reserves a pending block; the node is
drained; `ipamc lock --settle` renders it, and the old block is quarantined. A compile never renumbers, and a
newer ipamc moves nothing. The runbook has the commands for a whole pool, in waves.""",
        (
            "ipamc lock CLUSTER --renumber NODE",
            "ipamc runbook CLUSTER --change renumber --pool POOL",
            "ipamc lock CLUSTER --settle NODE",
        ),
        ("IPC0427", "IPC0428", "IPC0431", "IPC0432", "IPC0433"),
    ),
    Concept(
        "budget",
        ("budget.leave", "truncated"),
        """More nodes that leave at once than `budget.leave` allows look like an inventory that was cut off, and are
refused. Up to 3 go without a word, but never more than half.""",
        ("ipamc lock CLUSTER --leave all", "ipamc explain budget.leave"),
        ("IPC0418", "IPC0419", "IPC0420", "IPC0421"),
    ),
    Concept(
        "overflow",
        (),
        """When a pool is full, its nodes get blocks of pools with the same selector, then of those that its `overflow`
names, in this order, whether or not they select the node. A rack never spills into another rack by accident.""",
        ("ipamc explain IPPool.spec.overflow", "ipamc show --what-if +10 CLUSTER"),
        ("IPC0219", "IPC0303"),
    ),
    Concept(
        "pin",
        ("pins",),
        """A pool keeps a block for one node with `pins`. It is the node's first candidate, and stays free for a node
that is not there yet. A node that holds another block stays where it is; `--renumber` moves it to its pin.""",
        ("ipamc explain IPPool.spec.pins", "ipamc lock CLUSTER --renumber NODE"),
        ("IPC0213", "IPC0217", "IPC0306", "IPC0309", "IPC0431"),
    ),
    Concept(
        "pinning",
        (),
        """In multi-pool mode Cilium's operator gives out blocks. `pinning` of the Cluster says how far it may choose:
with `node` every node has pools of its own, so that it gets exactly the blocks of the lock; with `pool` a node
gets blocks of its first pool; with `none` any of the default pool. With the last two the lock says what a node
starts with.""",
        ("ipamc explain Cluster.spec.ipam.pinning", "ipamc explain versions"),
        ("IPC0523", "IPC0525", "IPC0527", "IPC0528", "IPC0534"),
    ),
    Concept(
        "operator modes",
        ("bystander", "adopt mode", "operator"),
        """In cluster-pool mode two may give out blocks: ipamc, and Cilium's operator. With `operator: bystander` the
operator runs with --ipam=kubernetes and gives out nothing. With `operator: adopt` it goes on for nodes that
nobody listed, in an `unlisted` pool of its own: two allocators on one range collide.""",
        ("ipamc explain Cluster.spec.ipam.operator", "ipamc explain unlisted"),
        ("IPC0512", "IPC0515", "IPC0516", "IPC0519"),
    ),
    Concept(
        "unlisted",
        (),
        """A pool with `unlisted: true` is for nodes outside the inventory, such as those of an autoscaler: Cilium's operator
gives out its blocks, and ipamc never places a node there. It needs cluster-pool mode with `operator: adopt`.""",
        ("ipamc explain IPPool.spec.unlisted",),
        ("IPC0221", "IPC0222", "IPC0512", "IPC0516"),
    ),
    Concept(
        "adopt",
        ("adoption",),
        """A node without a line in the lock that already has blocks keeps exactly those: the lock takes over what its Node
or CiliumNode shows. So a running cluster comes into git without renumbering anybody. `operator: adopt` is
another thing: see operator modes.""",
        ("ipamc import CLUSTER dump.json", "ipamc audit CLUSTER dump.json"),
        ("IPC0423", "IPC0425", "IPC0434", "IPC0818"),
    ),
    Concept(
        "evidence",
        (),
        """What a Node or a CiliumNode in the input shows about a block in use. It adopts blocks, settles renumbers, and is
held against the lock: what contradicts it is refused, with both places. A running node whose CiliumNode is not
in the input is refused as well, because its block is not known.""",
        ("ipamc import CLUSTER --refresh dump.json", "ipamc audit CLUSTER dump.json"),
        ("IPC0423", "IPC0434", "IPC0506", "IPC0513"),
    ),
    Concept(
        "reserved",
        ("reserve",),
        """Addresses of a pool's ranges that no node gets. Blocks that lie there already are kept, with a warning.""",
        ("ipamc explain IPPool.spec.reserved", "ipamc which ADDRESS"),
        ("IPC0213", "IPC0416"),
    ),
    Concept(
        "excluded",
        ("excludedcidrs", "exclude"),
        """Addresses that are not for pods of this cluster at all: services, node networks, other clusters. No range may
lie there unless `reserved` covers it, and a held block there is refused.""",
        ("ipamc explain Cluster.spec.excludedCIDRs", "ipamc which ADDRESS"),
        ("IPC0208", "IPC0411"),
    ),
    Concept(
        "address space",
        ("addressspace", "space"),
        """Clusters that name the same `addressSpace` may not share an address, in any state: their pods reach each other,
or their routes meet. A compile of one of them compares it with all others.""",
        ("ipamc suggest pool --address-space NAME --size 19", "ipamc explain addressSpace"),
        ("IPC0701", "IPC0702", "IPC0703"),
    ),
    Concept(
        "shard",
        ("shards", "reshard"),
        """A part of the nodes that is built and applied alone: kustomize takes quadratic time. The number of shards is in
the lock's header, and grows by `ipamc lock --reshard` only; a warning says when.""",
        ("ipamc lock CLUSTER --reshard", "ipamc ci apply CLUSTER/nodes/000"),
        ("IPC0555",),
    ),
    Concept(
        "seeds",
        ("seed",),
        """In multi-pool mode, rendered/seeds/ has CiliumNodes with the blocks that nodes start with. They are in no
kustomization: operator and agent own the list once the agent ran, and a forced apply would take blocks away
from running pods.""",
        ("ipamc runbook CLUSTER",),
        ("IPC0435",),
    ),
    Concept(
        "modes",
        ("mode", "ipam mode", "ipam modes"),
        """Cilium's ways to give addresses to nodes. kubernetes: Nodes' podCIDRs. cluster-pool: CiliumNodes' podCIDRs.
multi-pool: CiliumPodIPPools, several for a node. crd: an entry for each address. A running cluster changes
its mode only where nodes can keep their blocks, by `ipamc lock --mode`, along a runbook.""",
        (
            "ipamc explain Cluster.spec.ipam.mode",
            "ipamc runbook CLUSTER --change mode --to MODE",
            "ipamc explain versions",
        ),
        ("IPC0406", "IPC0502", "IPC0521", "IPC0543"),
    ),
    Concept(
        "runway",
        (),
        """For how many weeks pools have room, by how many nodes came in the past: the history of the lock in git. It is a
range with its method, and no promise.""",
        ("ipamc show CLUSTER --runway", "ipamc show CLUSTER --what-if '+10'"),
        ("IPC0215",),
    ),
    Concept(
        "aggregates",
        ("aggregate", "prefix lists"),
        """The fewest prefixes that cover exactly what is held or pending, by pool or by a label of nodes: for routers
and firewalls.""",
        ("ipamc show --aggregates --by zone", "ipamc show --aggregates --output frr"),
    ),
    Concept(
        "inventory",
        ("nodes", "planned", "nodeinventory"),
        """The nodes of a cluster: Node and CiliumNode objects as kubectl prints them, or a NodeInventory. A node that it
does not list any more leaves. `planned` nodes have blocks before they exist.""",
        ("ipamc import CLUSTER --refresh dump.json", "ipamc explain NodeInventory"),
        ("IPC0418", "IPC0420", "IPC0554"),
    ),
    Concept(
        "targets",
        ("target", "rendered", "manifests"),
        """What a compile writes below rendered/: Node patches, ConfigMap flags, CiliumPodIPPools, CiliumNodes. Which of
them follows from the mode and the Cilium version. The same input gives the same bytes.""",
        ("ipamc compile CLUSTER", "ipamc explain versions"),
        ("IPC0601",),
    ),
    Concept(
        "resize",
        ("usage", "grow", "reclaim"),
        """In modes with several blocks for a node, `ipamc resize` gives nodes more of them and takes unused ones back, by
a dump of what runs and the `usage` of pools.""",
        ("ipamc resize CLUSTER dump.json", "ipamc explain IPPool.spec.usage"),
        ("IPC0602", "IPC0603", "IPC0614"),
    ),
    Concept(
        "tests",
        ("test", "assertion", "assertions"),
        """Documents of kind Tests say what the address plan promises: where nodes have their blocks, what stays free,
how much room there is. A compile makes them, and refuses a plan that breaks one.""",
        ("ipamc test CLUSTER", "ipamc explain Tests"),
        ("IPC1001", "IPC1003", "IPC1007"),
    ),
    Concept(
        "exit codes",
        ("exit code", "exit", "exitcode", "64", "70", "130"),
        """0: done. 1: refused by the input, by policy or by a stale lock; or an I/O or environment error. 2: something
changes, and only `ipamc plan --detailed-exitcode` says so. 64: the command line cannot be read. 70: a bug in
ipamc. 130: interrupted; 128 and the signal's number for other signals.""",
        ("ipamc plan --detailed-exitcode",),
    ),
)


def text(concept: Concept) -> str:
    """Return what is to be said of a concept."""
    rows = [concept.name, "", concept.text]
    if concept.run:
        rows += ["", *(f"  {line}" for line in concept.run)]
    if concept.codes:
        rows += ["", f"Codes: {', '.join(concept.codes)}"]
    return "\n".join(rows) + "\n"
