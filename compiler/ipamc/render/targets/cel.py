"""The expressions of admission policies, in CEL as kube-apiserver compiles it (1.30 to 1.37 were run).

Where blocks follow node addresses, a policy computes what `model/follows.py` does, from the InternalIPs of a
node to its blocks. CEL has no 128-bit numbers: for an IPv6 address only the last group is computed, and for a
block the two groups that differ from block to block; `string(cidr(...))` then writes the canonical form
(RFC 5952).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.address_sets import aggregated, lines_over
from ipamc.model.admission import COMMIT, KNOWN, PROBE
from ipamc.model.cidr import BITS, Block
from ipamc.model.cilium.operator_list import OPERATOR
from ipamc.model.cluster import Cluster
from ipamc.model.follows import area_of
from ipamc.model.lock import Line, State
from ipamc.render.targets.carriers import NODES, Carrier, add, before, has_cidr, listed, mapped, of
from ipamc.render.targets.context import Lines

Variables = tuple[tuple[str, str], ...]
"""Names and expressions, ordered so that each uses only earlier ones."""
GIVEN, KEPT = "given:", "kept:"
"""The words before a node in a row of blocks. If the node is gone, the operator may give GIVEN ones again."""


class Rows(Struct, frozen=True, kw_only=True):
    """Consecutive nodes with their blocks; or pools with their ranges, or blocks with their nodes."""

    first: str
    """The start of their range of first words; "" for the first ones."""
    lines: Lines
    """`NODE BLOCK...`, by name."""


class Part(Struct, frozen=True, kw_only=True):
    """The rows of one policy: all, or those of a range of first words."""

    number: int
    first: str
    """The start of its range; "" for the first part."""
    end: str
    """The start of the next part; "" for the last part."""
    rows: tuple[Rows, ...]


class Policy(Struct, frozen=True, kw_only=True):
    """A policy and its binding."""

    carrier: Carrier
    part: Part
    mutates: bool
    action: str = ""
    """For a validating policy, the action of its binding: Deny or Warn."""
    failure: str
    """What happens to a request if an expression has an error: Fail or Ignore."""
    condition: str
    """The requests that it applies to."""
    variables: Variables
    expression: str
    """A list of JSON patches, or a boolean."""
    message: str = ""

    @property
    def name(self) -> str:
        """Its name, without the number of its part."""
        return f"{'assign' if self.mutates else 'enforce'}-{self.carrier.name}"

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that it matches: blocks are given through the first one alone."""
        resource = self.carrier.resource
        return (resource.name,) if self.mutates else (resource.name, *resource.also)


def assign(carrier: Carrier, part: Part, follows: Variables) -> Policy:
    """Return the policy that gives a node its blocks: also in an update, if it has none yet.
    An error must not stop a kubelet or an agent: a node without blocks waits, and the next request heals it.
    """
    probe = f"object.metadata.name == '{PROBE}'"
    answer = listed(add("/metadata/annotations", mapped({KNOWN: "variables.commit"})))
    return Policy(
        carrier=carrier,
        part=part,
        mutates=True,
        failure="Ignore",
        condition=_all(*_responsible(carrier, part), f"size({of(carrier.carried, 'object')}) == 0"),
        variables=_variables(carrier, part, follows),
        expression=f"size(variables.given) > 0 ? {carrier.patches} : {probe} ? {answer} : []",
    )


def enforce(carrier: Carrier, part: Part, follows: Variables, action: str) -> Policy:
    """Return the policy that refuses, or warns of, blocks that the lock does not give: in the field that
    counts, and in each other one in which Cilium finds blocks. What a write leaves as it was passes.
    """
    others = " + ".join(
        f"(variables.now[{place}] == variables.was[{place}] ? [] : variables.now[{place}])"
        for place in range(1, len(carrier.beside) + 1)
    )
    agrees = f"variables.carried == variables.was[0] || ({carrier.agrees})"
    written = _shown(carrier, "carried", "none")
    if others:
        agrees = f"({agrees}) && variables.others.all(it, it in {carrier.blocks})"
        written = f"(size(variables.others) == 0 ? {written} : variables.others.join(' '))"
    whose = f"'pool ' + {carrier.node}" if carrier.rows == "pools" else carrier.node
    none = {"nodes": "no block", "pools": "no range", "none": "no such block"}[carrier.rows]
    none_yet = listed(*["dyn([])"] * (len(carrier.beside) + 1))
    now, was = of(carrier.fields, "object"), before(carrier.fields, none_yet)
    return _refusing(
        Policy(
            carrier=carrier,
            part=part,
            mutates=False,
            action=action,
            failure="",
            condition=_all(*_responsible(carrier, part), f"{now} != {was}"),
            variables=(
                *_variables(carrier, part, follows),
                ("now", now),
                ("was", was),
                ("carried", "variables.now[0]"),
                *((("others", others),) if others else ()),
            ),
            expression=agrees,
            message=f"{whose} + ' ' + {_shown(carrier, 'given', none)} + ', not ' + {written}",
        )
    )


