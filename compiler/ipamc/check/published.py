"""Rules about files of an earlier compile: pools, `spec.ipam.mode`, and the list of Cilium's operator.

Between kubernetes and cluster-pool mode, and from both to multi-pool mode, every node keeps its block if its
objects exist before the flags (tests/e2e/test_mode_change.py, templates/runbooks/mode.j2). The operator of
cluster-pool mode reads its list when it starts, and may run with the old list for some time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ipamc.check import multi_pool
from ipamc.lock.file import line_at, mode_of
from ipamc.lock.file_rules import empty_nodes, keeps_blocks, lost_blocks
from ipamc.model.address_sets import blocks_over, covers, outermost, shared, subtract, without
from ipamc.model.cidr import Block, OverlapIndex, around
from ipamc.model.cilium.operator_list import Assumed, longest_prefix, operator_lists
from ipamc.model.cluster import LOCK_MODES, Cluster, Mode, Pool, Scheme
from ipamc.model.diagnostics import Diagnostic, Related, Span, count, error, names, several
from ipamc.model.lock import Line, Lock, State
from ipamc.model.node import CiliumNode
from ipamc.model.plan import Origin, Plan, Want
from ipamc.model.pool_ranges import Given, pool_ranges
from ipamc.model.pool_words import with_reserved
from ipamc.read.parts import FLAGS
from ipamc.read.rendered import Rendered


def check_published(
    cluster: Cluster, wants: Sequence[Want], shared: frozenset[str], lock: Lock, published: Rendered
) -> Iterator[Diagnostic]:
    """Yield impossible combinations of pools, and changes to published pools; nodes share `shared`."""
    if cluster.mode is not Mode.MULTI_POOL:
        return
    yield from multi_pool.first_and_further(cluster, wants)
    if any(pool.by_pods for pool in cluster.pools):
        yield from multi_pool.selects_for_each_node(cluster, wants, shared)
        yield from multi_pool.pods_on_other_nodes(cluster, wants)
    changed = list(_roles_changed(cluster, shared, lock, published))
    yield from changed
    if changed:
        return
    for pool in cluster.pools:
        if pool.name not in shared or pool.name not in published.pools:
            continue
        before = published.pools[pool.name]
        for family, part in sorted(pool.families.items()):
            size = before.masks.get(family, part.block_size)
            if size != part.block_size:
                also = Related(before.at, f"rendered with a maskSize of {size}")
                yield multi_pool.mask_size_changed(pool, family, size, part.block_size, also)
    yield from allowed_changed(cluster, shared, published)


def allowed_changed(cluster: Cluster, shared: frozenset[str], published: Rendered) -> Iterator[Diagnostic]:
    """IPC0566: `allowFirstIP` and `allowLastIP` of a published pool do not change."""
    before = dict(published.own_allowed)
    before |= {name: (pool.at, pool.allowed) for name, pool in published.pools.items() if name in shared}
    for pool in cluster.pools:
        if pool.name not in before:
            continue
        at, allowed = before[pool.name]
        for name, allows in pool.allows.items():
            if allows is not (name in allowed):
                place = pool.at / "spec" / name if allows else pool.at / "metadata" / "name"
                now, was = str(allows).lower(), str(not allows).lower()
                message = f'{name} of pool "{pool.name}" would change to {now}, but it is immutable'
                fix = f"set {name}: {was} again, and write a new pool"
                yield error("IPC0566", place, message, also=[Related(at, "published here")], help=fix)


def _roles_changed(
    cluster: Cluster, shared: frozenset[str], lock: Lock, published: Rendered
) -> Iterator[Diagnostic]:
    """Yield one block with the name of each pool that becomes shared, or no longer is."""
    held = {line.pool: line for line in reversed(lock.lines) if line.in_use}
    # By pool: the last block that a CiliumNode shows under a former name of the pool.
    shown: dict[str, tuple[CiliumNode, Block, str]] = {}
    for seen in cluster.cilium_nodes:
        for block, name in seen.allocated:
            pool_name = name.removesuffix(f".{seen.name}")
            if (pool_name in shared) == (pool_name != name):
                shown[pool_name] = seen, block, name
    of_nodes = published.of_nodes
    for pool in cluster.pools:
        before, line = published.pools.get(pool.name), held.get(pool.name)
        if line and pool.name in shared and of_nodes and not before:
            label = "pools for each node were rendered here"
            yield pinning_changed(cluster, pool, line.block, line.node, Related(of_nodes, label), published)
        elif line and pool.name not in shared and before:
            also = Related(before.at, "shared pools were rendered here")
            yield pinning_changed(cluster, pool, line.block, line.node, also, published)
        elif pool.name in shown:
            seen, block, name = shown[pool.name]
            also = Related(seen.at, f'it shows the block in pool "{name}"')
            yield pinning_changed(cluster, pool, block, seen.name, also, published)


def pinning_changed(
    cluster: Cluster, pool: Pool, block: Block, node: str, also: Related, published: Rendered
) -> Diagnostic:
    """IPC0536: while nodes hold blocks of a pool, it does not change between shared and divided."""
    if cluster.own_pools and published.of_nodes:
        was, place = "shared by its nodes", "no node's first candidate"
        if also.at == published.of_nodes:
            was, place = "divided among its nodes", "the first candidate of all its nodes"
        renames = f"this renames the pool of {block}, which node {node} holds"
        message = f'pool "{pool.name}" would no longer be {was}: {renames}'
        fix = f"change priority or nodeSelector so that it is {place}"
        return error("IPC0536", pool.at / "metadata" / "name", message, also=[also], help=fix)
    message = f"pinning: {cluster.pinning} would rename the pool of {block}, which node {node} holds"
    fix = f"set pinning: {'pool' if cluster.own_pools else 'node'} again"
    return error("IPC0536", cluster.field("spec", "ipam", "pinning"), message, also=[also], help=fix)


def check_mode_change(
    cluster: Scheme, lock: Lock, text: bytes | None, rendered: Rendered
) -> Iterator[Diagnostic]:
    """Yield why the mode cannot change from the rendered one, or else from that of the lock's `text`.
    The cluster runs the last rendered files, so an edit of the lock's header does not help.
    """
    word = rendered.mode or mode_of(text)
    if word == cluster.mode or word not in LOCK_MODES:
        return
    if lost := lost_blocks(lock, cluster, word, cluster.mode):
        at = rendered.span(FLAGS) if rendered.mode else Span(lock.path)
        yield not_online(cluster, lock, word, lost, Related(at, f"the mode was {word} here"))
        return
    empty = empty_nodes(cluster)
    held = [line for line in lock.lines if line.state is State.HELD and line.node not in empty]
    if held and isinstance(cluster, Cluster):
        yield from held_outside_pools_of_mode(cluster, Mode(word), lock, held)
        yield from strangers_of_mode(cluster, Mode(word))


def not_online(cluster: Scheme, lock: Lock, old: str, lost: list[Line], before: Related) -> Diagnostic:
    """IPC0543: the mode changes only if all nodes can keep their blocks."""
    nodes = {line.node for line in lost}
    cannot = count(len(nodes), "node cannot keep its blocks", "nodes cannot keep their blocks")
    message = f"mode {old} to {cluster.mode}: {cannot}: {names(nodes)}"
    build = f"set mode: {old} again; {cluster.mode} needs a new cluster"
    if keeps_blocks(old, cluster.mode):
        fewer = f"ipamc lock {cluster.name} --renumber {lost[0].node}"
        build = f"set mode: {old} again until each node has one block of a family: {fewer}"
    undo = f"git checkout COMMIT_BEFORE -- {lock.path.removesuffix('ipam.lock')}{{ipam.lock,rendered}}"
    fix = f"{build}; if mode {old} was never applied: {undo}"
    return error("IPC0543", cluster.field("spec", "ipam", "mode"), message, also=[before], help=fix)


def held_outside_pools_of_mode(
    cluster: Cluster, old: Mode, lock: Lock, held: list[Line]
) -> Iterator[Diagnostic]:
    """IPC0544: while the mode changes, every held block lies in a pool."""
    outside = [line for line in held if not line.pool]
    if outside:
        what = f"outside all pools would not be rendered for {cluster.mode} mode"
        message = several([f"{line.node} ({line.block})" for line in outside], "block", what)
        also = [Related(cluster.field("spec", "ipam", "mode"), "the mode changes here")]
        pool = "a pool with these ranges (disabled: true if it should hand out nothing new)"
        fix = f"set mode: {old} again, add {pool}, and compile; then change the mode"
        yield error("IPC0544", line_at(lock, outside[0]), message, also=also, help=fix)


def strangers_of_mode(cluster: Cluster, old: Mode) -> Iterator[Diagnostic]:
    """IPC0545: while the mode changes, each CiliumNode with a block belongs to a node in the inventory."""
    known = {node.name for node in cluster.nodes}
    with_blocks = (seen for seen in cluster.cilium_nodes if seen.blocks or seen.allocated or seen.addresses)
    if strangers := [seen for seen in with_blocks if seen.name not in known]:
        what = f"with blocks of {old} mode and without a node in the inventory"
        message = several([seen.name for seen in strangers], "CiliumNode", what)
        also = [Related(cluster.field("spec", "ipam", "mode"), "the mode changes here")]
        add = "add the nodes to the inventory, or delete their CiliumNodes if they are gone"
        fix = f"{add}; then run kubectl get nodes,ciliumnodes -o json again"
        yield error("IPC0545", strangers[0].at, message, also=also, help=fix)


DUMP = "kubectl get ciliumnodes -o json > ciliumnodes.json"


def check_adopt(plan: Plan, rendered: Rendered) -> Iterator[Diagnostic]:
    """Yield findings about a rendered list that changes."""
    cluster = plan.cluster
    before = rendered.flags
    if not (cluster.operator_adopts and before.lists) or before.bystander:
        return
    if not cluster.cilium_nodes:
        yield from known_in_part(plan, before)
    ranges = [cidr.block for pool in cluster.pools for cidr in pool.ranges]
    old_list = [block for blocks in before.lists.values() for block in blocks]
    if sorted(old_list) != sorted(ranges):  # else an earlier ipamc wrote it, without given blocks
        yield from taken_from_the_operator(cluster, before)
        yield from still_given_out(plan, before)


def check_waiting(plan: Plan, released: Lock, rendered: Rendered) -> Iterator[Diagnostic]:
    """Yield pools by which the operator is newly given blocks in quarantine; `released` has no others."""
    waits = [line for line in released.lines if line.state is State.QUARANTINED]
    if not waits:
        return
    given = outermost(_given_now(plan, rendered))
    before = [block for pool in rendered.pools.values() for blocks in pool.cidrs.values() for block in blocks]
    if rendered.flags.adopts:
        before += [block for blocks in rendered.flags.lists.values() for block in blocks]
    known, written = outermost(before), {line.block: line for line in plan.lock.written}
    ranges = (cidr.block for pool in plan.cluster.pools for cidr in pool.ranges)
    partly = outermost(block for block in ranges if blocks_over(known, block))

    def is_new(line: Line) -> bool:
        """Return whether the operator newly has a block. A list omits what the operator cannot reserve: a
        block that a node had of the operator's pool is not new, though the list may have been without it.
        """
        was = written.get(line.block)
        left = not rendered.mode or bool(was and was.in_use and blocks_over(partly, line.block))
        if was and was.pool == line.pool and left:
            return False
        return not covers(blocks_over(known, line.block), line.block)

    found: dict[str, list[Line]] = {}
    for line in waits:
        if blocks_over(given, line.block) and is_new(line):
            found.setdefault(line.pool, []).append(line)
    for name, lines in found.items():
        yield given_in_quarantine(plan, plan.cluster.pools_by_name[name], lines)


def _given_now(plan: Plan, rendered: Rendered) -> Iterator[Block]:
    """Yield the CIDRs from which the operator gives blocks by this plan."""
    cluster, lines, given = plan.cluster, plan.lock.lines, Given(plan.cluster, plan.lock)
    if cluster.operator_adopts:
        masks = {family: longest_prefix(cluster, family, lines) for family in cluster.families}
        for blocks in operator_lists(cluster, lines, masks).values():
            yield from blocks
    elif cluster.mode is Mode.MULTI_POOL:
        for pool in cluster.pools:
            before = rendered.pools.get(pool.name)
            for family, part in pool.families.items() if pool.name in plan.operator_pools else ():
                published = before.cidrs.get(family, ()) if before else ()
                yield from pool_ranges(cluster, pool, part, given, published).cidrs


def given_in_quarantine(plan: Plan, pool: Pool, lines: list[Line]) -> Diagnostic:
    """IPC0520: Cilium's operator cannot hand out a block that is in quarantine."""
    cluster, line = plan.cluster, lines[0]
    cidr = next(cidr for cidr in pool.ranges if cidr.block.overlaps(line.block))
    what = f'in quarantine, which Cilium\'s operator would give to the next node of pool "{pool.name}"'
    message = several([f"{each.block} of {each.node}" for each in lines], "block", what)
    blocks = ", ".join(str(each.block) for each in lines)
    fix = f"{with_reserved(pool, line.block, blocks)} until the quarantine is over"
    written = {each.block for each in plan.lock.written if each.state is State.QUARANTINED}
    if {each.block for each in lines} <= written:
        release = " ".join(f"--release {each.block}" for each in lines)
        fix += f"; or if nothing uses it any more: ipamc lock {cluster.name} {release}"
    also = [Related(line_at(plan.lock, line), f"{line.node} left it on {line.since}")]
    return error("IPC0520", cidr.at, message, also=also, help=fix)


