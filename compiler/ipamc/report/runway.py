"""`forecast` as text and as JSON: the weeks for which there is room, and how each number is computed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, astuple

from ipamc.model.diagnostics import count
from ipamc.model.limits import LEAST_CHANGES, LEAST_WEEKS, MOST_JUMPS
from ipamc.model.pool_words import terms
from ipamc.place.quarantine import first_day
from ipamc.report.terminal_text import box, visible, width
from ipamc.report.utilisation import number
from ipamc.review.runway import PoolRunway, Runway

VERSION = 1
COMMIT = 12  # the printed characters of a commit's name


class History(Struct, frozen=True, kw_only=True):
    """The origin of the lock's versions."""

    commits: Sequence[tuple[str, int]]  # name and second since 1970 of each version, the oldest first
    shallow: bool  # the clone has no older versions
    cut: bool  # older versions were not listed
    uncommitted: bool  # the lock on the disk differs from the last version


def text(found: Runway, history: History) -> str:
    """Return the table of one cluster, and below it how its numbers are computed."""
    name, words = visible(found.cluster.name), terms(found.cluster)
    pools = sorted(found.pools, key=_urgency)
    rows = []
    for pool in pools:
        room = (
            count(pool.nodes, words.unit) if pool.nodes < 1_000_000 else f"{number(pool.nodes)} {words.unit}s"
        )
        label = f"{visible(pool.use.pool.name)} /{pool.use.family.block_size}"
        rows.append((label, room, _span(pool), lasts(pool)))
    head = ("POOL", "ROOM FOR", f"{words.block.upper()}S A WEEK", "LASTS")
    table = box(head, [rows], numbers={1}) if rows else "no pools\n"
    if len(found.edges) < 2:
        return f"{name}: git has less than a week of history of its lock: no forecast of growth\n{table}"
    weeks, first = count(len(found.edges) - 1, "week"), _day(found.edges[0].second)
    lines = [line for pool in pools for line in explanation(pool, found.today)]
    below = "".join(f"{line}\n" for line in (*lines, *notes(found, history)))
    return f"{name}: the growth of the last {weeks}, from {first} to {found.today}\n{table}{below}"


def _urgency(pool: PoolRunway) -> tuple[int, float, int]:
    """Return the sort key of a pool: full pools first, then by weeks until full, then by least room."""
    order = ("full", "filling", "nothing", "not filling", "follows", "for pods alone", "disabled")
    soonest = pool.lasts.soonest if pool.lasts and verdict(pool) == "filling" else None
    return order.index(verdict(pool)), math.inf if soonest is None else soonest, pool.nodes


def _span(pool: PoolRunway) -> str:
    if not pool.rates:
        return "?"
    slowest, middle, fastest = pool.rates
    if slowest == fastest:
        return _decimal(middle)
    return f"{_decimal(middle)} ({_decimal(slowest)} to {_decimal(fastest)})"


def verdict(pool: PoolRunway) -> str:
    """Return the verdict: follows, for pods alone, disabled, full, nothing, not filling, or filling."""
    if pool.use.pool.follows:
        return "follows"
    if pool.use.pool.pods_only:
        return "for pods alone"
    if pool.use.pool.disabled:
        return "disabled"
    if not pool.nodes:
        return "full"
    if pool.lasts is None:
        return "nothing"
    return "filling" if pool.rates[-1] > 0 else "not filling"


def lasts(pool: PoolRunway) -> str:
    """Return how long there is room, as a range."""
    found, word = pool.lasts, verdict(pool)
    if word != "filling" or not found:
        return {"nothing": "unknown", "for pods alone": "only for pods"}.get(word, word)
    if found.soonest is None:
        return f"over {found.reach} weeks"
    if found.latest is None:
        return f"{count(found.soonest, 'week')} or more"
    if found.soonest == found.latest:
        return count(found.soonest, "week")
    return f"{found.soonest} to {count(found.latest, 'week')}"


def explanation(pool: PoolRunway, today: str) -> Iterator[str]:
    """Yield how a pool's numbers are computed, or why there are none."""
    name, grown = f"{visible(pool.use.pool.name)} /{pool.use.family.block_size}", pool.growth
    if pool.use.pool.disabled or not pool.nodes:
        return
    for jump in grown.jumps:
        change = _signed(Fraction(jump.change, pool.size))
        share, day = round(100 * jump.share), _day(pool.weeks[jump.week + 1].second)
        yield f"{name}: {change} in the week to {day} is {share} % of the growth: no trend"
    if pool.switched:
        yield f"{name}: {_signed(pool.switched)} blocks from nodes that moved between pools: no growth"
    if not pool.lasts:
        yield f"{name}: unknown: {_silence(pool)}"
        return
    if not grown.changed:
        yield f"{name}: {'otherwise ' if grown.jumps else ''}no change in {count(grown.weeks, 'week')}"
        return
    label = f"{name}: "
    ends = (pool.lasts.soonest, pool.lasts.middle, pool.lasts.latest)
    for word, rate, weeks in zip(("fastest", "middle", "slowest"), reversed(pool.rates), ends, strict=True):
        yield f"{label}{_division(pool, word, rate, weeks, today)}"
        label = " " * width(label)
    weeks_of = count(grown.weeks, "week")
    stretches = f"{grown.stretches:,} stretches of {grown.stretch} to {weeks_of}"
    yield f"{label}of {stretches}; {grown.changed} of {weeks_of} had changes"


