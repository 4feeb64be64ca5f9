"""What a pull request does to a repository: edits as JSON, one on a line; an edit of what is not there does nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.fuzz.requests.repositories import (
    FILE,
    LINK,
    PROGRAM,
    SUBMODULE,
    Tree,
    environment,
    git,
    top,
)
from tests.support import in_process

Edit = Mapping[str, Any]
COMPILE: Edit = {"do": "ipamc", "arguments": ["compile", "--jobs", "1"]}


def apply(tree: Tree, edit: Edit) -> None:  # noqa: C901, PLR0912 - a row for each kind
    """Do an edit to what a commit has."""
    path = str(edit.get("path", ""))
    mode, text = tree.get(path, (FILE, b""))
    below = [each for each in tree if each == path or each.startswith(f"{path}/")]
    what = edit.get("do")
    if what == "write":
        _put(tree, path, mode, os.fsencode(edit["text"]))
    elif what == "append" and path:
        _put(tree, path, mode, text + os.fsencode(edit["text"]))
    elif what == "replace" and path in tree:
        old, new = os.fsencode(edit["old"]), os.fsencode(edit["new"])
        tree[path] = (mode, text.replace(old, new))
    elif what == "rows" and path in tree:
        tree[path] = (mode, _rows(text, edit))
    elif what == "line" and path in tree:
        tree[path] = (mode, _line(text, edit))
    elif what == "encode" and path in tree:
        tree[path] = (mode, _encoded(text, edit["as"]))
    elif what == "mode" and path in tree:
        tree[path] = (PROGRAM if mode == FILE else FILE, text)
    elif what == "link":
        for each in below:
            del tree[each]
        _put(tree, path, LINK, os.fsencode(edit["to"]))
    elif what == "submodule":
        for each in below:
            del tree[each]
        _put(tree, path, SUBMODULE, b"1" * 40)
    elif what == "remove":
        for each in below:
            del tree[each]
    elif what in {"move", "copy"} and path != edit["to"]:
        for each in below:
            found = tree[each]
            if what == "move":
                del tree[each]
            _put(tree, edit["to"] + each.removeprefix(path), *found)
    elif what == "ipamc":
        _run(tree, [str(word) for word in edit["arguments"]])


def _put(tree: Tree, path: str, mode: str, text: bytes) -> None:
    """Set a file, and take away what cannot be beside it: a file where its folder is, files below it."""
    parts = path.split("/")
    above = {"/".join(parts[:end]) for end in range(1, len(parts))}
    for other in [each for each in tree if each in above or each.startswith(f"{path}/")]:
        del tree[other]
    tree[path] = (mode, text)


def _rows(text: bytes, edit: Edit) -> bytes:
    rows = text.splitlines(keepends=True)
    if not rows:
        return text
    at, to = int(edit["at"]) % len(rows), int(edit.get("to", 0)) % len(rows)
    match edit["how"]:
        case "delete":
            del rows[at]
        case "double":
            rows.insert(to, rows[at])
        case "swap":
            rows[at], rows[to] = rows[to], rows[at]
        case "reverse":
            rows[1:] = rows[:0:-1]
        case "cut":
            del rows[at:]
    return b"".join(rows)


def _line(text: bytes, edit: Edit) -> bytes:
    """Change fields of a line of a lock; "to": let it and another exchange these fields."""
    rows = text.splitlines(keepends=True)
    lines = range(1, len(rows))
    if not lines:
        return text
    with suppress(ValueError, AttributeError, TypeError):
        at = lines[int(edit["at"]) % len(lines)]
        line = json.loads(rows[at])
        if "to" in edit:
            to = lines[int(edit["to"]) % len(lines)]
            other = json.loads(rows[to])
            for field in edit["fields"]:
                line[field], other[field] = other[field], line[field]
            rows[to] = _dumped(other)
        else:
            line.update(edit["fields"])
            line = {field: value for field, value in line.items() if value is not None}
        rows[at] = _dumped(line)
        rows[1:] = sorted(rows[1:], key=_by_address)
    return b"".join(rows)


def _dumped(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _by_address(row: bytes) -> list[int]:
    with suppress(ValueError, KeyError, AttributeError, TypeError):
        return [int(each) for each in json.loads(row)["block"].partition("/")[0].split(".")]
    return []


def _encoded(text: bytes, name: str) -> bytes:
    match name:
        case "crlf":
            return text.replace(b"\n", b"\r\n")
        case "cr":
            return text.replace(b"\n", b"\r")
        case "no end":
            return text.removesuffix(b"\n")
        case "nul":
            return text + b"\0"
        case "escaped":
            return text.replace(b'"n1"', b'"\\u006e1"')
    with suppress(UnicodeDecodeError):
        return text.decode().encode(name)
    return text


def _run(tree: Tree, arguments: list[str]) -> None:
    """Run ipamc on the author's machine, in a repository without a history; a tree that no disk can have stays."""
    work = top() / "author"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    git(work, "init", "--quiet", "--template=")
    others = {path: found for path, found in tree.items() if found[0] == SUBMODULE}
    with suppress(OSError, ValueError):
        for path, (mode, text) in tree.items():
            if mode == SUBMODULE:
                continue
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            if mode == LINK:
                (work / path).symlink_to(os.fsdecode(text))
            else:
                (work / path).write_bytes(text)
                (work / path).chmod(int(mode[-3:], 8))
        in_process.ipamc(*arguments, cwd=work, environment=environment())
        tree.clear()
        tree.update(others)
        tree.update(_read(work))


def _read(work: Path) -> Tree:
    found: Tree = {}
    for folder, names, files in os.walk(work):
        if ".git" in names and Path(folder) == work:
            names.remove(".git")
        for name in [*files, *(name for name in names if Path(folder, name).is_symlink())]:
            path = Path(folder, name)
            where = path.relative_to(work).as_posix()
            if path.is_symlink():
                found[where] = (LINK, os.fsencode(path.readlink()))
            elif path.is_file():
                found[where] = (
                    PROGRAM if os.access(path, os.X_OK) and path.stat().st_mode & 0o100 else FILE,
                    path.read_bytes(),
                )
    return found
