"""A plan, lock or cluster in; what changes (`diff/`), why it is so (`explain_*`) out. Decides nothing."""

GATES = ("renumber", "release", "leave", "capacity")
"""The values of `--fail-on`: the changes that can fail a plan."""
