"""A plan whose base has mutated inputs, a mutated lock and mutated rendered files: what a revision of long ago, or a stranger's, may have."""

from __future__ import annotations

import random

from msgspec.structs import replace

from ipamc.model.diagnostics import Refused
from ipamc.pipeline import Compilation, compile_cluster
from ipamc.review.diff import UnreadableBase, compare, read_base
from ipamc.workspace.disk import assets
from tests.fuzz.laws import a_plan_can_be_shown
from tests.fuzz.mutate import gentle, harsh
from tests.fuzz.subjects import BASE, RENDERED, Subject, of_a_minor, subjects

PLANNED, UNREADABLE = "planned", "unreadable"


def made(chance: random.Random) -> Subject:
    """Return a case that compiles, and a base that is what it compiles to, mutated."""
    while True:
        head = of_a_minor(chance.choice(subjects()), chance)
        done = _compiled(head)
        if done:
            break
    rendered = {f"{RENDERED}{path}": text.encode() for path, text in done.files.items()}
    base = replace(head, files={**head.files, "ipam.lock": done.lock.encode(), **rendered})
    for _ in range(chance.choice((1, 1, 2, 4))):
        base = chance.choice((gentle, harsh))(base, chance)
    return replace(head, files={**head.files, **{f"{BASE}{name}": text for name, text in base.files.items()}})


def _compiled(subject: Subject) -> Compilation | None:
    key = subject.name, tuple(sorted(subject.files.items()))
    if key not in _KNOWN:
        try:
            _KNOWN[key] = compile_cluster(subject.inputs())
        except Refused:
            _KNOWN[key] = None
    return _KNOWN[key]


_KNOWN: dict[tuple[str, tuple[tuple[str, bytes], ...]], Compilation | None] = {}
"""What cases compile to: few of them, and each many times the head of a plan."""


def examine(subject: Subject) -> str:
    """Plan; a base that cannot be read is told as such."""
    files = {name.removeprefix(BASE): text for name, text in subject.files.items() if name.startswith(BASE)}
    head = replace(
        subject, files={name: text for name, text in subject.files.items() if not name.startswith(BASE)}
    )
    rendered = {
        name.removeprefix(RENDERED): text for name, text in files.items() if name.startswith(RENDERED)
    }
    done = _compiled(head)
    assert done is not None
    inputs = replace(head, files=files).inputs()
    try:
        base = read_base(inputs, rendered)
    except UnreadableBase:
        return UNREADABLE
    a_plan_can_be_shown(compare(base, done, inputs.today, assets("templates/runbooks")), done)
    return PLANNED
