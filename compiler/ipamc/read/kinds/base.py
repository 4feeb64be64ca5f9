"""The bases of all decoded structs: ipamc's kinds allow exactly their fields, foreign kinds allow any."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field


class Own(Struct, forbid_unknown_fields=True, rename="camel"):
    """A part of an ipamc kind. No field may be null."""


class Foreign(Struct, rename="camel"):
    """The part that ipamc reads of a foreign kind. Fields may be null, as the apiserver prunes it."""


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
