"""Findings, plans and answers in, text out: one module a format. Decides nothing, writes to no file.

The VERSION of a module is that of its JSON: it grows when a field changes its meaning or is removed, not when
one is added.
"""
