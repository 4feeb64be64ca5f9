"""Normal forms to Kubernetes LabelSelectors: an exact equivalent, or none."""

from __future__ import annotations

from ipamc.model.selector.expression import Always, Expression
from ipamc.model.selector.label_syntax import label_key_problem, label_value_problem
from ipamc.model.selector.normal_form import Condition, Joint, Normal, Outcomes, normal

Entry = dict[str, object]
"""One entry of `matchExpressions`."""


def label_selector(form: Normal) -> dict[str, object] | None:
    """Return an equivalent LabelSelector, `{}` for every node, or None if there is none."""
    if isinstance(form, Always):
        return {}
    labels: dict[str, str] = {}
    entries: list[Entry] = []
    for part in form.parts if isinstance(form, Joint) and form.every else (form,):
        part_entries = _entries(part) if isinstance(part, Condition) else None
        match part_entries:
            case None:
                return None
            case [{"key": str(key), "operator": "In", "values": [str(value)]}]:
                labels[key] = value
            case _:
                entries += part_entries
    selector: dict[str, object] = {}
    if labels:
        selector["matchLabels"] = dict(sorted(labels.items()))
    if entries:
        selector["matchExpressions"] = sorted(
            entries, key=lambda entry: (str(entry["key"]), str(entry["operator"]))
        )
    return selector


def outcomes(form: Normal) -> dict[str, Outcomes]:
    """Return the conditions on single labels that a node must satisfy, by key."""
    parts = form.parts if isinstance(form, Joint) and form.every else (form,)
    return {part.key: part.outcomes for part in parts if isinstance(part, Condition)}


def negated_requirement(expression: Expression) -> Entry | None:
    """Return the one entry of `matchExpressions` that means the opposite, or None if there is none."""
    form = normal(expression, negated=True)
    entries = _entries(form) if isinstance(form, Condition) else None
    return entries[0] if entries is not None and len(entries) == 1 else None


def _entries(condition: Condition) -> list[Entry] | None:
    """Return one or two entries that together mean one label's outcomes, or None."""
    key, outcomes = condition.key, condition.outcomes
    if label_key_problem(key) or any(map(label_value_problem, outcomes.members)):
        return None
    values = sorted(outcomes.members)
    if outcomes.listed:
        if outcomes.absent:  # "absent, or one of these values" would need an or
            return None if values else [{"key": key, "operator": "DoesNotExist"}]
        return [{"key": key, "operator": "In", "values": values}]
    entries: list[Entry] = [] if outcomes.absent else [{"key": key, "operator": "Exists"}]
    return [*entries, {"key": key, "operator": "NotIn", "values": values}] if values else entries
