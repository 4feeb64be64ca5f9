"""Selectors of nodes by labels: Calico's language, and Kubernetes' LabelSelector and NodeSelector, as one kind of value.

selector            the value, and how texts and objects become one
calico              text to expression and back; calico_tokens: its words; calico_hints: its errors
kubernetes          objects to expression
to_label_selector   expression to what a LabelSelector can say; contradictions: expression to why no node can satisfy it
normal_form         negation normal form, one condition a label
expression          what every language means, and its evaluation
label_syntax  error what Kubernetes allows in keys, values and names; how a selector is refused
"""

from ipamc.model.selector.calico import MAX_CALICO_LENGTH
from ipamc.model.selector.error import SelectorError
from ipamc.model.selector.expression import Expression
from ipamc.model.selector.label_syntax import label_key_problem, label_value_problem, node_name_problem
from ipamc.model.selector.selector import (
    EVERY,
    Selector,
    parse_calico,
    parse_label_selector,
    parse_node_selector,
)

__all__ = [
    "EVERY",
    "MAX_CALICO_LENGTH",
    "Expression",
    "Selector",
    "SelectorError",
    "label_key_problem",
    "label_value_problem",
    "node_name_problem",
    "parse_calico",
    "parse_label_selector",
    "parse_node_selector",
]
