"""What nodes still need in, a plan with their new blocks or findings out; changes no block that is held."""

from ipamc import on_demand

on_demand(__name__, "shortage")
