"""Consent: parsed once from the command line, and applied to the lock's lines.

A consent that matches nothing is a typo, and is refused.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from shlex import quote

from msgspec.structs import replace

from ipamc.lock.file import first_shards, line_at
from ipamc.model.cidr import BITS, Block, CidrError, parse_address, parse_block
from ipamc.model.cluster import Scheme
from ipamc.model.diagnostics import Diagnostic, Related, Span, error, names
from ipamc.model.limits import NAMES_SHOWN, NODES_IN_COMMAND
from ipamc.model.lock import Consent, Line, Lock, Scope, State
from ipamc.model.pool_words import terms
from ipamc.model.selector.selector import parse_calico
from ipamc.model.wording import nearest_name, shown, suggestion


def parse_consent(  # noqa: PLR0913 - an argument for each consent of `ipamc lock`
    *,
    leave: Iterable[str] = (),
    no_pods: Iterable[str] = (),
    adopt: Iterable[str] = (),
    renumber: Iterable[str] = (),
    select: Iterable[str] = (),
    settle: Iterable[str] = (),
    release: Iterable[str] = (),
    rename: Iterable[tuple[str, str]] = (),
    mode: bool = False,
    reshard: bool = False,
) -> Consent:
    """Parse consent: `renumber` takes NODE, CIDR or pool/NAME, `select` selectors of nodes to renumber,
    `release` NODE or CIDR. Raises SelectorError.
    """
    selectors = (Scope(text=text, selector=parse_calico(text)) for text in sorted(set(select)))
    return Consent(
        leave=frozenset(leave),
        no_pods=frozenset(no_pods),
        adopt=frozenset(adopt),
        renumber=(*(_scope(text, pools=True) for text in sorted(set(renumber))), *selectors),
        settle=frozenset(settle),
        release=tuple(_scope(text, pools=False) for text in sorted(set(release))),
        rename=tuple(rename),
        mode=mode,
        reshard=reshard,
    )


def is_selector(text: str) -> bool:
    """Return whether a consent for nodes is a selector in Calico's language: no name has its characters."""
    return bool(re.search(r"[^\w./:,-]", text))


def with_selected(cluster: Scheme, consent: Consent) -> Consent:
    """Return a consent whose selectors know the nodes of the inventory that they select."""
    if not any(scope.selector for scope in consent.renumber):
        return consent
    scopes = []
    for scope in consent.renumber:
        selects, nodes = scope.selector, cluster.nodes if scope.selector else ()
        found = (node.name for node in nodes if selects and selects.matches(node.labels, node.name))
        scopes.append(replace(scope, selected=frozenset(found)))
    return replace(consent, renumber=tuple(scopes))


def renumber_command(cluster: Scheme, lines: Collection[Line]) -> str:
    """Return a command that renumbers the nodes of lines, and no other, as one can type it.
    With two families it names the blocks: the other one of a node stays. Many nodes that a value of a label
    selects are named by it; of more than `NODES_IN_COMMAND` others it names the first.
    """
    command = f"ipamc lock {cluster.name} --renumber"
    if len(cluster.families) > 1:
        scopes = [str(line.block) for line in lines]
    else:
        scopes = list(dict.fromkeys(line.node for line in lines))
        if len(scopes) > NAMES_SHOWN and (selector := _label_of(cluster, frozenset(scopes))):
            return f'{command} "{selector}"'
    rest = len(scopes) - NODES_IN_COMMAND
    more = f" (then the other {rest:,})" if rest > 0 else ""
    return f"{command} {','.join(scopes[:NODES_IN_COMMAND])}{more}"


def _label_of(cluster: Scheme, nodes: frozenset[str]) -> str:
    """Return the shortest selector by one label that selects exactly these nodes, or ""."""
    values: dict[str, set[str]] = defaultdict(set)
    for node in cluster.nodes:
        for key, value in node.labels.items() if node.name in nodes else ():
            values[key].add(value)
    selected: Counter[str] = Counter()
    for node in cluster.nodes:
        selected.update(key for key, some in values.items() if node.labels.get(key) in some)
    there = sum(node.name in nodes for node in cluster.nodes)
    exact = [key for key in values if selected[key] == there == len(nodes)]
    found = min(exact, key=lambda key: (len(values[key]), key), default="")
    every = sorted(values[found]) if found else []
    if not found or len(every) > NAMES_SHOWN or re.search(r"[^\w./-]", "".join((found, *every))):
        return ""
    return f"{found} in {{{', '.join(map(repr, every))}}}" if every[1:] else f"{found} == {every[0]!r}"


def _scope(text: str, *, pools: bool) -> Scope:
    if pools and text.startswith("pool/"):
        return Scope(text=text, pool=text.removeprefix("pool/"))
    try:
        return Scope(text=text, cidr=parse_block(text, pods=False))
    except CidrError:
        return Scope(text=text, node=text)


