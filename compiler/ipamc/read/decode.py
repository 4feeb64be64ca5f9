"""Items in, typed structs out: the fast path, which asks `explain_shape` if an item is refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from ipamc.model.diagnostics import MOST, Diagnostic, Findings, Place
from ipamc.read.explain_shape import Mistyped, explain
from ipamc.read.kinds import Item
from ipamc.read.schema import Schema, Schemas, is_map, wants_text
from ipamc.read.syntax import rules
from ipamc.read.syntax.document import Odd
from ipamc.read.syntax.yaml_scalars import quoted, readings


def shape(item: Item, schemas: Schemas, late: list[Mistyped], found: Findings) -> Any:
    """Return an item as its kind's struct, or None and report everything that is wrong with it.

    `late` receives the problems whose finding needs the source text, `found` all others. Raises Enough.
    """
    for odd in item.odd:
        found.extend(_odd(odd, schemas[item.kind.schema], item.at))
    try:
        return msgspec.convert(item.value, item.kind.shape)
    except msgspec.ValidationError:
        problems = list(islice(explain(item.value, schemas[item.kind.schema], item.at), MOST))
    late += [problem for problem in problems if isinstance(problem, Mistyped)]
    found.extend(problem for problem in problems if isinstance(problem, Diagnostic))
    if not problems:  # the two paths disagree, which a test rules out; refuse rather than guess
        found.append(
            rules.wrong_shape(item.at, f"the document does not have the shape of a {item.kind.name}")
        )
    return None


def _odd(odd: Odd, schema: Schema, root: Place) -> Iterator[Diagnostic]:
    """Yield findings for an unquoted scalar that should be text: a key that the user chose, or a value."""
    at = Place(root.path, root.document, (*root.keys, *odd.keys), key=odd.key)
    if odd.key and is_map(schema, odd.within):
        if odd.agreed:
            yield rules.wrong_shape(
                at,
                f"the key {odd.text} is not text" if odd.text else "an empty key is not text",
                f"write {quoted(odd.text)}",
            )
        else:
            yield rules.ambiguous_scalar(at, odd.text, readings(odd.text), quoted(odd.text))
    elif not odd.key and wants_text(schema, odd.keys):
        key = odd.last
        yield rules.ambiguous_scalar(
            at,
            odd.text,
            readings(odd.text),
            f"{key}: {quoted(odd.text)}" if isinstance(key, str) else quoted(odd.text),
        )