def known_in_part(plan: Plan, before: Assumed) -> Iterator[Diagnostic]:
    """IPC0517: after its list of CIDRs changes, the operator still reserves all blocks of each node."""
    cluster = plan.cluster
    masks = {family: longest_prefix(cluster, family, plan.lock.lines) for family in cluster.families}
    reason = next(_in_part(before, operator_lists(cluster, plan.lock.lines, masks), masks), None)
    if reason:
        at = cluster.field("spec", "ipam", "operator")
        rest = "hand out the others again"
        message = f"the operator would reserve only some blocks of a node, and {rest}: {reason}"
        fix = f"add the CiliumNodes to the input: {DUMP}"
        yield error("IPC0517", at, message, also=[Related(before.at, "the list was rendered here")], help=fix)


def _in_part(
    before: Assumed, lists: Mapping[int, tuple[Block, ...]], masks: Mapping[int, int]
) -> Iterator[str]:
    kept = set()
    changed: dict[int, str] = {}
    for family, old in before.lists.items():
        new = sorted(block for block in lists.get(family, ()) if block.prefix <= masks[family])
        both = [shared(block, other) for block in new for other in blocks_over(old, block)]
        if both:
            kept.add(family)
            if masks[family] < before.masks[family]:
                yield f"the IPv{family} mask changes from {before.masks[family]} to {masks[family]}"
        if cut := [block for block in both if block.prefix > before.masks[family]]:
            yield f"{cut[0]} is smaller than the /{before.masks[family]} that the operator handed out"
        if lost := next(iter(without(old, new)), None):
            changed[family] = f"{lost} leaves the IPv{family} list"
        elif again := next(_filled(old, new), None):
            changed[family] = f"{again} returns to the IPv{family} list"
    yield from (change for family, change in changed.items() if kept - {family})


