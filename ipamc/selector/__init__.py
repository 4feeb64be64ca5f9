"""Selectors of nodes by labels: Calico's language, and Kubernetes' LabelSelector and NodeSelector, as one kind of value.

selector        the value, and how texts and objects become one
calico          text to expression and back; tokens: its words; hints: its errors
kubernetes      objects to expression
requirement     expression to what a LabelSelector can say; impossible: expression to why no node can satisfy it
normal          negation normal form, one condition a label
expression      what every language means, and its evaluation
labels  error   what Kubernetes allows in keys, values and names; how a selector is refused
"""

from ipamc.selector.calico import MAX_CALICO_LENGTH
from ipamc.selector.error import SelectorError
from ipamc.selector.expression import Expression
from ipamc.selector.labels import label_key_problem, label_value_problem, node_name_problem
from ipamc.selector.selector import EVERY, Selector, parse_calico, parse_label_selector, parse_node_selector

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
