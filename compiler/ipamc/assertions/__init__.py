"""Tests of a cluster's folder, and of a file beside the clusters, against the plan. They change nothing.

run        every test, and what became of it
subjects   which nodes tests are about, and the blocks of these
blocks     where blocks are: `blocks`, `node` and `nothingIn`; which renumbers were agreed on: `renumber`
apart      whether groups of nodes share prefixes: `apart`
rooms      how many more nodes would get their blocks: `room`
assertion_rules  the findings, and why a node has a block

What counts is where nodes are to be: a held block, or the pending one that is to replace it. The held one of
these two may break a test until its node has moved: else no renumber could ever mend what a test finds.
"""

from ipamc import on_demand

on_demand(__name__, "run")
