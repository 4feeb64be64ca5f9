"""A plan, a lock or a cluster in; what changes (`diff/`) and why it is so (`explain_*`) out.

Decides nothing that a compile decides, and writes nothing.
"""

GATES = ("renumber", "release", "leave", "capacity")
"""The values of `--fail-on`: the changes that can fail a plan."""
