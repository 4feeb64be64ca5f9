"""The base of everything that is decoded with types: our own kinds take exactly their fields, foreign kinds may have any others."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field


class Own(Struct, forbid_unknown_fields=True, rename="camel"):
    """A part of an ipamc kind. No field takes null."""


class Foreign(Struct, rename="camel"):
    """The part that we read of somebody else's kind. Fields take null, as the apiserver prunes it."""


Text = Annotated[str, Meta(min_length=1)]
Natural = Annotated[int, Meta(ge=0, le=1_000_000)]
Positive = Annotated[int, Meta(ge=1, le=1_000_000)]


class Metadata(Own):
    """`metadata` of our own kinds."""

    name: Text
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class ForeignMetadata(Foreign):
    """`metadata` of a foreign kind."""

    name: Text
    labels: dict[str, str | None] | None = None
    uid: str | None = None
    deletion_timestamp: str | None = None
