"""Mutations of a case: of its documents by their structure, of its lock line by line, of any file by lines and bytes.

Everything follows from one `random.Random`: the same seed gives the same inputs.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import yaml
from msgspec.structs import replace

from ipamc.lock.record import Record
from ipamc.model.cidr import CidrError, parse_block
from tests.fuzz.odd import BYTES, ODD
from tests.fuzz.subjects import LARGEST, Subject, of_a_minor, subjects

Slot = tuple[Any, Any]
"""A container of a tree, and a key or an index in it."""
_RAW = re.compile(r"""(["']?)@@(\d+)@@\1""")
_CIDR = re.compile(r"[0-9a-f.:]+/\d+").fullmatch
_FIELDS = Record.__struct_fields__


Change = Callable[[bytes, random.Random], bytes]
HARSH, GENTLE = (
    ("odd", "odd", "near", "graft", "swap", "drop", "double", "key", "wrap"),
    ("near", "graft", "swap", "drop", "double"),
)
"""What happens to a place in a tree. Gently changed cases are accepted more often, and so meet more of the code."""


def mutated(chance: random.Random) -> Subject:
    """Return a case with one to four mutations, half of the cases gently changed."""
    subject = of_a_minor(chance.choice(subjects()), chance)
    gently = chance.random() < 0.5
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        subject = gentle(subject, chance) if gently else harsh(subject, chance)
    return subject


def harsh(subject: Subject, chance: random.Random) -> Subject:
    """Change a file in any way."""
    if chance.random() < 0.04:
        return _change_files(subject, chance)
    name = chance.choice(sorted(subject.files))
    kinds: Sequence[Change] = (of_structure, of_structure, of_structure, of_lines, of_bytes)
    if name == "ipam.lock":
        kinds = (of_records, of_records, of_records, of_lines, of_bytes)
    return changed(subject, name, chance.choice(kinds), chance)


def gentle(subject: Subject, chance: random.Random) -> Subject:
    """Change a value of a file to one like it."""
    name = chance.choice(sorted(subject.files))
    return changed(subject, name, gentle_records if name == "ipam.lock" else gentle_structure, chance)


def changed(subject: Subject, name: str, change: Change, chance: random.Random) -> Subject:
    """Return the case with one file changed."""
    text = change(subject.files[name], chance)[:LARGEST]
    return replace(subject, files={**subject.files, name: text})


def _change_files(subject: Subject, chance: random.Random) -> Subject:
    """Remove, copy, swap, rename or take over a whole file."""
    files = dict(subject.files)
    names = sorted(files)
    one, two = chance.choice(names), chance.choice(names)
    other = chance.choice(subjects())
    match chance.randrange(5):
        case 0 if len(files) > 1:
            del files[one]
        case 1:
            files["copy.yaml"] = files[one]
        case 2:
            files[one], files[two] = files[two], files[one]
        case 3:
            files[f"{chance.choice(('a/b', 'x', 'ä b'))}.{chance.choice(('json', 'yml', 'yaml'))}"] = (
                files.pop(one)
            )
        case _:
            theirs = chance.choice(sorted(other.files))
            files[theirs] = other.files[theirs]
    return replace(subject, files=files)


def gentle_structure(text: bytes, chance: random.Random) -> bytes:
    """Change the documents of a file as trees, mostly to what could be meant."""
    return of_structure(text, chance, GENTLE)


def of_structure(text: bytes, chance: random.Random, ways: Sequence[str] = HARSH) -> bytes:
    """Change the documents of a file as trees, and write them as YAML or JSON; a file that is no YAML is changed by lines."""
    try:
        documents = list(yaml.load_all(text, yaml.CSafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError):
        return of_lines(text, chance)
    raw: list[str] = []
    for _ in range(chance.choice((1, 1, 2, 3)) if ways is HARSH else 1):
        slots = list(_slots(documents))
        if slots:
            _change_slot(documents, slots, raw, chance.choice(ways), chance)
    try:
        written = _written(documents, chance)
    except (
        yaml.YAMLError,
        RecursionError,
        ValueError,
        TypeError,
    ):  # a graft into itself, a key that is no text
        return of_lines(text, chance)
    if not raw:
        return written.encode("utf-8", "surrogatepass")
    return _RAW.sub(lambda found: raw[int(found[2]) % len(raw)], written).encode("utf-8", "surrogatepass")


def _written(documents: list[Any], chance: random.Random) -> str:
    if chance.random() < 0.25:
        return "\n---\n".join(
            json.dumps(each, default=str, ensure_ascii=chance.random() < 0.5) for each in documents
        )
    flow = chance.choice((None, False, True))
    text: str = yaml.dump_all(
        documents,
        Dumper=yaml.CSafeDumper,
        default_flow_style=flow,
        sort_keys=False,
        allow_unicode=True,
        width=4096,
    )
    return text


def _slots(tree: Any) -> Iterator[Slot]:
    """Yield every place in a tree, each container once, as aliases may have made it one of itself."""
    waiting, seen = [tree], set()
    while waiting:
        at = waiting.pop()
        if id(at) in seen or not isinstance(at, dict | list):
            continue
        seen.add(id(at))
        for key in list(at) if isinstance(at, dict) else range(len(at)):
            yield at, key
            waiting.append(at[key])


def _change_slot(
    documents: list[Any], slots: list[Slot], raw: list[str], way: str, chance: random.Random
) -> None:
    at, key = chance.choice(slots)
    match way:
        case "odd":
            at[key] = _odd(raw, chance)
        case "near":
            at[key] = _near(at[key], chance)
        case "graft":
            at[key] = _graft(key, slots, chance)
        case "swap":
            there, other = chance.choice(slots)
            at[key], there[other] = there[other], at[key]
        case "drop" if at is not documents or len(documents) > 1:
            del at[key]
        case "double" if isinstance(at, list):
            at.insert(chance.randrange(len(at) + 1), at[key])
        case "key" if isinstance(at, dict):
            at[chance.choice((_odd(raw, chance), f"{key}x", str(chance.choice(slots)[1])))] = (
                at[key] if chance.random() < 0.3 else at.pop(key)
            )
        case "wrap":
            at[key] = chance.choice(([at[key]], {"a": at[key]}, {str(key): at[key]}, [at[key], at[key]]))


def _odd(raw: list[str], chance: random.Random) -> str:
    """Return what will stand for an odd value until the tree is written."""
    raw.append(chance.choice(ODD))
    return f"@@{len(raw) - 1}@@"


def _near(value: Any, chance: random.Random) -> Any:
    """Return a value of the same kind that is not the same."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return chance.choice(
            (value + 1, value - 1, -value, value * 2, value * 10**9, value / 2, 0, str(value))
        )
    if isinstance(value, str) and _CIDR(value):
        address, _, prefix = value.partition("/")
        length = int(prefix) + chance.choice((-8, -1, 0, 1, 2, 8))
        return f"{address}/{length}" if chance.random() < 0.7 else f"{_shifted(address, chance)}/{prefix}"
    if isinstance(value, str):
        at = chance.randrange(len(value) + 1)
        return chance.choice(
            (
                value[:at],
                value + value,
                value.upper(),
                value[:at] + chance.choice("-. /\"'{}\0é") + value[at:],
                [value],
            )
        )
    if isinstance(value, list):
        return chance.choice(
            (value[::-1], value * 2, value[:1], value[1:], dict(enumerate(value)), value * 50)
        )
    if isinstance(value, dict):
        return chance.choice(
            (list(value.items()), list(value), dict(reversed(value.items())), dict(list(value.items())[1:]))
        )
    return chance.choice((0, "", [], {}, None))


def _shifted(address: str, chance: random.Random) -> str:
    return re.sub(r"\d+", lambda found: str(int(found[0]) ^ chance.choice((0, 0, 1, 16, 64, 128))), address)


@lru_cache(maxsize=1)
def _values() -> dict[str, list[Any]]:
    """Return every value that the cases have, by its key."""
    found: dict[str, list[Any]] = {}
    for subject in subjects():
        for name, text in subject.files.items():
            if name.endswith((".yaml", ".yml", ".json")):
                try:
                    documents = list(yaml.load_all(text, yaml.CSafeLoader))
                except (yaml.YAMLError, ValueError, RecursionError):
                    continue
                for at, key in _slots(documents):
                    found.setdefault(str(key), []).append(at[key])
    return found


def _graft(key: object, slots: list[Slot], chance: random.Random) -> Any:
    """Return a copy of a value from elsewhere, mostly one of the same key: of this file or of another case."""
    known = _values()
    if chance.random() < 0.7 and str(key) in known:
        return copy.deepcopy(chance.choice(known[str(key)]))
    if chance.random() < 0.5:
        at, other = chance.choice(slots)
        return at[other]
    return copy.deepcopy(chance.choice(known[chance.choice(sorted(known))]))


def gentle_records(text: bytes, chance: random.Random) -> bytes:
    """Change the lines of a lock to others that a lock may have."""
    return of_records(text, chance, ("drop", "swap", "state", "state", "near", "new", "new"), canonical=1)


def of_records(
    text: bytes,
    chance: random.Random,
    ways: Sequence[str] = ("drop", "double", "swap", "state", "near", "odd", "header", "new"),
    canonical: float = 0.8,
) -> bytes:
    """Change the lines of a lock; mostly write them as the tool would, so that more than the first check sees them."""
    head, *rows = text.decode(errors="replace").removesuffix("\n").split("\n")
    try:
        records: list[Any] = [json.loads(row) for row in rows]
        header: Any = json.loads(head)
    except ValueError:
        return of_lines(text, chance)
    if not all(isinstance(each, dict) for each in (header, *records)):
        return of_lines(text, chance)
    for _ in range(chance.choice((1, 1, 2, 4))):
        _change_record(header, records, chance.choice(ways), chance)
    if chance.random() < canonical:
        records.sort(key=_by_address)
        records = [
            {
                key: each[key]
                for key in sorted(each, key=lambda key: _FIELDS.index(key) if key in _FIELDS else 99)
            }
            for each in records
        ]
    lines = [json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in (header, *records)]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def _change_record(header: Any, records: list[Any], way: str, chance: random.Random) -> None:
    if way == "header":
        key = chance.choice(("lock", "cluster", "mode", "shards", "x"))
        header[key] = chance.choice(
            (0, 1, 2, 64, 1 << 36, -1, 1.5, None, "", "lab", "crd", "multi-pool", "kubernetes", [], "\ud800")
        )
        return
    if not all(records):
        records[:] = filter(None, records)
    if not records:
        records.append({"block": "10.0.0.0/26", "pool": "default", "node": "n1"})
    record = chance.choice(records)
    match way:
        case "drop":
            records.remove(record)
        case "double":
            records.append(dict(record))
        case "swap":
            other, field = chance.choice(records), chance.choice(("block", "node", "pool", "quarantined"))
            record[field], other[field] = other.get(field, ""), record.get(field, "")
        case "state":
            for field in ("quarantined", "moved", "pending", "released"):
                record.pop(field, None)
            record |= chance.choice(
                (
                    {},
                    {"released": True},
                    {"pending": True},
                    {"quarantined": "2026-11-20"},
                    {"quarantined": "2026-01-01", "moved": True},
                    {"quarantined": "2026-11-19", "pending": True},
                    {"quarantined": "9999-12-31"},
                    {"quarantined": "2027-01-01"},
                )
            )
        case "near":
            field = chance.choice(sorted(record))
            record[field] = (
                _near(record[field], chance)
                if field == "block"
                else chance.choice(("a", "b", "rack-a", "default"))
            )
        case "odd":
            field = chance.choice((*_FIELDS, "x"))
            record[field] = chance.choice(
                (
                    None,
                    "",
                    0,
                    1 << 70,
                    True,
                    False,
                    [],
                    {},
                    "\ud800",
                    "\0",
                    "x" * 300,
                    "10.0.0.0/0",
                    "::/0",
                    "all",
                )
            )
        case _:
            block = _near(str(record.get("block", "10.0.0.0/26")), chance)
            records.append(
                {
                    "block": block,
                    "pool": record.get("pool", ""),
                    "node": chance.choice(("n1", "zz", "new-node")),
                }
            )


def _by_address(record: Any) -> tuple[int, int, int]:
    try:
        block = parse_block(str(record.get("block")), pods=False)
    except CidrError:
        return 9, 0, 0
    return block.family, block.first, block.prefix


def of_lines(text: bytes, chance: random.Random) -> bytes:
    """Drop, double, swap or move lines, or change how far one is indented."""
    rows = text.split(b"\n")
    at, to = chance.randrange(len(rows)), chance.randrange(len(rows))
    match chance.randrange(7):
        case 0:
            del rows[at]
        case 1:
            rows.insert(to, rows[at])
        case 2:
            rows[at], rows[to] = rows[to], rows[at]
        case 3:
            rows[at] = chance.choice((b" ", b"  ", b"\t", b"- ", b"# ")) + rows[at]
        case 4:
            rows[at] = rows[at].strip()
        case 5:
            del rows[min(at, to) : max(at, to)]
        case _:
            rows.insert(at, chance.choice(ODD).encode("utf-8", "surrogatepass"))
    return b"\n".join(rows)


def of_bytes(text: bytes, chance: random.Random) -> bytes:
    """Flip, insert, delete, double, truncate, splice with a file of another case, or encode in another way."""
    at, to = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
    near = min(at + chance.choice((1, 1, 2, 4, 16)), len(text))
    match chance.randrange(9):
        case 0 if text:
            at = min(at, len(text) - 1)
            return text[:at] + bytes([text[at] ^ 1 << chance.randrange(8)]) + text[at + 1 :]
        case 1 | 2:
            return text[:at] + chance.choice(BYTES) + text[at:]
        case 3:
            return text[:at] + text[near:]
        case 4:
            return text[:to] + text[at:to] + text[to:]
        case 5:
            return text[:at]
        case 6:
            other = chance.choice(subjects())
            theirs = other.files[chance.choice(sorted(other.files))]
            return text[:at] + theirs[chance.randrange(len(theirs) + 1) :]
        case 7:
            return (
                text[:at]
                + bytes(chance.randrange(256) for _ in range(chance.choice((1, 3, 8))))
                + text[near:]
            )
        case _:
            words = text.decode(errors="replace")
            return chance.choice(
                (
                    words.encode("utf-16"),
                    text.replace(b"\n", b"\r\n"),
                    b"\xef\xbb\xbf" + text,
                    text.replace(b"  ", b"\t"),
                    words.encode("latin-1", "replace"),
                )
            )
