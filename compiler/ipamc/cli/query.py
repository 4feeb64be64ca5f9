"""IP, CIDR or NODE: what the argument of a verb means."""

from __future__ import annotations

import re
from typing import NamedTuple

import click

from ipamc.model.cidr import BITS, Block, CidrError, parse_block
from ipamc.model.selector.label_syntax import subdomain_problem

_FOUR_NUMBERS = re.compile(r"\d+(?:\.\d+){3}", re.ASCII).fullmatch


class Asked(NamedTuple):
    """An argument, read."""

    text: str
    block: Block | None
    """Of an address, the block of it alone."""
    node: str
    """"" where it can be no node's name. A node may be named like an IPv4 address: then it is both."""


def asked(text: str) -> Asked:
    """Read IP, CIDR or NODE. Raises UsageError for anything else, with what may have been meant."""
    if "/" in text:
        return Asked(text, _block(text), "")
    if _FOUR_NUMBERS(text):
        return Asked(text, _address(text, 4), text)
    if ":" in text:
        return Asked(text, _address(text, 6), "")
    return Asked(text, None, node_name(text, "neither an address nor a CIDR, and no node's name"))


def node_name(text: str, problem: str = "no node's name") -> str:
    """Read the name of a node. Raises UsageError."""
    if why := subdomain_problem(text):
        raise _usage(f"{text!r} is {problem}: it {why}")
    return text


def _block(text: str) -> Block:
    try:
        return parse_block(text, pods=False)
    except CidrError as problem:
        meant = [problem.better] if problem.better else []
        if problem.rule == "host bits":
            meant.append(text.partition("/")[0])
        raise _usage(problem.reason + (f"; write {' or '.join(meant)}" if meant else "")) from None


def _address(text: str, family: int) -> Block:
    whole = f"/{BITS[family]}"
    try:
        return parse_block(f"{text}{whole}", pods=False)
    except CidrError as problem:
        reason = problem.reason.replace(f"{text}{whole}", text).replace("is not a CIDR", "is not an address")
        better = problem.better.removesuffix(f"/{BITS[4]}")
        raise _usage(reason + (f"; write {better}" if better else "")) from None


def _usage(text: str) -> click.UsageError:
    return click.UsageError(text, click.get_current_context(silent=True))
