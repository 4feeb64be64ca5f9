"""Examples of rules: what a rule refuses or warns of, and how it is right: a file a code, in `examples/`.

An example is a txtar archive: a header, then files between `-- name --` lines.

    Rack-b lies inside rack-a.            a sentence about what is wrong; then how the example is run:
    #! base: cluster-pool                 the files that all examples of a kind share: base-cluster-pool.txtar
    #! compiled                           the base was compiled before: it has a lock and rendered files
    #! committed                          it was also committed to a git repository, at 2026-11-22T08:00:00Z
    #! applied                            it was also applied: refs/ipamc/applied/lab is that commit
    #! run: ipamc compile lab             for both sides, and the default; `A && B`: one after the other;
                                          `#! wrong: …` and `#! right: …` for one side
    #! also: IPC0311                      other codes that either side gives
    #! latin                              the wrong side is written in ISO 8859-1, not in UTF-8
    #! exit: 1, REASON                    with what the right side ends, where that is not 0
    -- before/PATH --                     a file of the base when that was compiled; implies `compiled`
    -- wrong/PATH --                      what the wrong side has in its place; `(deleted)`: no such file;
                                          `(link to PATH)`: a symbolic link
    -- right/PATH --                      the same of the right side
    -- said --                            its finding on the wrong side; written by `pytest --update`

Paths are those of a repository, such as clusters/lab/cluster.yaml. `tests/test_examples.py` runs them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

_FILE = re.compile(r"^-- (\S+) --\n", re.MULTILINE)
_FLAG = re.compile(r"^#! (\w+)(?:: (.*))?$", re.MULTILINE)
_BASE = "base-"
_SUFFIX = ".txtar"
DONE = ("compiled", "committed", "applied")
"""Steps with a base before an example, each after the one before."""
DELETED = "(deleted)\n"
"""The text of a file that a side does not have, although the base has it."""
LINK = re.compile(r"\(link to (\S+)\)\n").fullmatch


class Side(Struct, frozen=True, kw_only=True):
    """The wrong or the right half of an example."""

    command: str
    """As the user types it: `ipamc compile lab`."""
    files: Mapping[str, str]
    """Texts by path, in the order of display; DELETED for a missing file."""
    encoding: str = "utf-8"


class Example(Struct, frozen=True, kw_only=True):
    """A rule broken and kept, in the smallest possible example."""

    code: str
    sentence: str
    """What is wrong on the wrong side."""
    base: str
    beside: str
    """The contents of the base, in a sentence."""
    given: Mapping[str, str]
    """The base's files by path."""
    done: tuple[str, ...]
    """The steps of DONE that were done with the base and `before`: a beginning of DONE, or none."""
    before: Mapping[str, str]
    wrong: Side
    right: Side
    said: str
    """The finding of the wrong side as ipamc prints it, without its last line, which refers to this page."""
    also: tuple[str, ...] = ()
    """Other codes in the output of a side."""
    code_of_right: int = 0
    """The exit code of the right side's command."""

    @property
    def what_was_done(self) -> str:
        """The steps before the example, `compiled, committed and applied`; "" if there were none."""
        return " and ".join(filter(None, (", ".join(self.done[:-1]), *self.done[-1:])))


def what_it_is(text: str) -> str:
    """Return the state of a file without text: "is deleted", "is empty", "is a link to PATH"; else ""."""
    if text in {"", DELETED}:
        return "is deleted" if text else "is empty"
    link = LINK(text)
    return f"is a link to {link[1]}" if link else ""


def examples(texts: Mapping[str, str]) -> dict[str, Example]:
    """Return the examples by code, in order, from the texts of `examples/`. KeyError without a base."""
    bases = {
        name.removeprefix(_BASE).removesuffix(_SUFFIX): _Archive.parse(text)
        for name, text in texts.items()
        if name.startswith(_BASE)
    }
    codes = sorted(name.removesuffix(_SUFFIX) for name in texts if not name.startswith(_BASE))
    return {code: _example(code, _Archive.parse(texts[f"{code}{_SUFFIX}"]), bases) for code in codes}


class _Archive(Struct, frozen=True):
    """A txtar file: a sentence, flags, files by name."""

    sentence: str
    flags: Mapping[str, str]
    files: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> _Archive:
        header, *rest = _FILE.split(text)
        files = dict(zip(rest[::2], rest[1::2], strict=True))
        return cls(_FLAG.sub("", header).strip(), dict(_FLAG.findall(header)), files)

    def below(self, folder: str) -> dict[str, str]:
        return {key.removeprefix(folder): text for key, text in self.files.items() if key.startswith(folder)}

    @property
    def also(self) -> tuple[str, ...]:
        return tuple(self.flags["also"].split(", ")) if "also" in self.flags else ()


def _example(code: str, archive: _Archive, bases: Mapping[str, _Archive]) -> Example:
    flags = archive.flags
    base = bases[flags.get("base", "none")]
    before = archive.below("before/")
    run = flags.get("run", "ipamc compile lab")
    # All steps up to the last flag were done; texts of before/ are compiled.
    last = max((DONE.index(flag) + 1 for flag in DONE if flag in flags), default=1 if before else 0)
    return Example(
        code=code,
        sentence=archive.sentence,
        base=flags.get("base", "none"),
        beside=base.sentence,
        given=base.files,
        done=DONE[:last],
        before=before,
        wrong=Side(
            command=flags.get("wrong", run),
            files=archive.below("wrong/"),
            encoding="latin-1" if "latin" in flags else "utf-8",
        ),
        right=Side(command=flags.get("right", run), files=archive.below("right/")),
        said=archive.files.get("said", ""),
        also=(*base.also, *archive.also),
        code_of_right=int(flags.get("exit", "0").partition(",")[0]),
    )
