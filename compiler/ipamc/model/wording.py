"""Words for messages: quoted input, similar known words, lists of words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ipamc.model.limits import INPUT_SHOWN, WORDS_SHOWN


def shown(text: str) -> str:
    """Return a piece of input quoted for a message, cut if it is too long."""
    return repr(cut(text))


def cut(text: str) -> str:
    """Return a piece of input for a message, cut if it is too long."""
    return text if len(text) <= INPUT_SHOWN else f"{text[:INPUT_SHOWN]}…"


def typed(path: str) -> str:
    """Return a file's path, or its path in a commit, quoted for a shell: strangers may name files."""
    import shlex  # noqa: PLC0415 - only mistakes need it

    return shlex.quote(path.rpartition(":")[2])


def near(word: str, known: Iterable[str], limit: int) -> list[str]:
    """Return at most `limit` known words that may be meant, the most similar first. Ignores case."""
    import difflib  # noqa: PLC0415 - only mistakes need it

    by_lower = {name.lower(): name for name in sorted(known, reverse=True)}
    close = difflib.get_close_matches(word[:100].lower(), sorted(by_lower), limit)
    return [by_lower[name] for name in close]


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that `word` was probably meant to be, or ""."""
    return next(iter(near(word, known, 1)), "")


def nearest_name(word: str, known: Iterable[str]) -> str:
    """Return the name of a node, pool or cluster that `word` was probably meant to be, or "".
    Names with other numbers or single letters name other things: worker-2 is no worker-7, rack-a no rack-b.
    """
    return nearest(word, (name for name in known if not _differ(word, name)))


def _differ(*names: str) -> bool:
    numbers = [[digits.lstrip("0") for digits in re.findall("[0-9]+", name)] for name in names]
    letters = [re.findall("(?<![a-z])[a-z](?![a-z])", name.lower()) for name in names]
    return numbers[0] != numbers[1] or any(one != other for one, other in zip(*letters, strict=False))


def suggestion(word: str, known: Iterable[str], similar: Callable[..., str] = nearest) -> str:
    """Return `did you mean 'x'?`, or "" if no known word is similar; `similar`: `nearest_name` for names."""
    found = similar(word, known)
    return f"did you mean {found!r}?" if found else ""


def listing(words: Iterable[str]) -> str:
    """Return words in the order given, cut after a dozen: `a, b or c`."""
    every = list(words)
    if len(every) > WORDS_SHOWN:
        return f"{', '.join(every[:WORDS_SHOWN])} and {len(every) - WORDS_SHOWN} more"
    return " or ".join(filter(None, (", ".join(every[:-1]), *every[-1:])))


def ip(families: Iterable[int]) -> str:
    """List families of addresses: `IPv4 and IPv6`."""
    return " and ".join(f"IPv{family}" for family in families)
