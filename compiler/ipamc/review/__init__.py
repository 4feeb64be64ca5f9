"""Compares and explains plans, locks and clusters: `diff/` has changes, `explain_*` reasons. No decisions."""

GATES = ("renumber", "release", "leave", "capacity")
"""The values of `--fail-on`: the changes that can fail a plan."""
