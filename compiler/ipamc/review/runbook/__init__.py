"""The ordered steps of a change that an apply alone cannot do: which nodes, in which waves, with commands.

`request` selects the change that a user asks for, and those that have already begun. `planners` decides
nodes, waves and blocks. A template of templates/runbooks/ appends the steps, by the functions of `steps`,
which returns a `Runbook`; `report/runbook.py` prints it. `sentences` has the lines that
`ipamc plan` and `ipamc lock` print, from the same steps. All of it is pure: no disk, no cluster.
"""
