"""What a text that is no CIDR was probably meant to be: a netmask, a range of addresses, a forgotten octet."""

from __future__ import annotations

import ipaddress
import re

_QUADS = r"(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})"
_FROM_TO = re.compile(rf"{_QUADS}\s*(?:-|to|\.\.)\s*{_QUADS}", re.ASCII).fullmatch
_SHORT = re.compile(r"(\d{1,3}(?:\.\d{1,3}){0,2})\.?/(\d{1,2})", re.ASCII).fullmatch
_OCTETS = re.compile(r"\d+(?:\.\d+){3}(?:/.*)?", re.ASCII).fullmatch
_LONGEST = 200


def meant(text: str) -> str:
    """Return what to write in place of a text, or ""; what cannot be read with certainty is not guessed.

    Several CIDRs in one text are returned as several, with commas between them.
    """
    if len(text) > _LONGEST:
        return ""
    several = [part for part in re.split(r"[,;\s]+", text) if part]
    if len(several) > 1 and all(map(_cidr, several)):
        return ", ".join(map(_cidr, several))
    plain = text.strip()
    if found := _FROM_TO(plain):
        return _summary(found[1], found[2])
    tidy = re.sub(r"[\s\\/]+", "/", plain.replace(",", "."))
    if found := _SHORT(tidy):
        tidy = f"{found[1]}{'.0' * (3 - found[1].count('.'))}/{found[2]}"
    return _cidr(tidy)


def too_large_octet(text: str) -> str:
    """Return the first octet of a dotted address that is above 255, or ""."""
    if len(text) > _LONGEST or not _OCTETS(text):
        return ""
    return next((octet for octet in text.partition("/")[0].split(".") if int(octet) > 255), "")


def _cidr(text: str) -> str:
    """Return the CIDR that a text with a prefix length, a netmask or a wildcard mask is; "" for others."""
    address, slash, length = text.partition("/")
    if not slash or not length:
        return ""
    try:
        return str(ipaddress.ip_network(f"{address}/{length}"))
    except ValueError:
        return ""


def _summary(first: str, last: str) -> str:
    """Return the CIDRs from one address to another, if they are few."""
    try:
        found = ipaddress.summarize_address_range(ipaddress.IPv4Address(first), ipaddress.IPv4Address(last))
        texts = [str(network) for network in found]
    except (ValueError, TypeError):
        return ""
    return ", ".join(texts) if len(texts) <= 4 else ""
