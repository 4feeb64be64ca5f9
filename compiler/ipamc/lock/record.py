"""A line of the lock as it is written: JSON with the fields of a `Record`, and the header above all lines."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from ipamc.lock.file_rules import FORMAT
from ipamc.model.cidr import cidr_texts, parse_block, part
from ipamc.model.cluster import LockMode
from ipamc.model.lock import Line, State
from ipamc.model.wording import shown

_Number = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]

_STRANGE = re.compile(r"[^a-z0-9.-]|\A[.-]").search
"""Characters that no name has. Commands to copy contain names, and a branch's lock may be hostile."""
_STRANGE_POOL = re.compile(r"[^a-z0-9./-]|\A[./-]|//").search
"""The same for the lock of an address space, where a node is a pool of a cluster: `beijing-1/pods`."""


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """The first line."""

    lock: _Number
    cluster: str
    mode: str
    shards: _Number


class Record(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A line in written form."""

    block: str
    pool: str = ""
    node: str = ""
    quarantined: str = ""
    moved: bool = False
    pending: bool = False
    released: bool = False
    addresses: _Number = 0

    @property
    def state(self) -> State:
        """Return the state of the fields. A quarantined line with `pending` was pending before."""
        if self.released:
            return State.RELEASED
        if self.quarantined:
            return State.QUARANTINED
        return State.PENDING if self.pending else State.HELD


# Decoders raise ValueErrors: those of msgspec, and UnicodeDecodeError for text that is not UTF-8.
HEADER = msgspec.json.Decoder(Header)
RECORD = msgspec.json.Decoder(Record)
_RECORDS = msgspec.json.Decoder(list[Record])
_ENCODER = msgspec.json.Encoder()


def encode_header(cluster: str, mode: LockMode, shards: int) -> bytes:
    """Return the canonical text of the header, with its newline."""
    return _ENCODER.encode(Header(FORMAT, cluster, mode.value, shards)) + b"\n"


def encode_records(records: Iterable[Record]) -> bytes:
    """Return the canonical text of many records, each with its newline."""
    return _ENCODER.encode_lines(records)


def decode_records(text: bytes) -> list[Record]:
    """Read many records at once, each with its newline. Raises ValueError (msgspec's errors are ValueErrors).
    It also accepts two records in a row: compare with `encode_records` of the result.
    """
    return _RECORDS.decode(b"[" + text[:-1].replace(b"\n", b",") + b"]")


def encode(line: Line) -> bytes:
    """Return the canonical text of one line, without a newline."""
    return _ENCODER.encode(record_of(line))


def decode(row: bytes) -> Line:
    """Read one line below the header. Raises ValueError (msgspec's errors, too) if it is not valid."""
    return line_of(RECORD.decode(row))


def records_of(lines: Sequence[Line]) -> list[Record]:
    """Return many lines in written form. Nearly all are held, and have three fields."""
    held = State.HELD
    return [
        Record(cidr, line.pool, line.node) if line.state is held and not line.addresses else record_of(line)
        for cidr, line in zip(cidr_texts([line.block for line in lines]), lines, strict=True)
    ]


def record_of(line: Line) -> Record:
    """Return a line in written form."""
    pending, released = line.state is State.PENDING or line.was_pending, line.state is State.RELEASED
    block, since, addresses = str(line.block), line.since, line.addresses
    return Record(block, line.pool, line.node, since, line.moved, pending, released, addresses)


def line_of(record: Record, *, of_pools: bool = True) -> Line:
    """Convert a record to a line; its node may be a pool of a cluster if `of_pools`.
    Raises CidrError, or ValueError with the error.
    """
    odd = (_STRANGE_POOL if of_pools else _STRANGE)(record.node)
    if odd or _STRANGE(record.pool):
        raise ValueError(f"{shown(record.node if odd else record.pool)} is not a name")
    others = record.quarantined or record.pending or record.released or record.moved or record.addresses
    if record.node and not others:  # nearly all lines are held
        return Line(block=parse_block(record.block, pods=False), pool=record.pool, node=record.node)
    if record.released and (record.quarantined or record.pending):
        raise ValueError(f"both released and {'quarantined' if record.quarantined else 'pending'}")
    if record.moved and not record.quarantined:
        raise ValueError("moved but not quarantined")
    if not record.node:
        raise ValueError("no node")
    day = record.quarantined
    if day and not _is_day(day):
        raise ValueError(f"{shown(day)} is not a day like 2026-11-21")
    block = parse_block(record.block, pods=False)
    if record.addresses and (record.released or part(block, record.addresses) != record.addresses):
        raise ValueError(f"addresses {record.addresses} does not fit {block}")
    return Line(
        block=block,
        pool=record.pool,
        node=record.node,
        state=record.state,
        since=record.quarantined,
        moved=record.moved,
        was_pending=record.pending and bool(record.quarantined),
        addresses=record.addresses,
    )


def _is_day(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
