"""Values that all stages share, and questions about them; reads and writes nothing, imports no other room.

A value is a frozen Struct of msgspec. A dataclass looks the same, but Python generates and compiles its
methods at every start: 120 of them took 50 ms, a third of the time of a small cluster.
"""

from ipamc import on_demand

on_demand(__name__, "masquerade")
