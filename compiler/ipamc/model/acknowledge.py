"""Findings that a cluster acknowledges, each with a reason: entries of `acknowledge`."""

from __future__ import annotations

from msgspec import Struct

from ipamc.model.diagnostics import Place
from ipamc.model.selector.selector import EVERY, Selector

_NUMBERS = """
    0008 0013 0108 0205 0209 0214 0215 0216 0304 0308 0309 0310 0311 0314 0315 0410 0411 0412 0415 0416 0417
    0421 0423 0424 0439 0503 0504 0506 0507 0513 0515 0516 0540 0546 0551 0555 0556 0557 0558 0565 0567 0568
    0584 0585 0586 0587 0588 0589 0590 0591 0614 0616 0711 0805 0813 0814 0815 0816 0817 0818 0819 0827
    0828 0829 0832 0833 0834 0835 0836 0837 0838 0842 0843 0844 0845 0846 0847 0848 0849 0850 0852 0854
    0855 0856 0857 0858 0859 0862 0864 0867 0868 0869 0878 0880 0902 0903 0904 0912 0920 0921 0922 0924
    0925 0926 0930 0931 0933 0934 0935 0936 0938 0940 0941 0942 0943 0944 0945 0951 0953 0954 0955 0957 0958
    0962 0963 0964 0970 1001 1002 1003 1004 1005 1006 1007 1009 1010 1012
"""
MILD = frozenset(f"IPC{number}" for number in _NUMBERS.split())
"""The codes of all rules that give a note or a warning; a test compares them with the rules."""


class Acknowledged(Struct, frozen=True, kw_only=True):
    """An entry: it hides the notes and warnings of a code, or those about some pools and nodes."""

    code: str
    reason: str
    pools: tuple[str, ...] = ()  # empty: of all pools, and of none
    nodes: Selector = EVERY
    at: Place

    def __str__(self) -> str:
        """Return what it hides, for people: `IPC0951 of pools a, b and of nodes rack == "a"`."""
        pools = f"of pools {', '.join(self.pools)}" if self.pools else ""
        nodes = f"of nodes {self.nodes.canonical}" if self.nodes != EVERY else ""
        return f"{self.code} {' and '.join(filter(None, (pools, nodes)))}".rstrip()

    def covers(self, other: Acknowledged) -> bool:
        """Return whether it certainly hides all that another entry hides."""
        pools = not self.pools or (bool(other.pools) and set(other.pools) <= set(self.pools))
        return self.code == other.code and pools and self.nodes in {EVERY, other.nodes}
