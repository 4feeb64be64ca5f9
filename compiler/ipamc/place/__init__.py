"""Plans blocks for every node of a cluster from its lock, or returns findings; reads and writes no file."""

from ipamc import on_demand

on_demand(__name__, "spaces")
