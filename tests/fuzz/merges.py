"""Three mutated locks, merged: a conflict is one that a person sees, and no line is lost."""

from __future__ import annotations

import random

from msgspec.structs import replace

from ipamc.lock.file import parse
from ipamc.lock.merge import merge
from ipamc.model.lock import Line
from tests.fuzz.mutate import changed, gentle_records, of_bytes, of_lines, of_records
from tests.fuzz.subjects import Subject, subjects

SIDES = ("base", "ours", "theirs", "trunk")
CONFLICT, MERGED = "conflict", "merged"
TODAY = "2026-12-01"


def made(chance: random.Random) -> Subject:
    """Return a base and what became of it on two sides and on the trunk."""
    locks = [each for each in subjects() if b"\n{" in each.files.get("ipam.lock", b"")]
    subject = chance.choice(locks)
    base = subject.files["ipam.lock"]
    subject = replace(subject, files=dict.fromkeys(SIDES, base))
    for side in SIDES:
        for _ in range(chance.choice((0, 1, 2, 4))):
            grown = changed(subject, side, gentle_records, chance)
            subject = grown if _is_sound(grown.files[side]) else subject
        if side == "base":
            subject = replace(subject, files=dict.fromkeys(SIDES, subject.files[side]))
    if chance.random() < 0.2:
        change = chance.choice((of_records, of_lines, of_bytes))
        subject = changed(subject, chance.choice(SIDES), change, chance)
    return subject


def _is_sound(text: bytes) -> bool:
    lock, found = parse(text, "side")
    return lock is not None and not found


def examine(subject: Subject) -> str:
    """Merge, both ways round, and assert the laws."""
    base, ours, theirs, trunk = (subject.files[side] for side in SIDES)
    merged = merge(base, ours, theirs, trunk, today=TODAY)
    if ours == theirs:  # git asks no driver
        return MERGED
    markers = [
        row for row in (b"<<<<<<< ours", b"=======", b">>>>>>> theirs") if row in merged.text.split(b"\n")
    ]
    assert len(markers) == (3 if merged.conflicts else 0), f"{merged.conflicts}, and the markers {markers}"
    swapped = merge(base, theirs, ours, trunk, today=TODAY)
    assert len(swapped.conflicts) == len(merged.conflicts), "the other way round"
    if merged.conflicts:
        lost = [row for row in (*ours.splitlines(), *theirs.splitlines()) if row not in merged.text]
        readable = all(parse(text, "side")[0] for text in (ours, theirs))
        assert readable or not lost, f"not between the markers: {lost}"
        return CONFLICT
    assert swapped.text == merged.text, "the other way round"
    lock, found = parse(merged.text, "merged")
    assert lock is not None, found
    assert not found, found
    gave_way = {(drop.line.block, drop.line.node) for drop in merged.dropped}
    for line in {*_lines(ours), *_lines(theirs)} - {*_lines(base)}:
        over = [each for each in lock.lines if each.block.overlaps(line.block)]
        assert over or (line.block, line.node) in gave_way, f"{line} was lost"
    return MERGED


def _lines(text: bytes) -> tuple[Line, ...]:
    lock = parse(text, "side")[0]
    return lock.lines if lock else ()
