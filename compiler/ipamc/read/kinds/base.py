"""The bases of all decoded structs: ipamc's kinds allow exactly their fields, foreign kinds allow any."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field


class Own(Struct, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """A part of an ipamc kind. No field may be null. It prints as it is written, without defaults."""


class Foreign(Struct, rename="camel"):
    """The part that ipamc reads of a foreign kind. Fields may be null, as the apiserver prunes it."""


class NativeFields(Foreign):
    """Fields of ipamc's own IPPool that no other dialect has. They are decoded only to be refused."""

    priority: Any = None
    overflow: Any = None
    blocks_per_node: Any = None
    block_sizes: Any = None
    reserved: Any = None
    pins: Any = None
    unlisted: Any = None
    usage: Any = None
    pod_selector: Any = None
    allow_first_ip: Any = field(name="allowFirstIP", default=None)
    allow_last_ip: Any = field(name="allowLastIP", default=None)


def native_fields(spec: NativeFields, *others: str) -> dict[str, Any]:
    """Return the fields of ipamc's own IPPool that were given, by the names in the document.

    `others` are the struct's names of fields that this dialect lacks beside those that every dialect lacks.
    """
    names = (*NativeFields.__struct_fields__, *others)
    encoded = dict(zip(type(spec).__struct_fields__, type(spec).__struct_encode_fields__, strict=True))
    return {encoded[name]: value for name in names if (value := getattr(spec, name)) is not None}


Text = Annotated[str, Meta(min_length=1)]
Natural = Annotated[int, Meta(ge=0, le=1_000_000)]
Positive = Annotated[int, Meta(ge=1, le=1_000_000)]


class Metadata(Own):
    """`metadata` of an ipamc kind."""

    name: Text
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class ForeignMetadata(Foreign):
    """`metadata` of a foreign kind."""

    name: Text
    labels: dict[str, str | None] | None = None
    uid: str | None = None
    deletion_timestamp: str | None = None
