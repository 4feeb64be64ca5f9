"""What is mutated: the case files, as bytes; and how a mutated one is compiled and shown to people."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.cilium.versions import minors
from ipamc.pipeline import Inputs
from ipamc.read.parts import BINDING
from tests.support import casefile
from tests.support.casefile import Case

LARGEST = 64 << 10
"""The most bytes of all files of a mutated case: what it costs to read is a matter of tools/benchmarks/."""
LINE_END = "\n"
RENDERED, BASE = "rendered/", "base/"


class Subject(Struct, frozen=True, dict=True):
    """A case without what it expects."""

    name: str
    case: Case
    """Its header; its files are not used."""
    files: Mapping[str, bytes]
    """Inputs, `ipam.lock` and files below `rendered/`, by the names that cases have."""

    @property
    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(map(len, self.files.values()))

    def inputs(self) -> Inputs:
        """Return what it hands to the compiler."""
        empty = casefile.inputs(replace(self.case, files={}))
        published = {
            path.removeprefix(RENDERED): text
            for path, text in self.files.items()
            if path.startswith(RENDERED)
        }
        return replace(
            empty,
            sources={
                f"{casefile.FOLDER}/{path}": text
                for path, text in sorted(self.files.items())
                if path != "ipam.lock" and not path.startswith((RENDERED, BASE))
            },
            lock=self.files.get("ipam.lock"),
            published=published,
            rendered=empty.rendered or bool(published),
        )

    def text(self, said: str) -> str:
        """Write it as a case file that begins with `said`; bytes that are not UTF-8 are spelled out, and marked as such."""
        flags = "".join(
            f"#! {name}{f': {value}' if value else ''}\n"
            for name, values in self.case.flags.items()
            if name != "shows"
            for value in values
        )
        spelled = "".join(
            f"{name} is not UTF-8: here its bytes are spelled out.\n"
            for name, text in self.files.items()
            if not _is_text(text)
        )
        files = "".join(
            f"-- {name} --\n{text.decode(errors='backslashreplace').removesuffix(LINE_END)}\n"
            for name, text in self.files.items()
        )
        return f"{said}\n{spelled}{flags}{files}-- want/report --\n"


def _is_text(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@cache
def subjects() -> tuple[Subject, ...]:
    """Return every case that is small enough, those of the version table with their `1.x`.

    A case with templates of its own shows what a bug of ours would do: it is left out.
    """
    found = []
    for label in casefile.names():
        case = casefile.load(label)
        if any(name.startswith("templates/") for name in case.files):
            continue
        whole = casefile.inputs(case)
        files = {
            **{name.removeprefix(f"{casefile.FOLDER}/"): text for name, text in whole.sources.items()},
            **({"ipam.lock": whole.lock} if whole.lock is not None else {}),
            **{f"rendered/{name}": text for name, text in whole.published.items()},
        }
        subject = Subject(label, replace(case, files={}), files)
        if files and subject.size <= LARGEST:
            found.append(subject)
    return tuple(found)


def of_a_minor(subject: Subject, chance: random.Random) -> Subject:
    """Return a case of the version table as one of its minors; another case as it is."""
    if "shows" not in subject.case.flags:
        return subject
    minor = "{}.{}".format(*chance.choice(tuple(minors()))).encode()
    return replace(subject, files={name: text.replace(b"1.x", minor) for name, text in subject.files.items()})


def published(files: Mapping[str, str]) -> dict[str, bytes]:
    """Return of rendered files those that the next compile reads."""
    return {
        path: text.encode()
        for path, text in files.items()
        if path in BINDING or (path.startswith("nodes/") and path.endswith("/nodes.yaml"))
    }