def apply_consent(cluster: Scheme, lock: Lock, consent: Consent) -> tuple[Lock, list[Diagnostic]]:
    """Return the lock with nodes renamed, lines released, shards grown. O(lines) per rename and release."""
    found: list[Diagnostic] = []
    lines = lock.lines
    for old, new in consent.rename:
        refused = list(rename_refused(cluster, lock, lines, old, new))
        found += refused
        if not refused:
            renamed = (line.node == old and line.state is not State.RELEASED for line in lines)
            both = zip(lines, renamed, strict=True)
            lines = tuple(replace(line, node=new) if it else line for line, it in both)
    present = frozenset(node.name for node in cluster.nodes) if consent.release else frozenset()
    for scope in consent.release:
        chosen = [line for line in lines if line.state is not State.RELEASED and scope.matches(line)]
        # A held block of a named node that has left need not be quarantined first.
        named = [line for line in chosen if line.node not in present and scope.cidr in {None, line.block}]
        held = [line for line in chosen if line.state is State.HELD and line not in named]
        refused = list(release_refused(lock, lines, chosen, held, scope, present))
        found += refused
        if not refused:
            freed = {line.block for line in chosen if line not in held}
            lines = tuple(
                Line(block=line.block, pool=line.pool, node=line.node, state=State.RELEASED)
                if line.block in freed
                else line
                for line in lines
            )
    wanted = first_shards(len(cluster.nodes), cluster.shard_size) if consent.reshard else 0
    return replace(lock, lines=lines, shards=max(lock.shards, wanted)), found


def did_you_mean(scope: Scope, lines: Sequence[Line], *, pools: bool = False) -> str:
    """Return `did you mean …? ` for a consent that matches nothing; or "". `pools`: it may name one."""
    try:
        family, number = parse_address(scope.text.partition("/")[0])
    except CidrError:
        known = {line.node: line.node for line in lines}
        known |= {line.pool: f"pool/{line.pool}" for line in lines if pools and line.pool}
        meant = known.get(nearest_name(scope.text.removeprefix("pool/"), known), "")
    else:
        one = Block(family, number, BITS[family])
        meant = next((str(line.block) for line in lines if line.block.overlaps(one)), "")
    return f"did you mean {meant}? " if meant else ""


def rename_refused(
    cluster: Scheme, lock: Lock, lines: Iterable[Line], old: str, new: str
) -> Iterator[Diagnostic]:
    """IPC0430: `--rename OLD=NEW` names a node that left and a node without blocks."""
    present, words = {node.name: node for node in cluster.nodes}, terms(cluster)
    theirs = [line for line in lines if line.node == old and line.state is not State.RELEASED]
    refused = f"{old} cannot be renamed to {new}"
    if old in present:
        fix = f"take {old} out of {words.home} first"
        yield error("IPC0430", present[old].at, f"{refused}: it is still {words.listed}", help=fix)
    elif not theirs:
        fix = f"ipamc show {cluster.name} --show-blocks lists all lines"
        yield error("IPC0430", Span(lock.path), f"{refused}: it has no line in the lock", help=fix)
    elif new not in present:
        meant = suggestion(new, present, nearest_name)
        fix = f"{meant} ".lstrip() + f"use a name that is {words.listed}"
        yield error("IPC0430", Span(lock.path), f"{refused}: {shown(new)} is not {words.listed}", help=fix)
    for line in lines:
        if theirs and line.node == new and line.in_use:
            also = [Related(line_at(lock, theirs[0]), f"{old} has {theirs[0].block}")]
            never = f"if the block of {new} was never applied: git checkout HEAD -- {quote(lock.path)}"
            command = f"ipamc lock {cluster.name}"
            give_up = f"else: {command} --leave {old}"
            if not any(line.in_use for line in theirs):
                give_up = f"else keep the blocks of {old} in quarantine"
            fix = f"{never}, then {command} --rename {old}={new}; {give_up}"
            message = f"{refused}: {new} holds {line.block}"
            yield error("IPC0430", line_at(lock, line), message, also=also, help=fix)
            break


def release_refused(
    lock: Lock,
    lines: Sequence[Line],
    chosen: Sequence[Line],
    held: Sequence[Line],
    scope: Scope,
    present: frozenset[str],
) -> Iterator[Diagnostic]:
    """IPC0429: `--release` names lines in quarantine, or pending lines, which it cancels."""
    if not chosen:
        message = f"the lock has no line of {scope.text} to release"
        name = f"name a {terms(lock).unit} or a CIDR of the lock"
        fix = f"{did_you_mean(scope, lines)}{name}; ipamc show {lock.cluster} --show-blocks lists all lines"
        yield error("IPC0429", Span(lock.path), message, help=fix)
    elif held and (scope.cidr is not None or len(held) == len(chosen)):
        blocks = names(f"{line.node} ({line.block})" for line in held)
        message = f"{scope.text} cannot be released: held by {blocks}"
        command = f"ipamc lock {lock.cluster}"
        fix = f"release each by its name: {command} --release {held[0].node}"
        if staying := {line.node for line in held} & present:
            move = f"to move a {terms(lock).unit} that stays: {command} --renumber {scope.text}"
            fix = f"take {names(staying)} out of {terms(lock).home}, and {fix}; {move}"
        yield error("IPC0429", line_at(lock, held[0]), message, help=fix)
