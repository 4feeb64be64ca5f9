"""The ordered steps of a change that an apply alone cannot do: which nodes, in which waves, with commands.

`request` finds the change that a user asks for, and those that a cluster is in the middle of. `planners`
decides nodes, waves and blocks for a template of templates/runbooks/, which has the prose and the commands.
`template` makes a `Runbook` (`values`) of both, and `report/runbook/` formats it. `sentences` has the lines
that `ipamc plan` and `ipamc lock` print, made of the same steps. All of it is pure: no disk, no cluster.
"""
