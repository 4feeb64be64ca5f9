"""What a running cluster shows, against git and against what was applied last: the findings of `ipamc audit`.

Pure: a dump, the inputs and rendered objects in; findings out. A rule is one generator, and `CHECKS` in
`audit.py` is their order: a rule names the nodes and objects that it tells of, and a later rule, whose finding
would be a consequence, leaves these out.
"""
