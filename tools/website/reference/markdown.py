"""Markdown that a forge and the site show alike: escaped prose, code, tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ipamc.cli import VERBS

_SPAN = re.compile(r"(`[^`]+`|https?://[^\s)>\"']*[^\s)>\"'.,;:])")
"""What stays as it is: code, and addresses, which forges make links of."""
_CODE = re.compile(
    r"(?<!\w)'(?P<quoted>[^'\n]{1,80})'(?!\w)"
    r"|(?P<plain>"
    r"\bipamc (?:ci [a-z]+|suggest pool|export netbox|"
    + "|".join(VERBS)
    + r")\b(?: --[a-z][\w-]*(?: (?:json|markdown|html|svg|csv)\b)?)*"
    r"|(?<![\w-])--[a-z][\w-]*(?:[= ](?:FORMAT=FILE|FILE|DIR|REV|NAME|NODE|CLUSTER|KIND|DATE)\b)?"
    r"|\$[A-Z][A-Z_]+"
    r"|(?<![\w/.-])(?:[\w.-]+/)+(?:[\w-]+\.[\w.-]*\w)?(?!\w)"
    r"|\b[a-z]+[A-Z]\w*"
    r")"
)
"""Quoted words, commands, options, variables, paths, and names of fields such as blockSize."""
_RULE = re.compile(r"\bIPC\d{4}\b")
_SPECIAL = re.compile(r"([\\`*_<>\[\]|#~])")


def prose(text: str, codes: str = "") -> str:
    """Return plain text as Markdown in one line: commands, options and the like as code, the rest as it reads.

    Codes become links, where `codes` says where their index is: `../codes/`.
    """
    parts = _SPAN.split(" ".join(text.split()))
    return "".join(part if index % 2 else linked(_escaped(part), codes) for index, part in enumerate(parts))


def linked(text: str, codes: str) -> str:
    """Return Markdown with a link for each code, to the index in a folder, which may be `./`; "" for none."""
    index = f"{codes.removeprefix('./')}README.md"
    return _RULE.sub(lambda code: f"[{code[0]}]({index}#{anchor(code[0])})", text) if codes else text


def _escaped(text: str) -> str:
    written, end = "", 0
    for match in _CODE.finditer(text):
        found = match["quoted"] or match["plain"]
        written += _SPECIAL.sub(r"\\\1", text[end : match.start()]) + code(found)
        end = match.end()
    return written + _SPECIAL.sub(r"\\\1", text[end:])


def paragraphs(text: str, codes: str = "") -> str:
    """Return text whose paragraphs are parted by empty lines as Markdown, each in one line."""
    return "\n\n".join(prose(part, codes) for part in re.split(r"\n\s*\n", text.strip()) if part.strip())


def sentence(text: str) -> str:
    """Return text with a capital at its beginning, where a word of prose begins it."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() and first != "ipamc" else text


def code(text: str) -> str:
    """Return code in a line."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def fence(text: str, language: str = "", title: str = "") -> str:
    """Return a block of code."""
    head = language + (f' title="{title}"' if title else "")
    mark = "````" if "```" in text else "```"
    return f"{mark}{head}\n{text.rstrip()}\n{mark}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown without a bar."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def anchor(heading: str) -> str:
    """Return the anchor that a forge and the site give a heading: letters, digits and hyphens of its text."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("\\", "")
    return re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")


def page(*parts: str) -> str:
    """Return a page of these parts; empty ones are left out."""
    return "\n\n".join(part for part in parts if part) + "\n"
