"""An item to its typed shape: the fast path, and the way to the slow one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ipamc.model.diagnostics import Diagnostic, Place
from ipamc.read.explain_shape import Mistyped, explain
from ipamc.read.kinds import Item
from ipamc.read.schema import Schema, Schemas, is_map, wants_text
from ipamc.read.syntax import rules
from ipamc.read.syntax.document import Odd
from ipamc.read.syntax.yaml_scalars import quoted, readings


def shape(item: Item, schemas: Schemas, late: list[Mistyped], found: list[Diagnostic]) -> Any:
    """Decode an item with types, or give None and say everything that is wrong with it; `late` gets what needs its source text first."""
    for odd in item.odd:
        found.extend(_odd(odd, schemas[item.kind.schema], item.at))
    try:
        return msgspec.convert(item.value, item.kind.shape)
    except msgspec.ValidationError:
        said = list(explain(item.value, schemas[item.kind.schema], item.at))
    late += [each for each in said if isinstance(each, Mistyped)]
    found += [each for each in said if isinstance(each, Diagnostic)]
    if not said:  # the two paths disagree, which a test rules out; refuse rather than guess
        found.append(rules.wrong_shape(item.at, f"this is not the shape of a {item.kind.name}"))
    return None


def _odd(odd: Odd, schema: Schema, root: Place) -> Iterator[Diagnostic]:
    """Say what is odd about a scalar without quotes, where the schema wants text: in a key of the user's own, or in a value."""
    at = Place(root.path, root.document, (*root.keys, *odd.keys), key=odd.key)
    if odd.key and is_map(schema, odd.keys[:-1]):
        if odd.agreed:
            yield rules.wrong_shape(
                at, f"{odd.text or 'nothing'} as a key is not text", f"write {quoted(odd.text)}"
            )
        else:
            yield rules.ambiguous_scalar(at, odd.text, readings(odd.text), quoted(odd.text))
    elif not odd.key and wants_text(schema, odd.keys):
        key = odd.keys[-1]
        yield rules.ambiguous_scalar(
            at,
            odd.text,
            readings(odd.text),
            f"{key}: {quoted(odd.text)}" if isinstance(key, str) else quoted(odd.text),
        )
