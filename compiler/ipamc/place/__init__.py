"""A cluster and its lock in, a plan with blocks for every node or findings out; reads and writes no file."""

from ipamc import on_demand

on_demand(__name__, "spaces")
