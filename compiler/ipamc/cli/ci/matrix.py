"""`ipamc ci matrix`: the clusters that changed, as jobs of a pipeline."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import click
import msgspec

from ipamc import __version__
from ipamc.cli.ci import jobs
from ipamc.cli.ci.install import put
from ipamc.cli.ci.jobs import is_name, touched
from ipamc.cli.ci.pipelines import gate_option, rendered
from ipamc.cli.ci.runners import of_runners, runner_of, runner_options
from ipamc.cli.command import DONE, Verb, renamed
from ipamc.cli.options import FORMER, output_option, write_option
from ipamc.cli.terminal import say
from ipamc.model.diagnostics import count
from ipamc.model.limits import GITHUB_JOBS, GITLAB_JOBS, MOST_COMMON_ANCESTORS, SHARDS_OF_JOB
from ipamc.model.selector.label_syntax import subdomain_problem
from ipamc.read.space_index import IndexLine
from ipamc.workspace import disk, git, git_tree, hiding
from ipamc.workspace.clusters import find, name_of
from ipamc.workspace.environment import variable
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.forge import Nowhere, last_applied, last_success
from ipamc.workspace.inputs import SHARED_TESTS, read_sources
from ipamc.workspace.revision import require_top
from ipamc.workspace.safe_read import refuse_links
from ipamc.workspace.spaces import index_path, is_space, may_be_member
from ipamc.workspace.tree import parts_of

STAGES = ("compile", "apply", "repair", "refresh")
OWN_CHILD = ".gitlab/ipamc-own-child.yml"  # a file of the user, which a child pipeline includes
LAST_SUCCESS = "last-success"  # the value of --base that the forge resolves
_ATTRIBUTES = (".gitattributes", ".gitmodules")
_ANYWHERE = (*_ATTRIBUTES, ".sourceignore")
FOR_ALL = (*_ANYWHERE, *(f"{disk.CLUSTERS}/{name}" for name in (*_ANYWHERE, *SHARED_TESTS)))
"""Files outside of the clusters' folders that decide what a compile of any cluster reads, or Flux applies."""


class Matrix(Verb):
    """A command that also takes the former names of its options: --format KIND and --output FILE."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line as click does, after former names of options are replaced."""
        if any(word.partition("=")[0] == "--format" for word in args):
            args = renamed(args, {"--format": "--output", **FORMER})
        return super().parse_args(ctx, args)


