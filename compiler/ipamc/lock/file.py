"""The lock's text: JSON Lines in canonical form, one record per line.

`dumps` and `load` are pure. Text that differs from the output of `dumps` is refused with its first wrong
line: in a lock that was edited by hand or merged as text, two nodes may share a block.
"""

from __future__ import annotations

import bisect
import codecs
from itertools import islice, zip_longest

import msgspec
from msgspec.structs import replace

from ipamc.lock import file_rules as rules
from ipamc.lock import record
from ipamc.model.address_sets import by_block, disjoint
from ipamc.model.cidr import CidrError
from ipamc.model.cluster import LOCK_MODES, LockMode, Mode, Scheme, SpaceMode
from ipamc.model.diagnostics import At, Diagnostic, Span
from ipamc.model.limits import MOST_FINDINGS, MOST_SHARDS
from ipamc.model.lock import Consent, Line, Lock
from ipamc.model.wording import shown


def dumps(lock: Lock) -> str:
    """Return the canonical text: a header, then lines by address; the file's, if unchanged. O(n log n)."""
    header = record.encode_header(lock.cluster, lock.mode, lock.shards)
    if lock.text.startswith(header) and lock.lines == lock.written:
        return lock.text.decode()
    return (header + record.encode_records(record.records_of(sorted(lock.lines, key=by_block)))).decode()


def named(text: bytes) -> str:
    """Return the name of the cluster in a lock's header; "" if the header is not readable."""
    try:
        return record.HEADER.decode(_first_row(text)).cluster
    except ValueError:
        return ""


def mode_of(text: bytes | None) -> str:
    """Return the mode in a lock's header; "" if there is no lock, or its header is not readable."""
    try:
        return record.HEADER.decode(_first_row(text)).mode if text else ""
    except ValueError:
        return ""


def load(
    text: bytes | None,
    path: str,
    cluster: Scheme,
    consent: Consent,
    *,
    rendered: bool,
    committed: bool = False,
) -> tuple[Lock, list[Diagnostic]]:
    """Read a cluster's lock; without one return an empty one, and a finding if there is a `rendered/`, or the
    last commit has the lock. O(n log n).
    """
    shards = first_shards(len(cluster.nodes), cluster.shard_size)
    empty = Lock(cluster=cluster.name, mode=cluster.mode, shards=shards, path=path)
    if text is None:
        return empty, [rules.lock_missing(path, committed=committed)] if rendered or committed else []
    row = _first_row(text)
    head, found = _header(row, path, empty=not text.strip())
    if head is None:
        return empty, found
    if head.cluster != cluster.name:
        return empty, [rules.foreign_lock(path, row, head.cluster, cluster)]
    if head.mode != cluster.mode and not consent.mode:
        return empty, [rules.other_mode(path, row, head.mode, cluster)]
    return _body(head, text, path, cluster.mode)


def parse(text: bytes, path: str) -> tuple[Lock | None, list[Diagnostic]]:
    """Read a lock without its cluster, as strictly as `load`; None without a readable header. O(n log n)."""
    head, found = _header(_first_row(text), path, empty=not text.strip())
    return (None, found) if head is None else _body(head, text, path, LOCK_MODES[head.mode])


def skim(text: bytes, cluster: str) -> list[record.Record] | None:
    """Decode a lock, 20 times as fast as `load`, checking only header and shapes; None if damaged."""
    row, _, body = text.partition(b"\n")
    header, _ = _header(row, "", empty=not text.strip())
    if header is None or header.cluster != cluster or not text.endswith(b"\n"):
        return None
    try:
        return record.decode_records(body)
    except ValueError:
        return None


def _header(row: bytes, path: str, *, empty: bool) -> tuple[record.Header | None, list[Diagnostic]]:
    if empty:
        return None, [rules.lock_empty(path)]
    try:
        head = record.HEADER.decode(row)
    except ValueError:
        return None, [rules.lock_unreadable(path, 1, row, _header_problem(row))]
    if head.lock != rules.FORMAT:
        return None, [rules.newer_format(path, row, head.lock)]
    if head.mode not in LOCK_MODES:
        problem = f"mode {shown(head.mode)} is unknown"
    elif head.shards < 1 or head.shards & (head.shards - 1):
        problem = f"shard count {head.shards} is not a power of two"
    elif head.shards > MOST_SHARDS:
        problem = f"shard count {head.shards:,} is more than {MOST_SHARDS:,}"
    else:
        return head, []
    return None, [rules.lock_unreadable(path, 1, row, problem)]


def _first_row(text: bytes) -> bytes:
    return text.partition(b"\n")[0]


def _body(head: record.Header, text: bytes, path: str, mode: LockMode) -> tuple[Lock, list[Diagnostic]]:
    """Read the lines below the header; check them by the rules of `mode`."""
    lines = _sound_lines(head, text)
    found: list[Diagnostic] = []
    if lines is None:
        lines, found = _lines_and_findings(head, text, path)
    if head.mode == Mode.CRD != mode:  # in which alone a node has a part of a block
        lines = [replace(line, addresses=0) if line.addresses else line for line in lines]
    lock = Lock(cluster=head.cluster, mode=mode, shards=head.shards, lines=tuple(lines), path=path)
    return replace(lock, written=lock.lines, text=b"" if found else text), found


