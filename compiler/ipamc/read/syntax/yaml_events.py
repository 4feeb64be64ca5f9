"""The YAML parser for both readers of YAML text: `yaml`, which builds values, and `positions`."""

from __future__ import annotations

from typing import Any, Protocol

import yaml


class Parser(Protocol):
    """What PyYAML's parsers have in common."""

    def get_event(self) -> Any:
        """Return the next event; the last one is a StreamEndEvent. Raises YAMLError."""


def parser(text: str) -> Parser:
    """Return libyaml's parser, or without libyaml PyYAML's own (some fifteen times slower).

    Both count offsets in characters.
    """
    made: Parser = yaml.CSafeLoader(text) if yaml.__with_libyaml__ else yaml.SafeLoader(text)
    return made
