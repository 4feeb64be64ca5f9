"""The YAML parser that both readers of YAML text use, the one that builds values and the one that finds places."""

from __future__ import annotations

from typing import Any, Protocol

import yaml


class Parser(Protocol):
    """What PyYAML's parsers have in common."""

    def get_event(self) -> Any:
        """Give the next event; the last is a StreamEndEvent. Raises YAMLError."""


def parser(text: str) -> Parser:
    """Give libyaml's parser, or PyYAML's own (some fifteen times slower) where libyaml is missing. Offsets count characters in both."""
    made: Parser = yaml.CSafeLoader(text) if yaml.__with_libyaml__ else yaml.SafeLoader(text)
    return made
