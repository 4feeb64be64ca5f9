"""Parses Calico's selector texts and Kubernetes' selector objects into one kind of selector; knows no pool.

selector            the value, how texts and objects become one, which of many select a node, their keys
calico              text to expression and back; calico_tokens: its words, its errors
kubernetes          objects to expression
normal_form         negation normal form, with one condition for each label; its LabelSelector, its
                    signs, and why no node can satisfy it
expression          the meaning that all languages share, its evaluation, the error for a refused selector
label_syntax        what Kubernetes allows in keys, values and names
"""

from ipamc import on_demand

on_demand(__name__, "calico", "calico_tokens")
