"""The catalogue of rules: what each checks, why, what to run, an example. One file a code, below `rules/`.

A file is a txtar archive: a text, then files between `-- name --` lines.

    # IPC0207: no two ranges share an address.          the code, and what is checked, in one sentence

    This holds for ranges of one pool and of two.       what the sentence leaves open; may be missing

    Why: an address in two ranges …                     what happens in the cluster if it were let through

    Run: drop or shrink one of the two. …               what to do about it, with the commands to type

    Example: Rack-b lies inside rack-a.   a sentence about what is wrong; then how the example is run:
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

The function that checks a rule has the first line as its docstring; a test compares them. Paths are those of
a repository, such as clusters/lab/cluster.yaml. `tests/test_examples.py` runs the examples.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

_TEXT = re.compile(r"# (IPC\d{4}): ([^\n]+)\n\n(.*)\n", re.DOTALL).fullmatch
_PARTS = re.compile(r"(?:^|\n\n)(Why|Run): ")
_FILE = re.compile(r"^-- (\S+) --\n", re.MULTILINE)
_FLAG = re.compile(r"^#! (\w+)(?:: (.*))?$", re.MULTILINE)
_EXAMPLE = "\nExample: "
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

    sentence: str
    """What is wrong on the wrong side."""
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


class Entry(Struct, frozen=True, kw_only=True):
    """A rule, as in its file."""

    code: str
    title: str
    """What is checked, in one sentence."""
    body: str
    """Details beyond the title: exceptions, limits, usual causes; "" for none."""
    why: str
    """What would happen in the cluster, or to the files, without the rule."""
    run: str
    """What to do about it, with the commands to type."""

    @property
    def text(self) -> str:
        """The paragraphs after the title."""
        named = (self.why and f"Why: {self.why}", self.run and f"Run: {self.run}")
        return "\n\n".join(part for part in (self.body, *named) if part)


def what_it_is(text: str) -> str:
    """Return the state of a file without text: "is deleted", "is empty", "is a link to PATH"; else ""."""
    if text in {"", DELETED}:
        return "is deleted" if text else "is empty"
    link = LINK(text)
    return f"is a link to {link[1]}" if link else ""


def catalogue(files: Mapping[str, str]) -> dict[str, Entry]:
    """Return all rules by code, in order, from the texts of `rules/` by name. ValueError for others."""
    texts = (text for name, text in sorted(files.items()) if not name.startswith(_BASE))
    return {entry.code: entry for entry in map(_entry, texts)}


def example_of(code: str, files: Mapping[str, str]) -> Example | None:
    """Return the example of a rule from the texts of `rules/`, or None. KeyError without its base."""
    text = files[f"{code}{_SUFFIX}"]
    return _example(_Archive.parse(text), files) if _EXAMPLE in text else None


class _Archive(Struct, frozen=True):
    """A txtar file with an example: a sentence, flags, files by name."""

    sentence: str
    flags: Mapping[str, str]
    files: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> _Archive:
        header, *rest = _FILE.split(text)
        files = dict(zip(rest[::2], rest[1::2], strict=True))
        said = header.rpartition(_EXAMPLE)[2]
        return cls(_FLAG.sub("", said).strip(), dict(_FLAG.findall(header)), files)

    def below(self, folder: str) -> dict[str, str]:
        return {key.removeprefix(folder): text for key, text in self.files.items() if key.startswith(folder)}

    @property
    def also(self) -> tuple[str, ...]:
        return tuple(self.flags["also"].split(", ")) if "also" in self.flags else ()


def _entry(text: str) -> Entry:
    match = _TEXT(text.partition(_EXAMPLE)[0])
    if match is None:
        raise ValueError(f"this is no text of a rule: {text[:100]!r}")
    code, title, rest = match.groups()
    body, *parts = _PARTS.split(rest)
    named = dict(zip(parts[::2], parts[1::2], strict=True))
    return Entry(
        code=code, title=title, body=body.strip(), why=named.get("Why", ""), run=named.get("Run", "")
    )


def _example(archive: _Archive, texts: Mapping[str, str]) -> Example:
    flags = archive.flags
    base = _Archive.parse(texts[f"{_BASE}{flags.get('base', 'none')}{_SUFFIX}"])
    before = archive.below("before/")
    run = flags.get("run", "ipamc compile lab")
    # All steps up to the last flag were done; texts of before/ are compiled.
    last = max((DONE.index(flag) + 1 for flag in DONE if flag in flags), default=1 if before else 0)
    return Example(
        sentence=archive.sentence,
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