def _filled(old: Sequence[Block], new: Iterable[Block]) -> Iterator[Block]:
    """Yield the gaps between old CIDRs that new ones fill."""
    for block in new:
        if over := blocks_over(old, block):
            whole = around(block.family, over[0].first, over[-1].last)
            yield from (piece for piece in subtract(whole, over) if block.contains(piece))


def taken_from_the_operator(cluster: Cluster, before: Assumed) -> Iterator[Diagnostic]:
    """IPC0518: if a range of the operator moves to another pool, the holders of its blocks are known."""
    known = {node.name for node in cluster.nodes}
    strange: dict[Block, list[str]] = {}
    for seen in cluster.cilium_nodes:
        for shown in seen.blocks if seen.name not in known else ():
            strange.setdefault(shown, []).append(seen.name)
    index = OverlapIndex(strange, lambda shown: shown)
    taken = (
        (shared(cidr.block, other), pool.name, cidr)
        for pool in cluster.pools
        for cidr in (pool.ranges if not pool.unlisted else ())
        for other in blocks_over(before.lists.get(cidr.block.family, ()), cidr.block)
    )
    for block, pool, cidr in taken:
        strangers = sorted({name for shown in index.over(block) for name in strange[shown]})
        if not cluster.cilium_nodes:
            who = "but the input has no CiliumNodes, so the holders of its blocks are unknown"
            fix = f"add CiliumNodes to the input, and those nodes to the inventory: {DUMP}"
        elif strangers:
            has = count(len(strangers), "node outside the inventory has", "nodes outside the inventory have")
            who = f"and {has} blocks of it: {names(strangers)}"
            fix = "add these nodes to the inventory: they keep their blocks; or drain and delete them first"
        else:
            continue
        message = f'{block} of pool "{pool}" was in the list of the operator, {who}'
        also = [Related(before.at, f"the operator handed out blocks of {block}")]
        yield error("IPC0518", cidr.at, message, also=also, help=fix)


def still_given_out(plan: Plan, before: Assumed) -> Iterator[Diagnostic]:
    """IPC0519: no new block lies in a range that the operator still hands out."""
    unlisted = {pool.name for pool in plan.cluster.pools if pool.unlisted}
    found = [
        line
        for line in plan.lock.lines
        if line.in_use
        and line.pool not in unlisted
        and plan.origins.get(line.block, Origin.ADOPTED) is not Origin.ADOPTED
        and blocks_over(before.lists.get(line.block.family, ()), line.block)
    ]
    if found:
        line = found[0]
        place = next((node.at for node in plan.cluster.nodes if node.name == line.node), plan.cluster.at)
        what = "in a range that the operator hands out until it restarts"
        message = several([f"{line.block} of {line.node}" for line in found], "new block", what)
        also = [Related(before.at, "the operator runs with this list")]
        apply = "compile and apply the change of pools without these nodes"
        fix = f"{apply}, restart cilium-operator, then add them"
        yield error("IPC0519", place, message, also=also, help=fix)
