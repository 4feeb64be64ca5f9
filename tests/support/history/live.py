"""What the live cluster shows in a history: nodes with their blocks, nodes that were created again, and what Cilium's operator gave out."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Refused
from ipamc.model.lock import Consent
from tests.support.history.edits import inside, pick
from tests.support.history.machine import History, family, few, has, names, racks, rarely, some
from tests.support.history.model import NODE_NAMES, RACKS, Node, World, cell, compiled, published_pools

NOT_ABOUT_EVIDENCE = frozenset({"IPC0302", "IPC0303", "IPC0305", "IPC0306", "IPC0434", "IPC0438", "IPC0538"})
"""What may be wrong with a cluster although the operator gives every address to one node at most: what a node
without a CiliumNode started with is gone, and there is no other block for it, or it runs; a pin names what another
node has; so many nodes have other blocks that somebody has to say that it is this cluster; or what was reserved around
the block of a node would divide a published range now that the node has left it, while others have blocks there."""


class LiveHistory(History):
    """One cluster over time, edited by people and changed by its nodes and Cilium's operator."""

    @rule(which=some, every=st.booleans())
    def the_cluster_shows_what_it_was_given(self, which: int, *, every: bool) -> None:
        self._nothing_new()
        live: dict[str, list[Block]] = {}
        for row in self.rows:
            if row.state == "held" and row.node in self.next.nodes:
                live.setdefault(row.node, []).append(row.block)
        chosen = pick(list(live), which)
        for node, blocks in live.items():
            if every or node == chosen:
                self.next.show(node, blocks)
        self.commit()

    @precondition(has("pending"))
    @rule(which=some, part=st.booleans())
    def a_node_shows_its_next_blocks(self, which: int, *, part: bool) -> None:
        self._nothing_new()
        waiting = [row for row in self.rows if row.state == "pending" and row.node in self.next.nodes]
        if row := pick(waiting, which):
            mine = [each for each in self.rows if each.node == row.node]
            moving = {
                (each.block.family, "" if self.next.one_block else each.pool)
                for each in mine
                if each.state == "pending"
            }
            coming = [each.block for each in mine if each.state == "pending"]
            staying = [
                each.block
                for each in mine
                if each.state == "held"
                and (each.block.family, "" if self.next.one_block else each.pool) not in moving
            ]
            self.next.show(row.node, coming[:1] if part else sorted([*coming, *staying]))
        self.commit()

    @rule(
        node=names,
        which=some,
        family=family,
        where=some,
        width=st.sampled_from([27, 28, 28, 29]),
        kept=st.integers(0, 2),
        listed=st.booleans(),
        stray=rarely,
    )
    def the_cluster_shows_something(  # noqa: PLR0913 - each says one thing about the block
        self,
        node: str,
        which: int,
        family: int,
        where: int,
        width: int,
        kept: int,
        *,
        listed: bool,
        stray: bool,
    ) -> None:
        """A node that joined by itself, one that was forgotten, or one that is not what it was told to be."""
        family = family if stray or family in self.next.families else self.next.families[0]
        pool = self.pool(which)
        block = inside(pool, family, where, width) if pool and not stray else cell(family, where, width)
        if listed or self.mode == "kubernetes":
            self.next.nodes.setdefault(node, Node("x", live=True))
        self.next.show(
            node, [block] if self.next.one_block else sorted({*self.next.shown(node)[:kept], block})
        )
        self.commit()

    @precondition(has("quarantined", "released"))
    @rule(which=some)
    def a_node_shows_what_it_left(self, which: int) -> None:
        """Or what another one left: it was restored from a backup."""
        left = [row for row in self.rows if row.state in {"quarantined", "released"}]
        row = pick(left, which)
        name = (
            row.node
            if row and (row.node in self.next.nodes or self.mode != "kubernetes")
            else self.node(which)
        )
        if row and name:
            self.next.show(name, [row.block])
        self.commit()

    @rule(which=some, every=rarely)
    def the_cluster_is_not_looked_at(self, which: int, *, every: bool) -> None:
        """Nothing is shown: the export is without it, or was made before the first apply."""
        for name in (
            {**self.next.nodes, **self.next.cilium_nodes} if every else filter(None, [self.node(which)])
        ):
            self.next.forget(name)
        if shown := pick(list(self.next.cilium_nodes), which):
            self.next.forget(shown)
        self.commit()

    @precondition(lambda self: any(node.live for node in self.next.nodes.values()))
    @rule(which=some, stale=rarely)
    def a_node_is_created_again(self, which: int, *, stale: bool) -> None:
        """It was deleted and joined again: it has another uid and no podCIDRs. Its CiliumNode is gone too, or the export of it is older."""
        name = pick([name for name, node in self.next.nodes.items() if node.live], which)
        if name:
            self.next.nodes[name].created += 1
            self.next.nodes[name].pod_cidrs = []
            if not stale:
                self.next.forget(name)
        self.commit()

    @rule(
        first=some,
        count=few,
        rack=racks,
        told=st.sampled_from(["nothing", "empty", "empty", "each", "all", "typo"]),
    )
    def running_nodes_join(self, first: int, count: int, rack: str, told: str) -> None:
        """They are Ready; their CiliumNodes are empty, or somebody says that they have no pods."""
        new = {NODE_NAMES[(first + number * 3) % len(NODE_NAMES)] for number in range(count)}
        for name in sorted(new - self.next.nodes.keys()):
            self.next.nodes[name] = Node(rack, live=True, ready=True)
            if told == "empty" and self.mode != "kubernetes":
                self.next.show(name, [])
        agreed = {"each": new, "all": {"all"}, "typo": {"nobody"}}.get(told)
        self.commit(Consent(no_pods=frozenset(agreed)) if agreed else None)

    @precondition(lambda self: self.disputed)
    @rule(which=some, every=rarely)
    def the_cluster_is_right(self, which: int, *, every: bool) -> None:
        """A disputed node adopts what it shows, and holds it then, or in a second step if another one was to have that."""
        self._nothing_new()
        name = pick(self.disputed, which)
        if name and self.commit(Consent(adopt=frozenset({"all" if every else name}))):
            if name in self.disputed:
                self.commit(Consent(adopt=frozenset({name})))
            held = {row.block for row in self.rows if (row.node, row.state) == (name, "held")}
            shown = self.world.shown(name)
            foreign = self.mode == "multi-pool" and not any(map(self.world.owner, shown))
            assert name not in self.disputed or held.issuperset(shown) or foreign, (shown, held)

    @precondition(lambda self: self.mode == "kubernetes")
    @rule(which=some, name=names, what=st.sampled_from(["its own", "its own", "its line", "another's"]))
    def a_cilium_node_is_looked_at(self, which: int, name: str, what: str) -> None:
        """In kubernetes mode, too, there are CiliumNodes, also of nodes that are not listed."""
        node = self.node(which) if what != "another's" else name
        if node:
            of = self.node(which) if what == "another's" else node
            lines = [row.block for row in self.rows if row.node == of and row.state == "held"]
            shown = lines if what == "its line" else self.next.shown(of or node)
            self.next.cilium_nodes[node] = [(block, "") for block in shown]
        self.commit()

    @precondition(lambda self: self.mode == "crd")
    @rule(
        node=names,
        which=some,
        family=family,
        where=some,
        count=st.integers(1, 20),
        whose=st.sampled_from(["own", "own", "listed", "any"]),
    )
    def a_node_shows_addresses(
        self, node: str, which: int, family: int, where: int, count: int, whose: str
    ) -> None:
        """Some of a block, as `spec.ipam.pool` lists them; beside the podCIDRs that it shows."""
        family = family if family in self.next.families else self.next.families[0]
        pool, row = self.pool(which), pick([row for row in self.rows if row.state == "held"], which)
        block = inside(pool, family, where, 28) if pool else cell(family, where, 28)
        if whose == "own" and row and row.node in self.next.nodes:
            node, block = row.node, row.block
        elif whose == "listed":
            self.next.nodes.setdefault(node, Node("x", live=True))
        self.next.cilium_nodes.setdefault(node, [])
        bits = 32 if block.family == 4 else 128
        self.next.addresses[node] = [
            Block(block.family, block.first + number, bits) for number in range(min(count, block.size))
        ]
        self.commit()

    # Cilium's operator.

    @precondition(lambda self: bool(self.lock and self.world.operators()))
    @rule(
        which=some,
        name=names,
        how=st.sampled_from(["more", "more", "fewer", "others", "swap", "none"]),
        where=some,
        who=st.sampled_from(["listed", "listed", "listed", "joins", "a stranger"]),
    )
    def the_operator_gives_blocks(self, which: int, name: str, how: str, where: int, who: str) -> None:
        """Whatever it gives to one node at a time is followed: it is no mistake of anybody."""
        self._nothing_new()
        world = self.next
        node = self._customer(which) if who == "listed" else name
        # A node that ipamc gave its block is no customer of the operator in a mode of one block.
        if node is None or (who != "listed" and node in world.nodes):
            return
        expected = NOT_ABOUT_EVIDENCE
        if who == "joins":
            world.nodes[node] = Node(RACKS[which % 3])
            expected |= self._refused(world)  # a node that no pool serves may not join, whatever it shows
            world.nodes[node] = Node(RACKS[which % 3], live=True, ready=True)
            how = "others"
        mine = self._has(node)
        other = self._customer(which + 1)
        if how == "swap" and other and other != node:
            theirs = self._has(other)
            world.show(other, mine)
            world.show(node, theirs)
        elif how == "fewer":
            world.show(node, mine[: where % (len(mine) + 1)] if not world.one_block else mine)
        else:
            new = [] if how == "none" else self._free(node, where, mine)
            keep = [] if world.one_block or how != "more" else mine
            families = {block.family for block in new}
            keep += [block for block in mine if world.one_block and block.family not in families]
            world.show(node, sorted({*keep, *new}))
        consistent = self._is_consistent()
        self.commit(Consent(adopt=frozenset({"all"})) if where % 2 else None)
        if consistent:
            codes = {each.code for each in self.reasons}
            assert codes <= expected, [each.message for each in self.reasons]

    def _refused(self, world: World) -> frozenset[str]:
        """Return the codes with which a compile refuses a world; none where it does not."""
        world.published = published_pools(self.files)
        try:
            compiled(world, self.lock, self.files, today=self.today.isoformat())
        except Refused as refused:
            return frozenset(each.code for each in refused.diagnostics if each.severity.name == "ERROR")
        return frozenset()

    def _customer(self, which: int) -> str | None:
        """Name a node of the inventory to which the operator gives blocks."""
        ours = self.next.operators()
        if self.mode == "multi-pool":
            return self.node(which)
        held = [row for row in self.rows if row.state == "held"]
        lines = {row.node for row in held if row.pool in ours} - {
            row.node for row in held if row.pool not in ours
        }
        return pick([name for name in self.next.nodes if name in lines], which)

    def _has(self, node: str) -> list[Block]:
        """Return the blocks of the operator that a node shows, or starts with."""
        ours = self.next.operators()
        lines = [
            row.block for row in self.rows if row.node == node and row.state == "held" and row.pool in ours
        ]
        return self.next.given(node) or lines

    def _free(self, node: str, where: int, mine: list[Block]) -> list[Block]:
        """Return blocks of one of the operator's pools that no node shows, whatever the lock has there: one of each family."""
        world = self.next
        names = sorted(world.operators())
        if not names:  # the node that left was the only one with further pools
            return []
        pool = world.pools[names[where % len(names)]]
        taken = [block for name, block in world.evidence() if name != node]
        taken += [*pool.reserved, *world.excluded, *mine]
        found = []
        for each in world.families:
            blocks = [
                inside(pool, each, at, pool.size) for at in range(where, where + 16) if pool.ranges.get(each)
            ]
            free = [block for block in blocks if not any(block.overlaps(each) for each in taken)]
            found += free[:1]
        return found

    def _is_consistent(self) -> bool:
        """Tell whether no two nodes show an address."""
        shown = sorted(self.next.evidence(), key=lambda pair: pair[1])
        return all(
            one == other or not block.overlaps(inner) for (one, block), (other, inner) in pairwise(shown)
        )

    # Moves.

    @precondition(has("pending"))
    @rule(which=some, single=st.booleans())
    def a_node_is_settled_before_it_is_looked_at_again(self, which: int, *, single: bool) -> None:
        """What was exported before shows the old block, which is no mistake; then the new one is shown."""
        self._nothing_new()
        waiting = [row for row in self.rows if row.state == "pending" and row.node in self.next.nodes]
        row = pick(waiting, which)
        if row is None:
            return
        ours = self.next.operators()
        mine = [each for each in self.rows if each.node == row.node]
        if any(each.pool in ours for each in mine):
            return
        old = [each.block for each in mine if each.state == "held"]
        self.next.show(row.node, old)
        if self.mode == "crd" and single:
            bits = 32 if old[0].family == 4 else 128
            self.next.show(row.node, old[1:])
            self.next.addresses[row.node] = [Block(old[0].family, old[0].first + 1, bits)]
        if self.commit() or not self.reasons:
            settled = self.commit(Consent(settle=frozenset({row.node})))
            assert settled, [each.message for each in self.reasons]
            self.next.show(
                row.node, [each.block for each in self.rows if each.node == row.node and each.state == "held"]
            )
            assert self.commit(), [each.message for each in self.reasons]