@click.command(cls=Matrix)
@output_option("github", "gitlab", "names", required=True)
@click.option("--base", default="", metavar="REV")
@click.option("--stage", type=click.Choice(STAGES), default=STAGES[0], show_default=True)
@click.option("--refresh", is_flag=True)
@click.option("--audit", is_flag=True)
@click.option("--oidc", is_flag=True)
@click.option("--unattended", metavar="URL")
@gate_option
@runner_options("runner", "label")
@click.option("--environments", default="", envvar="IPAMC_ENVIRONMENTS", metavar="NAME=PATTERN,...")
@click.option("--large", type=click.IntRange(min=0), default=SHARDS_OF_JOB, show_default=True, metavar="N")
@write_option("Write this file.  [default: -, which is stdout]", default="-")
def matrix(
    *, output: str, base: str, stage: str, environments: str, large: int, path: str, **asked: Any
) -> int:
    """List the clusters whose inputs, lock or rendered files changed between --base and HEAD, as CI jobs.

    With --base, the files of these clusters must match HEAD byte for byte; submodules below clusters/, and
    attributes with which git changes bytes there, are refused. If git cannot compare --base with HEAD,
    --stage compile fails, and the other stages list all clusters. A deleted cluster has a plan and no job; an
    address space is compiled and never applied.

    GitHub gets at most 256 jobs, and GitLab 200; beyond that, several clusters share a job. An apply job has
    one forge environment: the cluster's own, or one of --environments. If there are more environments than
    jobs, jobs of several clusters have the environment 'ipamc'.

    Options:
        --base: List clusters that changed since HEAD branched off this revision, or, with 'last-success',
            since the last successful pipeline of this branch.  [default: all clusters]
        --stage: What the jobs do; apply and repair have a job for each shard of a large cluster.
        --refresh: With --output gitlab --stage repair: also jobs that refresh inventories.
        --audit: With --output gitlab --stage repair: also jobs that audit clusters.
        --oidc: With --output gitlab: jobs have an id token, for 'ipamc ci token'.
        --unattended: With --stage repair, for jobs without approval: list only clusters that HEAD has as they
            were applied last, by the refs of this repository. GitLab's jobs use environments of their own.
        --environments: Forge environments that clusters share: 'production=prod-*,lab=lab-*'. The first
            pattern that matches a cluster's name counts; other clusters have their own environment.
        --large: The most shards that one job applies.
    Examples:
        ipamc ci matrix --output github --base "$BASE" >> "$GITHUB_OUTPUT"
            # write compile, plan, apply (success or skipped), and the matrix for fromJSON
        ipamc ci matrix --output gitlab --stage apply --base last-success --write child.yml
            # write the child pipeline after a merge
        ipamc ci matrix --output names --base origin/main
            # one name per line, for people and --clusters-from
    Exit codes:
        1: the name of a folder cannot name a cluster, or an I/O or environment error
    """
    if output == "gitlab" and stage == "refresh":
        raise click.UsageError("GitLab's child pipeline repairs and refreshes: --stage repair --refresh")
    apply = stage != "compile"
    commit, listed, gone = changed(base, strict=not apply)
    spaces = {name for name, folder in there().items() if is_space(folder)}
    names = [name for name in listed if name not in spaces] if apply else with_spaces(commit, listed, spaces)
    clusters = {name: parts_of(f"{disk.CLUSTERS}/{name}") for name in names}
    repaired = settled(names, asked["unattended"]) if asked["unattended"] and stage == "repair" else names
    most = GITLAB_JOBS if output == "gitlab" else GITHUB_JOBS
    chosen, sharded = {name: clusters[name] for name in repaired}, apply and stage != "refresh"
    runners = (*of_runners(asked["apply_runner"] if apply else ()), *of_runners(asked["runner"]))
    share = partial(_jobs, environments=environments if apply else "", large=large, most=most)
    if apply:
        share = partial(share, runners=runners)
    planned = share(chosen, apply=sharded)
    plan = not apply and bool(names or gone)
    if output == "names":
        text = "".join(f"{name}\n" for name in sorted([*repaired, *(gone if plan else ())]))
    elif output == "github":
        text = jobs.github(planned, stage=stage, plan=plan)
    else:
        whole = share(clusters, apply=False) if stage == "repair" else ()
        more = {name: whole for name in ("refresh", "audit") if asked[name]}
        child = jobs.Child(
            image=variable("IPAMC_IMAGE") or jobs.IMAGE,  # the child's jobs use the image of this job
            source=variable("IPAMC_SOURCE"),
            oidc=asked["oidc"],
            unattended=bool(asked["unattended"]),
            gates=asked["gates"],
            tags=runner_of(runners),
            own=disk.read_bytes(OWN_CHILD) is not None,
        )
        values = jobs.gitlab(
            planned, stage=stage, base=commit, version=__version__, plan=plan, more=more, child=child
        )
        text = rendered("gitlab-child", values)
    say(f"{count(len(names), 'cluster')} of {len(there())}, {count(len(planned), 'job')}")
    if apply and (several := [job for job in planned if job.environment == jobs.SEVERAL]):
        say(f"{count(len(several), 'job')} for several clusters each, in the environment {jobs.SEVERAL}")
    if path == "-" or output == "gitlab":
        put(path, text, "ipamc ci matrix")
    else:
        disk.replace(path, text)
    return DONE


def _jobs(clusters: Mapping[str, Sequence[str]], environments: str, **how: Any) -> tuple[jobs.Job, ...]:
    """Return the jobs of clusters, which are given by name with their parts. Raises UsageError."""
    try:
        return jobs.jobs(clusters, environments=jobs.of_environments(environments, clusters), **how)
    except ValueError as problem:
        raise click.UsageError(f"--environments: {problem}") from None


def with_spaces(commit: str, names: Sequence[str], spaces: Collection[str]) -> list[str]:
    """Return the clusters that changed since a commit and those to compile with them, sorted.
    The latter are the address spaces, whose indexes list their members, and members whose line in an index
    has changed. If an index of that commit cannot be read, all clusters are returned.
    """
    found = {*names, *(spaces if names else ())}
    for name in spaces if commit else ():
        path = index_path(f"{disk.CLUSTERS}/{name}")
        before = git_tree.blobs(".", commit, [path]).get(path, b"")
        rows = {*before.splitlines()[1:]} ^ {*(disk.read_bytes(path) or b"").splitlines()[1:]}
        try:
            found |= {msgspec.json.decode(row, type=IndexLine).cluster for row in rows}
        except ValueError:
            return sorted(there())
    return sorted(found & there().keys())