def _sound_lines(head: record.Header, text: bytes) -> list[Line] | None:
    """Return the lines of a lock without findings; None if there may be one.
    Records are decoded and encoded all at once: row by row, 100,000 lines took more than twice as long.
    """
    header = record.encode_header(head.cluster, LOCK_MODES[head.mode], head.shards)
    if not text.startswith(header) or not text.endswith(b"\n"):
        return None
    body = text[len(header) :]
    try:
        records = record.decode_records(body)
        if record.encode_records(records) != body:
            return None
        lines = list(map(record.line_of, records))
    except ValueError:  # msgspec's errors and CidrErrors are ValueErrors
        return None
    if head.mode != SpaceMode.SPACE and body.count(b"/") != len(lines):
        return None  # a node with the name of a pool of a cluster
    blocks = [line.block for line in lines]
    pairs = zip(blocks, records, strict=True)
    canonical = all(block.family == 4 or str(block) == each.block for block, each in pairs)
    in_order = sorted(blocks) == blocks and disjoint(blocks)
    return lines if canonical and in_order and not rules.has_two_held(lines, LOCK_MODES[head.mode]) else None


def _lines_and_findings(head: record.Header, text: bytes, path: str) -> tuple[list[Line], list[Diagnostic]]:
    """Read the lines row by row; return the lines and the errors in them."""
    rows = text.split(b"\n")
    lines, found = _records(rows, path, LOCK_MODES[head.mode])
    if not found:
        # Several blocks per node are valid in their mode; `check_mode_change` refuses the other mode.
        found += islice(rules.overlapping_lines(lines, path, rows), MOST_FINDINGS)
        found += islice(rules.two_held(lines, path, rows, LOCK_MODES[head.mode]), MOST_FINDINGS)
    written = [line for _, line in lines]
    lock = Lock(cluster=head.cluster, mode=LOCK_MODES[head.mode], shards=head.shards, lines=tuple(written))
    canonical = b"" if found else dumps(lock).encode()
    if not found and canonical != text:
        wanted = canonical.split(b"\n")
        pairs = enumerate(zip_longest(rows, wanted, fillvalue=b""))
        index, (row, own) = next((index, pair) for index, pair in pairs if pair[0] != pair[1])
        found = [rules.not_canonical(path, index + 1, row, own, misplaced=row in wanted)]
    return written, found


def line_at(lock: Lock, line: Line, *, otherwise: At | None = None) -> At:
    """Return the place of a line's block in the lock's file, with the text of the file there. O(log n).
    For a block that is not in the file, it is `otherwise`, or the file as a whole.
    """
    index = bisect.bisect_left(lock.written, line.block, key=by_block)
    if index < len(lock.written) and lock.written[index].block == line.block:
        return rules.row_at(lock.path, index + 2, record.encode(lock.written[index]), str(line.block))
    return otherwise or Span(lock.path)


def first_shards(nodes: int, shard_size: int) -> int:
    """Return the smallest power of two that is at least nodes / shard_size, and at most MOST_SHARDS."""
    shards = 1
    while shards * shard_size < nodes and shards < MOST_SHARDS:
        shards *= 2
    return shards


def _header_problem(row: bytes) -> str:
    if row.startswith(codecs.BOM_UTF8):
        return "a byte order mark before the header line"
    if row.startswith(rules.LFS):
        return "a Git LFS pointer: the file itself was not fetched"
    if not row.startswith(b'{"lock":'):
        return 'not the header line of a lock ({"lock":1,...})'
    try:
        row.decode()
    except UnicodeDecodeError:
        return "not UTF-8 text"
    return "the header is not readable"


def _records(rows: list[bytes], path: str, mode: LockMode) -> tuple[list[tuple[int, Line]], list[Diagnostic]]:
    lines: list[tuple[int, Line]] = []
    found: list[Diagnostic] = []
    read = record.RECORD.decode
    if rows[-1]:
        problem = "no newline at the end: the file was cut off"
        found.append(rules.lock_unreadable(path, len(rows), rows[-1], problem))
    for number, row in enumerate(rows[1:-1], 2):
        try:
            lines.append((number, record.line_of(read(row), of_pools=mode is SpaceMode.SPACE)))
        except ValueError as cause:  # msgspec's errors and CidrErrors are ValueErrors
            found.append(rules.lock_unreadable(path, number, row, _record_problem(cause)))
            if len(found) >= MOST_FINDINGS or row.startswith(rules.CONFLICT_MARKERS):
                break
    return lines, found


def _record_problem(problem: Exception) -> str:
    if isinstance(problem, CidrError):
        return problem.reason
    if isinstance(problem, UnicodeDecodeError):
        return "not UTF-8 text"
    if isinstance(problem, msgspec.ValidationError):
        return "unknown fields or wrong types"
    if isinstance(problem, msgspec.DecodeError):
        return "not a JSON object"
    return str(problem)
