"""Selectors as Kubernetes says them in a LabelSelector: what can be said, exactly, or nothing."""

from __future__ import annotations

from ipamc.model.selector.expression import Always, Expression
from ipamc.model.selector.label_syntax import label_key_problem, label_value_problem
from ipamc.model.selector.normal_form import Condition, Joint, normal

Entry = dict[str, object]
"""One entry of `matchExpressions`."""


def label_selector(expression: Expression) -> dict[str, object] | None:
    """Give an equivalent LabelSelector, `{}` for every node, or None where no LabelSelector means the same."""
    form = normal(expression)
    if isinstance(form, Always):
        return {}
    labels: dict[str, str] = {}
    entries: list[Entry] = []
    for part in form.parts if isinstance(form, Joint) and form.every else (form,):
        said = _entries(part) if isinstance(part, Condition) else None
        match said:
            case None:
                return None
            case [{"key": str(key), "operator": "In", "values": [str(value)]}]:
                labels[key] = value
            case _:
                entries += said
    selector: dict[str, object] = {}
    if labels:
        selector["matchLabels"] = dict(sorted(labels.items()))
    if entries:
        selector["matchExpressions"] = sorted(
            entries, key=lambda entry: (str(entry["key"]), str(entry["operator"]))
        )
    return selector


def negated_requirement(expression: Expression) -> Entry | None:
    """Give the one entry of `matchExpressions` that means the opposite, or None where there is none."""
    form = normal(expression, negated=True)
    said = _entries(form) if isinstance(form, Condition) else None
    return said[0] if said is not None and len(said) == 1 else None


def _entries(condition: Condition) -> list[Entry] | None:
    """Say one label's outcomes in one or two entries that hold together, or None."""
    key, outcomes = condition.key, condition.outcomes
    if label_key_problem(key) or any(map(label_value_problem, outcomes.members)):
        return None
    values = sorted(outcomes.members)
    if outcomes.listed:
        if outcomes.absent:  # "missing, or one of these" takes an or
            return None if values else [{"key": key, "operator": "DoesNotExist"}]
        return [{"key": key, "operator": "In", "values": values}]
    entries: list[Entry] = [] if outcomes.absent else [{"key": key, "operator": "Exists"}]
    return [*entries, {"key": key, "operator": "NotIn", "values": values}] if values else entries