def keep(
    carrier: Carrier, part: Part, lengths: Mapping[int, set[int]], cluster: Cluster, action: str
) -> Policy:
    """Return the policy that refuses blocks of other nodes, where Cilium's operator chooses blocks.
    Its rows have the prefix `lengths` by family: a new CIDR is looked up with each of them that is shorter
    or equal. Longer blocks than those of a range are refused by `enforce`.
    """
    now, was = of(carrier.chosen, "object"), before(carrier.chosen)
    keys, owner = "variables.fresh", "it.substring(it.indexOf(':') + 1)"
    if has_cidr(cluster):
        of_family = f"(it.contains(':') ? {sorted(lengths[6])} : {sorted(lengths[4])})"
        around = "string(cidr(string(cidr(it).ip()) + '/' + string(size)).masked())"
        shorter = f"{of_family}.filter(size, size <= cidr(it).prefixLength()).map(size, {around})"
        keys = f"variables.fresh.filter(it, isCIDR(it)).map(it, {shorter}.join(' ')).join(' ').split(' ')"
    mine = _all(*_between(part, "key"))
    operator = f"request.userInfo.username == 'system:serviceaccount:{cluster.namespace}:{OPERATOR}'"
    return _refusing(
        Policy(
            carrier=replace(carrier, name=f"blocks-{carrier.name}"),
            part=part,
            mutates=False,
            action=action,
            failure="",
            condition=f"{now} != {was}",
            variables=(
                (COMMIT, "''"),
                ("fresh", f"{now}.filter(it, !(it in {was}))"),
                ("keys", f"{keys}{f'.filter(key, {mine})' if mine else ''}"),
                ("found", f"variables.keys.map(key, {_search(part, 'key')}).filter(it, size(it) == 2)"),
                ("owners", "variables.found.map(it, it[1].split('\\n', 2)[0])"),
            ),
            expression=f"variables.owners.all(it, {owner} == {carrier.node} || "
            f"it.startsWith('{GIVEN}') && {operator})",
            message=f"variables.fresh.join(' ') + ' to ' + variables.owners.map(it, {owner}).join(' and ')"
            f" + ', not to ' + {carrier.node}",
        )
    )


def _refusing(policy: Policy) -> Policy:
    """Return a policy with its whole message, which names the commit, and its answer to an error.
    On an error, a CiliumNode is refused, and is sent again. A Node passes: a kubelet that cannot register is
    the greater harm.
    """
    failure = "Ignore" if policy.carrier.resource is NODES else "Fail"
    commit = "(variables.commit == '' ? '' : ' (commit ' + variables.commit + ')')"
    return replace(policy, failure=failure, message=f"'git gives ' + {policy.message} + {commit}")


def _variables(carrier: Carrier, part: Part, follows: Variables) -> Variables:
    """Return the variables that find the node's line. A variable that is not used costs nothing.
    `follows` are those for a node without a line, whose blocks may follow from its address.
    """
    found = "variables.found"
    other = f"variables.{follows[-1][0]}" if follows else "[]"
    return (
        (COMMIT, "''"),
        ("found", _search(part, carrier.node)),
        *follows,
        ("row", f"size({found}) < 2 ? {other} : {found}[1].split('\\n', 2)[0].split(' ').map(it, it)"),
        ("given", carrier.given),
    )


def _search(part: Part, key: str) -> str:
    """Return the split of the text that has the row of a key, if any has: two texts, the second begins with
    the rest of the row; else one.
    """
    which = "variables.rows0"
    for number, rows in enumerate(part.rows[1:], 1):
        which = f"{key} >= '{rows.first}' ? variables.rows{number} : {which}"
    return f"({which}).split('\\n' + {key} + ' ', 2)"


def _responsible(carrier: Carrier, part: Part) -> Iterator[str]:
    """Yield the conditions under which this policy's part is the one for the node's name."""
    yield carrier.about
    yield from _between(part, carrier.node)


def _between(part: Part, key: str) -> Iterator[str]:
    """Yield the conditions under which a key is in a part's range."""
    yield f"{key} >= '{part.first}'" if part.first else ""
    yield f"{key} < '{part.end}'" if part.end else ""


def _shown(carrier: Carrier, variable: str, none: str) -> str:
    texts = carrier.shows.format(variable)
    return f"(size(variables.{variable}) == 0 ? '{none}' : {texts}.join(' '))"


def _all(*conditions: str) -> str:
    return " && ".join(filter(None, conditions))


