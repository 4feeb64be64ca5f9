"""The ordered steps of a change that an apply alone cannot do: which nodes, in which waves, with commands.

A planner takes a plan and returns a `Runbook` (`values`). It is pure: it reads no disk and no cluster, and
`report/runbook/` formats what it returns. `request` finds the changes that a cluster is in the middle of;
the other modules have a planner for each change. Of a node that moves, and of a change of mode, the sentences
that `ipamc plan` and `ipamc lock --settle` print are made of the same steps (`sentences`).
"""
