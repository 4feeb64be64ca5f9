"""Suggestions for a pool as text, each with its reasons and the lines to paste; and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from ipamc.model.cidr import Block, Range
from ipamc.model.cluster import AddressSpace, Dialect, PoolFamily
from ipamc.model.diagnostics import count
from ipamc.model.pool_words import native_form
from ipamc.report.terminal_text import visible
from ipamc.review.suggest_pool import Near, Suggestion, Suggestions

VERSION = 1

UNKNOWN = (
    "ipamc knows only the networks in the files of these clusters; "
    "add service CIDRs and networks of machines and offices to excludedCIDRs"
)


def about_space(space: AddressSpace) -> str:
    """Return the line with the CIDRs that an address space reserves, and the advice to reserve more."""
    kept = {each.block: each.reason for pool in space.pools for each in pool.reserved}
    said = ", ".join(
        f"{block} ({reason})" if reason else str(block) for block, reason in sorted(kept.items())
    )
    known = f"reserved in address space {space.name}: {said or 'nothing'}"
    return visible(f"{known}; add service CIDRs and networks of machines there")


def text(answer: Suggestions) -> str:
    """Return the suggestions, and the YAML of the first one."""
    if not answer.found:
        return ""
    whose = f"pool {answer.wish.pool.name}" if answer.wish.pool else "a new pool"
    have = count(len(answer.members), "cluster")
    places = count(len(answer.found), "place")
    lines = [f"{places} for a /{answer.wish.size} for {whose} in {_areas(answer)}; taken: ranges of {have}\n"]
    for number, found in enumerate(answer.found, 1):
        bits = answer.block_size - found.block.prefix
        room = count(1 << bits, "block") if bits < 20 else f"2^{bits} blocks"
        lines.append(f"{number}. {found.block}  {room} of /{answer.block_size}\n")
        lines += [f"   {reason}\n" for reason in reasons(answer, found)]
    best = answer.found[0].block
    return "".join([*lines, "\n", f"# {_where(answer, best)}\n", yaml(answer, best)])


def nothing(answer: Suggestions) -> str:
    """Return the line that says why there is no suggestion."""
    family = f"IPv{answer.wish.family}"
    if not answer.areas:
        private = "no pool is in a private network, and no nativeRoutingCIDR is set"
        return f"no {family} network to search: {private}; set one with --from CIDR"
    largest = answer.largest
    most = f"the largest free block is {largest}" if largest else "nothing is free"
    return f"no /{answer.wish.size} is free in {_areas(answer)}: {most}; to search elsewhere: --from CIDR"


def _areas(answer: Suggestions) -> str:
    return ", ".join(f"{area.block} ({area.why})" for area in answer.areas)


def reasons(answer: Suggestions, found: Suggestion) -> Iterator[str]:
    """Yield why a suggestion was chosen, and its disadvantages."""
    # One range may be the nearest for the pool, the cluster and the address space.
    nearest: dict[tuple[Block, Block], Near] = {}
    for near in found.near:
        nearest.setdefault((near.with_range, near.within), near)
    yield from (_nearness(answer, found.block, near) for near in nearest.values())
    yield "fills a gap between ranges" if found.hole == found.block else f"part of the free {found.hole}"
    if found.routed is False and answer.cluster and answer.cluster.native_routing:
        native = answer.cluster.native_routing.block
        yield f"outside nativeRoutingCIDR {native}: agents masquerade its pods until you widen that"


def _nearness(answer: Suggestions, block: Block, near: Near) -> str:
    if near.joined != block:
        return f"completes {near.joined} with ranges of {visible(near.whose)}"
    if not any(area.block.contains(near.within) for area in answer.areas):
        return f"no range of {visible(near.whose)} is near"
    return f"shares {near.within} with a range of {visible(near.whose)} ({near.with_range})"


def _where(answer: Suggestions, block: Block) -> str:
    pool = answer.wish.pool
    asked = [part.ask.space for part in pool.families.values() if part.ask] if pool else []
    if space := next(iter(asked), answer.space.name if answer.space and not pool else ""):
        return visible(f"address space {space} chooses this place or another: ipamc compile {space}")
    if pool is None:
        return f"a new pool with {block}; set its name and nodeSelector"
    if pool.dialect is Dialect.NATIVE:
        return f"pool {visible(pool.name)} in {visible(pool.at.path)} with {block}"
    return f"a pool beside {visible(pool.name)}, with its selector: it serves nodes when the other is full"


def yaml(answer: Suggestions, block: Block) -> str:
    """Return the YAML lines that add a block to the pool, or create a pool with it."""
    family, size, pool = f"ipv{block.family}", answer.block_size, answer.wish.pool
    part = pool.families.get(block.family) if pool else None
    if part and part.ask:
        prefix = f"prefixLength: {part.ask.prefix}, " if part.ask.prefix else ""
        more = f"{{from: {part.ask.space}, {prefix}ranges: {part.ask.ranges + 1}, blockSize: {size}}}"
        return f"spec:\n  {family}: {more}\n"
    if pool is None:
        place = f"cidrs: [{_cidr(block)}]"
        if answer.space:
            place = f"from: {answer.space.name}, prefixLength: {block.prefix}"
        taken = {known.name for member in answer.members for known in member.cluster.pools}
        name = next(name for number in range(1, len(taken) + 2) if (name := f"new-{number}") not in taken)
        selector = 'rack == "CHANGE-ME"' if answer.cluster is None or answer.cluster.pools else ""
        return (
            f"apiVersion: ipamc/v1alpha1\nkind: IPPool\nmetadata: {{name: {name}}}\nspec:\n"
            f"  {family}: {{{place}, blockSize: {size}}}\n"
            f"  nodeSelector: {_quoted(selector)}\n"
        )
    if pool.dialect is not Dialect.NATIVE:
        new = PoolFamily(family=block.family, ranges=(Range(block, pool.at),), block_size=size, at=pool.at)
        beside = replace(pool, name=f"{pool.name}-2", families={block.family: new})
        return f"{native_form(beside, {})}\n"
    ranges = [found.block for found in part.ranges] if part else []
    cidrs = ", ".join(map(_cidr, (*ranges, block)))
    more = "" if part else f"\n    blockSize: {size}"
    return f"spec:\n  {family}:\n    cidrs: [{cidrs}]{more}\n"


def _cidr(block: Block) -> str:
    return _quoted(str(block)) if block.family == 6 else str(block)


def _quoted(value: str) -> str:
    return f"'{value}'" if '"' in value else json.dumps(value)


def record(answer: Suggestions) -> dict[str, Any]:
    """Return the answer for JSON."""
    return {
        "version": VERSION,
        "cluster": answer.cluster.name if answer.cluster else None,
        "pool": answer.wish.pool.name if answer.wish.pool else None,
        "clusters": [member.cluster.name for member in answer.members],
        "family": f"IPv{answer.wish.family}",
        "size": answer.wish.size,
        "blockSize": answer.block_size,
        "from": [{"cidr": str(area.block), "why": area.why} for area in answer.areas],
        "largestFree": str(answer.largest) if answer.largest else None,
        "suggestions": [_record(answer, found) for found in answer.found],
        "notKnown": [UNKNOWN],
    }


def _record(answer: Suggestions, found: Suggestion) -> dict[str, Any]:
    return {
        "cidr": str(found.block),
        "blocks": 1 << (answer.block_size - found.block.prefix),
        "hole": str(found.hole),
        "near": [
            {
                "whose": each.whose,
                "range": str(each.with_range),
                "within": str(each.within),
                "joined": str(each.joined) if each.joined != found.block else None,
            }
            for each in found.near
        ],
        "insideNativeRoutingCIDR": found.routed,
        "why": list(reasons(answer, found)),
        "yaml": yaml(answer, found.block),
    }
