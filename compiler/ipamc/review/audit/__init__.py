"""What a running cluster shows, against git and against what was applied last: the findings of `ipamc audit`.

Pure: a dump, the inputs and rendered objects in; findings out. A rule is one generator, and `CHECKS` in
`audit.py` is their order. A rule records which facts its finding proves of which object; a later rule leaves
out what a row of `EXPLAINS` in `causes.py` makes a consequence of them.
"""
