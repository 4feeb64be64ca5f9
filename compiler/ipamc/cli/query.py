"""The meaning of an argument IP, CIDR, NODE, or CLUSTER/POOL of an address space."""

from __future__ import annotations

import re

import click
from msgspec import Struct

from ipamc.model.cidr import BITS, Block, CidrError, parse_block, too_large_octet
from ipamc.model.selector.label_syntax import as_subdomain, subdomain_problem

_PART = re.compile(r"\d{1,3}(?:\.\d{1,3}){1,2}", re.ASCII).fullmatch
_FOUR_NUMBERS = re.compile(r"\d+(?:\.\d+){3}", re.ASCII).fullmatch
_NUMBERS = re.compile(r"[0-9./]+", re.ASCII).fullmatch
_URL = re.compile(
    r"(?:[a-z]+://(?=\d)(\d+(?:\.\d+){3})(?::\d+)?(?:/.*)?|(\d+(?:\.\d+){3}):\d+)", re.ASCII
).fullmatch


class Query(Struct, frozen=True, kw_only=True):
    """An argument IP, CIDR or NODE. A text like an IPv4 address may also be the name of a node."""

    text: str
    block: Block | None  # for an address, the block of this address only
    node: str  # "" if it cannot be the name of a node


def parse_query(text: str) -> Query:
    """Read IP, CIDR or NODE. Raises UsageError for anything else, with a similar one."""
    text = text.strip()
    if of_kubectl := re.fullmatch(r"(?:nodes?|no|ciliumnodes?|cn)/(.*)", text):
        raise click.UsageError(f"{text!r} has kubectl's prefix: write {of_kubectl[1]}")
    if url := _URL(text):
        raise click.UsageError(f"{text!r} is not only an address: write {url[1] or url[2]}")
    if "/" in text and (_NUMBERS(text) or not _is_range(text)):
        return Query(text=text, block=parse_cidr(text), node="")
    if _FOUR_NUMBERS(text):
        return Query(text=text, block=_address(text, 4), node=text)
    if ":" in text:
        return Query(text=text, block=_address(text, 6), node="")
    node = node_name(text, "not an address, a CIDR or a node's name")
    return Query(text=text, block=None, node=node)


def node_name(text: str, problem: str = "not a node's name") -> str:
    """Read the name of a node, or of a range: CLUSTER/POOL or CLUSTER/POOL/NUMBER. Raises UsageError."""
    if (why := subdomain_problem(text)) and not _is_range(text):
        better = as_subdomain(text)
        raise click.UsageError(f"{text!r} is {problem}: it {why}{f'; write {better}' if better else ''}")
    return text


def _is_range(text: str) -> bool:
    return text.count("/") in {1, 2} and not any(map(subdomain_problem, text.split("/")))


def whole(text: str) -> str:
    """Return the CIDR of an incomplete IPv4 address: `10.0.0.0/24` for `10.0.0`; "" for other texts."""
    if not _PART(text):
        return ""
    points = text.count(".")
    return f"{text}{'.0' * (3 - points)}/{8 * (points + 1)}"


def is_address(text: str) -> bool:
    """Return whether a text is an address or a CIDR, also one with host bits."""
    try:
        parse_block(text if "/" in text else f"{text}/{BITS[6 if ':' in text else 4]}", pods=False)
    except CidrError as problem:
        return problem.rule == "host bits"
    return True


def parse_cidr(text: str) -> Block:
    """Read a CIDR, of pod addresses or any others. Raises UsageError that suggests a similar one."""
    try:
        return parse_block(text, pods=False)
    except CidrError as problem:
        meant = [problem.better] if problem.better else []
        meant += [text.partition("/")[0]] if problem.rule == "host bits" else []
        raise click.UsageError(problem.reason + (f"; write {' or '.join(meant)}" if meant else "")) from None


def _address(text: str, family: int) -> Block:
    if "%" in text:
        raise click.UsageError(f"{text!r} has a zone")
    try:
        return parse_block(f"{text}/{BITS[family]}", pods=False)
    except CidrError as problem:
        what = "is an IPv4-mapped IPv6 address" if problem.rule == "mapped" else "is not an address"
        if octet := too_large_octet(text):
            what += f": {octet} is more than 255"
        better = problem.better.removesuffix(f"/{BITS[4]}")
        raise click.UsageError(f"{text!r} {what}" + (f"; write {better}" if better else "")) from None
