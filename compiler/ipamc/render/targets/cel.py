"""The expressions of admission policies, in CEL as kube-apiserver compiles it (1.30 to 1.37 were run)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.admission import COMMIT, KNOWN, PROBE
from ipamc.model.cilium.operator_list import OPERATOR
from ipamc.model.cluster import Cluster
from ipamc.render.targets.carriers import Carrier, has_cidr
from ipamc.render.targets.cel_fields import NODES, before, of
from ipamc.render.targets.cel_patch import add, listed, mapped
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
