"""Places the blocks that nodes still need, or returns findings; changes no block that is held."""

from ipamc import on_demand

on_demand(__name__, "shortage")