def _division(pool: PoolRunway, word: str, rate: Fraction, weeks: int | None, today: str) -> str:
    stretch = f"{word} stretch, {_decimal(rate)} a week"
    if rate <= 0:
        return f"{stretch}: not filling"
    division = f"{stretch}: {number(pool.blocks)} / {_decimal(rate)}"
    if weeks is None:
        reach = pool.lasts.reach if pool.lasts else 0
        return f"{division} is over {count(reach, 'week')}, twice the history, so unknown"
    return f"{division} = {count(weeks, 'week')}, until {first_day(today, 7 * weeks)}"


def _silence(pool: PoolRunway) -> str:
    grown = pool.growth
    without = " without that" if grown.jumps else ""
    if grown.uneven:
        return f"even without {MOST_JUMPS} such weeks, one more makes most of the growth"
    if grown.weeks < LEAST_WEEKS:
        return f"the history has {count(grown.weeks, 'week')}{without}, but a forecast needs {LEAST_WEEKS}"
    changed = f"{count(grown.changed, 'week')} of {grown.weeks} had changes"
    return f"{changed}{without}, but a forecast needs {LEAST_CHANGES}"


def notes(found: Runway, history: History) -> Iterator[str]:
    """Yield notes about the history."""
    if history.commits:
        (first, _), (last, second) = history.commits[0], history.commits[-1]
        number = count(len(history.commits), "commit")
        span = f"{first[:COMMIT]} to {last[:COMMIT]} ({_day(second + 86_400)})"
        changed = f"{number} among the first parents changed the lock, {span}"
        yield f"history: {changed}; {found.read} read, at most one a week"
    if history.shallow:
        yield "this clone is shallow and lacks older history: git fetch --unshallow"
    if history.cut:
        yield "older commits are not listed"
    for version in found.unread[:3]:
        yield f"commit {history.commits[version][0][:COMMIT]} has an unreadable lock, which is skipped"
    if history.uncommitted:
        disk = "the lock on the disk differs from the committed one"
        yield f"{disk}: the room comes from the disk, the history ends at HEAD"
    if operator := operator_pools(found):
        of = ", ".join(visible(name) for name in operator[:8])
        yield f"Cilium's operator gives out blocks of {of}: the lock has only what nodes start with"


def operator_pools(found: Runway) -> list[str]:
    """Return the names of the pools whose blocks Cilium's operator gives to running nodes."""
    shared, adopts = found.cluster.shared_pools, found.cluster.operator_adopts
    return [pool.name for pool in found.cluster.pools if shared or (adopts and pool.unlisted)]


def _signed(value: Fraction) -> str:
    return f"{'+' if value > 0 else ''}{_decimal(value)}"


def _decimal(value: Fraction) -> str:
    """Return a number with up to two decimals, rounded half to even: the same on every machine."""
    hundredths = round(value * 100)
    whole, rest = divmod(abs(hundredths), 100)
    text = f"{whole:,}.{rest:02}".rstrip("0").rstrip(".")
    return f"-{text}" if hundredths < 0 else text


def _day(second: int) -> str:
    """Return the day that contains a second, ISO 8601 in UTC; "no day" outside of the calendar."""
    try:
        return (date(1970, 1, 1) + timedelta(days=second // 86_400 - 1)).isoformat()
    except OverflowError:
        return "no day"


def record(found: Runway, history: History) -> dict[str, Any]:
    """Return the runway for JSON, with every week."""
    return {
        "cluster": found.cluster.name,
        "history": {
            "commits": len(history.commits),
            "read": found.read,
            "first": history.commits[0][0] if history.commits else None,
            "last": history.commits[-1][0] if history.commits else None,
            "shallow": history.shallow,
            "cut": history.cut,
            "uncommitted": history.uncommitted,
            "unreadable": [history.commits[version][0] for version in found.unread],
        },
        "operatorPools": operator_pools(found),
        "pools": [_pool_record(pool, found.today) for pool in found.pools],
    }


def _pool_record(pool: PoolRunway, today: str) -> dict[str, Any]:
    grown, words = pool.growth, ("slowest", "middle", "fastest")
    jumps = [
        {"weekTo": _day(pool.weeks[week + 1].second), "addresses": change, "share": float(round(share, 4))}
        for week, change, share in map(astuple, grown.jumps)
    ]
    rates = {word: float(round(rate, 4)) for word, rate in zip(words, pool.rates, strict=False)}
    return {
        "pool": pool.use.pool.name,
        "family": f"IPv{pool.use.family.family}",
        "blockSize": pool.use.family.block_size,
        "room": {"nodes": pool.nodes, "blocks": pool.blocks},
        "verdict": verdict(pool),
        "lasts": pool.lasts and asdict(pool.lasts),
        "growth": {"unit": f"blocks of /{pool.use.family.block_size} a week", **rates} if rates else None,
        "method": {
            "name": "stretches",
            "weeks": grown.weeks,
            "changed": grown.changed,
            "shortestStretch": grown.stretch,
            "stretches": grown.stretches,
            "jumps": jumps,
        },
        "explanation": [line.strip() for line in explanation(pool, today)],
        "weeks": [
            {"to": _day(week.second), "addresses": week.held, "own": week.own, "moved": week.switched}
            for week in pool.weeks
        ],
    }
