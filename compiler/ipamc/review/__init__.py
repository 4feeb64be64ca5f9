"""A plan, a lock or a cluster in; what changes (`diff/`) and why it is so (`explain_*`) out.

Decides nothing that a compile decides, and writes nothing.
"""