def settled(names: Sequence[str], url: str) -> list[str]:
    """Return the clusters that HEAD has as they were last applied completely; print the others.
    Raises EnvironmentFailure where the refs of the repository cannot be read.
    """
    try:
        commits = last_applied(url)
    except Nowhere as problem:
        raise EnvironmentFailure(f"cannot read what was applied last: {problem}") from None
    # Most clusters were applied at the same few commits: git compares each of these once.
    behind: dict[str, Collection[str]] = {}
    for commit in {commits.get(name, "") for name in names}:
        last = git.commit(".", commit)
        behind[commit] = touched(git.changed(".", last), f"{disk.CLUSTERS}/", names) if last else names
    found = [name for name in names if name not in behind[commits.get(name, "")]]
    for name in names:
        if name not in found:
            say(f"{name}: not repaired unattended: git has changes after the last apply")
    return found


def there() -> dict[str, str]:
    """Return the clusters of the work tree, folder by name; none where the last one was deleted.
    Raises EnvironmentFailure for a link, and for a name that no cluster can have: it must not reach a shell.
    """
    folders = find() if disk.is_folder(disk.CLUSTERS) else ()
    found = {name_of(folder): folder for folder in folders}
    for name, folder in found.items():
        refuse_links(folder)
        if problem := subdomain_problem(name):  # the same rule for clusters: a DNS-1123 subdomain
            raise EnvironmentFailure(f"{name!r} below {disk.CLUSTERS}/ cannot name a cluster: it {problem}")
    return found


def changed(base: str, *, strict: bool) -> tuple[str, list[str], list[str]]:
    """Return the commit of `base`, or "", then changed clusters that exist, then deleted ones, each sorted.
    Changes count from where HEAD branched off. Where git cannot compare, all clusters are listed, and stderr
    says so; with `strict`, EnvironmentFailure is raised instead. With `strict`, a change of FOR_ALL lists all
    clusters, too. An apply may ignore FOR_ALL: these files change nothing that is rendered.

    With a base, EnvironmentFailure is also raised where the work tree differs from HEAD: jobs read the work
    tree, and HEAD is merged.
    """
    commit, paths = _since(base, strict=strict)
    in_head = hiding.files_of_head(".", disk.CLUSTERS) if base else {}
    if paths is None:
        find()  # raises if there is no cluster
    found = there()
    names = sorted(found) if paths is None else touched(paths, f"{disk.CLUSTERS}/", found)
    if strict and (files := [path for path in FOR_ALL if path in (paths or ())]):
        names = sorted({*names, *found})
        say(f"listing all clusters: {files[0]} changed, which applies to all of them")
    unchanged = sorted(found.keys() - set(names)) if strict and names else []
    others = [name for name in unchanged if _lists_others(read_sources(found[name])[0])]
    if others:
        names = sorted({*names, *others})
        say(f"also listing clusters whose masquerading depends on other clusters: {', '.join(others)}")
    if base:
        hiding.refuse_other_bytes(".", in_head, names)
        hiding.refuse_other_files(in_head, names)
    gone = [name for name in names if name not in found and is_name(name)]
    if gone:
        say(f"deleted here, but applied objects stay: {', '.join(gone)}")
    return commit, [name for name in names if name in found], gone


def _lists_others(sources: Mapping[str, bytes]) -> bool:
    """Return whether the rendered files may depend on other clusters of the address space."""
    return may_be_member(sources) and any(b"masquerade" in data for data in sources.values())


def _since(base: str, *, strict: bool) -> tuple[str, list[str] | None]:
    """Return the commit of `base`, or "", and the files that changed since; None if git cannot tell."""
    require_top()
    if not base:
        return "", None
    why = "git has no such revision here"
    if base == LAST_SUCCESS:
        try:
            revision = last_success()
            why = f"git does not have commit {revision[:12]} here"
        except EnvironmentFailure as problem:
            revision, why = "", str(problem)
        commit = git.commit(".", revision) if revision else None
        # Compared directly, not from the fork: after a forced push the commit may be on no branch.
        paths = git.changed(".", commit) if commit else None
    else:
        commit = git.commit(".", base)
        # All of them: else the author of crossing merges chooses one by the commits' dates.
        forks = git.merge_bases(".", commit, "HEAD") if commit else []
        if len(forks) > MOST_COMMON_ANCESTORS:
            most = f"{len(forks):,} best common ancestors, more than {MOST_COMMON_ANCESTORS}"
            one = f"git merge {base}, which leaves one"
            raise EnvironmentFailure(f"HEAD and {base} have {most}, after merges in both directions: {one}")
        paths = sorted({path for fork in forks for path in git.changed(".", fork)}) if forks else None
        if commit:
            why = "it has no common ancestor with HEAD here, perhaps in a shallow clone"
    if paths is None and strict:
        raise EnvironmentFailure(
            f"{base} cannot be compared with HEAD: {why}; "
            "fetch the whole history (git fetch --unshallow origin, or fetch-depth: 0) "
            "or give another --base"
        )
    if paths is None:
        say(f"listing all clusters: {base} cannot be compared with HEAD: {why}")
    return commit or "", paths
