"""Renders findings, plans and answers as text: one module for each format. Writes to no file.

The VERSION of a module is that of its JSON: it grows when a field changes its meaning or is removed, not when
one is added.
"""
