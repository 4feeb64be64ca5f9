"""`ipamc suggest`: what could be written into the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ipamc.cli.command import REFUSED, Lazy, Verb
from ipamc.cli.findings import Problems, format_option, tell
from ipamc.cli.options import output_option, several
from ipamc.cli.query import parse_cidr
from ipamc.cli.terminal import progress, show, show_record
from ipamc.model.cidr import BITS, Block
from ipamc.model.limits import MOST_SUGGESTIONS
from ipamc.model.wording import nearest_name, suggestion
from ipamc.workspace.clusters import find, parent_of
from ipamc.workspace.source import Disk
from ipamc.workspace.spaces import is_space, not_space

if TYPE_CHECKING:
    from ipamc.model.cluster import Cluster, Pool
    from ipamc.model.space import Surveyed
    from ipamc.review.suggest_pool import Given, Member


class Kinds(Lazy):
    """What can be suggested."""

    lines = {"pool": "Suggest free space for a pool, in the whole address space."}  # noqa: RUF012 - never written to
    examples = (("ipamc suggest pool lab --size 19", "a /19 for a new pool of lab"),)
    exits = ("suggested", "nothing is free, or an input was refused")

    def where(self, name: str) -> tuple[str, str]:
        """Return the module of a kind, and its name there."""
        return "suggest", name


@click.group(cls=Kinds)
def command() -> None:
    """Suggest changes to the inputs. Writes nothing."""


@click.command(cls=Verb)
@click.argument("cluster", metavar="[CLUSTER]", required=False)
@click.option("--size", type=click.IntRange(1, 128), required=True, metavar="PREFIX")
@click.option("--pool", metavar="NAME")
@several("--from", "within", metavar="CIDR,…")
@click.option("--address-space", "space", metavar="NAME")
@click.option("--family", type=click.Choice(["IPv4", "IPv6"]))
@click.option("--count", "most", type=click.IntRange(1, MOST_SUGGESTIONS), default=3, show_default=True)
@output_option("text", "json")
@format_option
def pool(  # noqa: PLR0913 - an argument for each option
    *,
    cluster: str | None,
    size: int,
    pool: str | None,
    within: tuple[str, ...],
    space: str | None,
    family: str | None,
    most: int,
    output: str,
    style: str,
) -> int:
    """Suggest free space for a pool, the best first, with YAML to paste. Writes nothing.

    The space is unused in all clusters of CLUSTER's addressSpace: not in a pool, reserved, excluded, in a
    line of a lock, published, or in the /24 (IPv6: /64) of a node's address. Service CIDRs count only if
    excludedCIDRs lists them.

    The best space extends a range of the pool or the cluster to a larger prefix, or lies near one, so that
    routes and firewall rules stay few; large free blocks stay whole.

    Options:
        --size: The prefix length.
        --pool: Extend this pool of CLUSTER.  [default: suggest space for a new pool]
        --from: Search only these CIDRs.  [default: nativeRoutingCIDR, and the private networks of the pools
            (RFC 1918, RFC 6598; the /48 for IPv6)]
        --address-space: Without CLUSTER: search for space in this address space.
        --family: Address family.  [default: that of --from, else of the pool or the cluster's first one; IPv6
            for a size above 32]
        --count: The number of suggestions.
    Examples:
        ipamc suggest pool lab --size 19  # a /19 for a new pool, near the pools of lab
        ipamc suggest pool lab --pool rack-a --size 22  # another /22 for a pool
        ipamc suggest pool lab --size 19 --from 10.0.0.0/8  # only within this CIDR
        ipamc suggest pool --address-space fabric-1 --size 16  # for a new cluster of an address space
    Exit codes:
        0: suggested
        1: no such space is free, an input or a lock was refused, or an I/O or environment error
    """
    from ipamc.report import suggestions
    from ipamc.review.suggest_pool import Wish, suggest

    areas = tuple(map(parse_cidr, within))
    problems = Problems()
    known: list[Member] = []
    with progress("reading the clusters of the address space"):
        mine, given = _read(cluster, space, pool, problems, known)
    if problems:
        code = problems.conclude(style)
        tell(style, "no suggestion: a suggestion needs the addresses of all clusters of the address space")
        return code
    chosen = mine.pools_by_name.get(pool) if mine and pool else None
    if mine and pool and not chosen:
        hint = suggestion(pool, mine.pools_by_name, nearest_name)
        raise click.UsageError(f"cluster {mine.name} has no pool {pool!r}{hint and f'; {hint}'}")
    of = _family(size, areas, family, mine or (known[0].cluster if known else None), chosen)
    answer = suggest(known, mine, Wish(size=size, family=of, within=areas, pool=chosen, most=most), given)
    if output == "json":
        show_record(suggestions.record(answer))
    else:
        show(suggestions.text(answer))
    if mine and not mine.address_space:
        tell(style, f"{mine.name} has no addressSpace: other clusters were not checked")
    if mine and chosen and mine.shared_pools and chosen.name in mine.auto_create:
        fixed = f"Cilium's operator creates pool {chosen.name} by its flag and never changes it"
        tell(style, f"{fixed}: to grow, add a new pool (omit --pool; --size {size})")
    known_free = suggestions.about_space(answer.space) if answer.space else suggestions.UNKNOWN
    tell(style, known_free if answer.found else suggestions.nothing(answer))
    code = problems.conclude(style)
    return code if answer.found else REFUSED


def _read(
    name: str | None, space: str | None, pool: str | None, problems: Problems, known: list[Member]
) -> tuple[Cluster | None, Given | None]:
    """Read CLUSTER and the other clusters of its address space into `known`; return it, and the space."""
    from ipamc.review.suggest_pool import member_of, space_of
    from ipamc.workspace.survey import survey_members

    if name and space:
        raise click.UsageError("CLUSTER names its own address space: omit --address-space")
    if pool and not name:
        raise click.UsageError("--pool needs CLUSTER: name the cluster of the pool")
    mine = None
    folders = [not_space(*find([name]))] if name else find()
    if space is None:
        if len(folders) != 1:
            raise click.UsageError("there are several clusters: name one, or give --address-space")
        with problems.of(folders[0]):
            known.append(member_of(Disk().inputs(folders[0])))
        if problems:
            return None, None
        mine = known[0].cluster
        space = mine.address_space
    given: Given | None = None
    if space:
        parent = parent_of(folders[0])
        home = f"{parent}/{space}"
        names = {member.cluster.name for member in known}
        surveyed: Surveyed | None = None
        if is_space(home):
            with problems.of(home):
                inputs = Disk().inputs(home)
                surveyed, found = inputs.surveyed, space_of(inputs)
                given = found if found.space.pools else None
        if surveyed is None:
            surveyed = survey_members(home, None)
        members = {each.cluster for each in surveyed if each.space in {"", space}}
        for other in sorted(members - names):
            with problems.of(f"{parent}/{other}"):
                known.append(member_of(Disk().inputs(f"{parent}/{other}")))
        if not known and not problems:
            raise click.UsageError(f"no cluster belongs to address space {space!r}")
        known.sort(key=lambda member: member.cluster.name)
    return mine, given


def _family(
    size: int, areas: Sequence[Block], asked: str | None, cluster: Cluster | None, pool: Pool | None
) -> int:
    """Return the family, 4 or 6, of the wanted space. Raises UsageError for contradictory options."""
    families = {block.family for block in areas}
    if len(families) > 1:
        raise click.UsageError("--from has both families: give one per run")
    chosen = int(asked[-1]) if asked else next(iter(families), 0)
    if not chosen:
        own = next(iter(pool.families), 4) if pool else cluster.families[0] if cluster else 4
        chosen = 6 if size > BITS[4] else own
    if families - {chosen}:
        raise click.UsageError(f"--from does not match --family {asked}")
    if size > BITS[chosen]:
        raise click.UsageError(f"--size {size}: IPv{chosen} has prefixes of 1 to {BITS[chosen]}")
    if small := next((block for block in areas if block.prefix > size), None):
        raise click.UsageError(f"--from {small} has no block of /{size}")
    part = pool.families.get(chosen) if pool else None
    if pool and part and size > part.block_size:
        raise click.UsageError(
            f"a /{size} is too small for a block of pool {pool.name}, which is a /{part.block_size}: "
            f"use --size {part.block_size} or less"
        )
    return chosen