_GROUP, _GROUPS = 16, 8
_DIGITS = "'0123456789abcdef'"
_ADDRESS_6 = "string(ip({address}))"
_LAST_GROUP = f"'0000' + {_ADDRESS_6}.substring({_ADDRESS_6}.lastIndexOf(':') + 1)"
_HEX = f"map(it, it.substring(size(it) - 4))[0].split('').map(it, {_DIGITS}.indexOf(it))"
_DIGITS_OF = {4: (256, "{address}.split('.').map(it, int(it))"), 6: (16, f"[{_LAST_GROUP}].{_HEX}")}
"""The base of the four digits that distinguish the addresses of a network, and the digits."""
_TEXT = {
    4: "[16777216, 65536, 256, 1].map(it, string({value} / it % 256)).join('.')",
    6: "[{value} / 65536, {value} % 65536]"
    f".map(it, [4096, 256, 16, 1].map(of, {_DIGITS}.charAt(it / of % 16)).join('')).join(':')",
}
"""The part of a block's text that differs from block to block."""


class Follows(NamedTuple):
    """The networks whose addresses have blocks, and the positions of the blocks."""

    network: Block
    area: Block
    block_size: int


def follow_variables(cluster: Cluster, lines: Sequence[Line], addresses: str) -> Iterator[tuple[str, str]]:
    """Yield variables of a policy; the last one, `followed`, is the list of a node's blocks, IPv4 first.
    It is empty unless the node has one address in such networks for each family. `addresses`: the expression
    for the InternalIPs; "" if the object has none. No node gets a block that `lines`, by address, have.
    """
    parts = [part for pool in cluster.pools for part in pool.families.values()]
    follows = [
        Follows(part.follows.block, area, part.block_size)
        for part in parts
        if part.follows and (area := area_of(part))
    ]
    families = sorted(cluster.families)
    if addresses and {each.network.family for each in follows} >= {*families}:
        yield "addresses", addresses
        for family in families:
            yield from _of_family(family, [each for each in follows if each.network.family == family], lines)
        each = [f"variables.followed{family}" for family in families]
        one = " && ".join(f"size({followed}) == 1" for followed in each)
        yield "followed", f"{one} ? {' + '.join(each)} : []"


def _of_family(family: int, follows: Sequence[Follows], lines: Sequence[Line]) -> Iterator[tuple[str, str]]:
    """Yield the variables up to `followed4` or `followed6`. Most are read only if there is an address."""
    base, digits = _DIGITS_OF[family]
    networks, address, network, digit, value, block, taken = (
        f"variables.{name}{family}"
        for name in ("networks", "address", "network", "digits", "value", "block", "taken")
    )
    over = (line for each in follows for line in lines_over(lines, each.area))
    there = [str(block) for block in aggregated(one.block for one in over if one.state is not State.RELEASED)]
    free = f"!{taken}.exists(it, cidr(it).containsCIDR({block}) || cidr({block}).containsCIDR(it))"
    number = f"(({digit}[0] * {base} + {digit}[1]) * {base} + {digit}[2]) * {base} + {digit}[3]"
    yield f"networks{family}", str([_row(each) for each in follows])
    yield (
        f"address{family}",
        (f"variables.addresses.filter(it, isIP(it) && {networks}.exists(of, cidr(of[0]).containsIP(it)))"),
    )
    yield f"network{family}", f"{networks}.filter(it, cidr(it[0]).containsIP({address}[0]))[0]"
    yield f"digits{family}", digits.format(address=f"{address}[0]")
    yield f"value{family}", f"int({network}[2]) + ({number} - int({network}[1])) * int({network}[3])"
    text = _TEXT[family].format(value=value)
    yield f"block{family}", f"string(cidr({network}[4] + {text} + {network}[5]))"
    if there:
        yield f"taken{family}", str(there)
    only = f"size({address}) == 1{f' && {free}' if there else ''}"
    yield f"followed{family}", f"{only} ? [{block}] : []"


def _row(follows: Follows) -> list[str]:
    """Return a policy's data about a network: itself, the number of its first address, the number of the
    first block and the step to the next one, and the text before and after that number in a block.
    """
    (family, first, _), area, size = follows
    network, end, host = str(follows.network), f"/{size}", BITS[family] - size
    if family == 4:
        return [network, str(first), str(area.first), str(1 << host), "", end]
    after = min(host // _GROUP, _GROUPS - 2)
    groups = [area.first >> (_GROUP * at) & 0xFFFF for at in reversed(range(_GROUPS))]
    base = area.first >> (_GROUP * after) & 0xFFFFFFFF
    before = "".join(f"{group:x}:" for group in groups[: _GROUPS - 2 - after])
    step = 1 << (host - _GROUP * after)
    return [network, str(first & 0xFFFF), str(base), str(step), before, ":0" * after + end]
