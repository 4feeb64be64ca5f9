"""Tests of a cluster's folder, and of a file beside the clusters, against the plan. They change nothing.

run        every test, and its result
subjects   the nodes that tests are about, and their blocks
blocks     where blocks are: `blocks`, `node` and `nothingIn`; which renumbers were agreed on: `renumber`
apart      whether groups of nodes share prefixes: `apart`
rooms      how many more nodes would get their blocks: `room`
assertion_rules  the findings, and why a node has a block

Future blocks count: a held block, or the pending one that will replace it. A held block that will be
replaced may break a test until its node has moved; otherwise no renumber could mend what a test finds.
"""

from ipamc import on_demand

on_demand(__name__, "run")
