"""The verbs that compile: `compile`, `lock`, `fn`, `merge-driver` and `ci merge`."""

from __future__ import annotations

import re
from typing import Any

import click
from msgspec.structs import replace

from ipamc.cli import options
from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.findings import format_option, print_findings
from ipamc.cli.terminal import progress, say
from ipamc.model.diagnostics import names
from ipamc.report.terminal_text import visible
from ipamc.workspace import atomic_write, disk
from ipamc.workspace.clusters import find, name_of
from ipamc.workspace.failure import EnvironmentFailure

DRIVER = "ipamc"  # the merge driver that `.gitattributes` names for locks; `ipamc init` configures it


@click.command(cls=Verb)
@options.clusters_argument
@options.clusters_from_option
@click.option("--locked", is_flag=True)
@click.option("--check", is_flag=True)
@options.jobs_option
@options.assume_option
@format_option
def command(
    *, clusters: tuple[str, ...], listed: str | None, jobs: int | None, style: str, **run: Any
) -> int:
    """Compile clusters: write the lock and the manifests below rendered/.

    Nodes keep the blocks that they hold; only new nodes get new blocks. Unchanged files are not written.
    CLUSTER is a name below clusters/ or a folder; by default all clusters.

    Options:
        --locked: Do not write the lock; if it is out of date, fail with the reasons.
        --check: Write nothing; exit 1 if a file would change.
    Examples:
        ipamc compile  # all clusters below clusters/
        ipamc compile lab  # the cluster in clusters/lab/
        ipamc compile --locked  # render from the lock; fail if the lock is out of date
        ipamc compile --check  # write nothing; fail if a file is out of date
    Exit codes:
        1: refused, out of date with --check or --locked, or an I/O or environment error; the other clusters
            are written
    """
    from ipamc.cli.runner import ClusterRun, compile_all, conclude
    from ipamc.report.findings import FORMATS
    from ipamc.workspace.environment import today, variable

    day = today()
    folders = find(options.clusters_of(clusters, listed))
    tasks = [ClusterRun(folder=folder, today=day, **run) for folder in folders]
    code = conclude(compile_all(tasks, jobs), style)
    quiet = run["check"] or run["locked"] or FORMATS[style].document or variable("CI")
    if not quiet and _merges_as_text():
        say("note: this clone has no merge driver, so git merges locks as text: run ipamc init")
    return code


def _merges_as_text() -> bool:
    """Return whether .gitattributes names the merge driver for locks, and git's configuration lacks it."""
    try:
        if f"merge={DRIVER}" not in disk.read_text(".gitattributes"):
            return False
        from ipamc.workspace import git

        top = git.root(".")
        return top is not None and not git.has_driver(top, DRIVER)
    except (EnvironmentFailure, OSError, UnicodeDecodeError):  # the compile is done already
        return False


TARGETED = ("renumber", "settle", "release", "rename")
"""Consents that name a node, CIDR or pool of one cluster."""


@click.command(cls=Verb)
@options.clusters_argument
@click.option("--check", is_flag=True)
@options.several("--leave", metavar="NODE,…|all")
@options.several("--no-pods", metavar="NODE,…|all")
@options.several("--adopt", "--adopt-pods", "adopt", metavar="NODE,…|all")
@click.option("--renumber", multiple=True, metavar="NODE|CIDR|pool/NAME,…|SELECTOR")
@options.several("--settle", metavar="NODE,…")
@options.several("--release", metavar="NODE|CIDR,…")
@click.option("--rename", multiple=True, metavar="OLD=NEW,…")
@click.option("--follow", is_flag=True)
@click.option("--mode", is_flag=True)
@click.option("--onto", type=options.Revision(), metavar="REV")
@click.option("--reshard", is_flag=True)
@options.assume_option
@format_option
def lock(
    *,
    clusters: tuple[str, ...],
    check: bool,
    onto: str | None,
    assume: options.Minor | None,
    style: str,
    **asks: Any,
) -> int:
    """Write only the lock, and nothing below rendered/.

    Each consent is an option of this command; reviewers see its effect in the lines of the lock. Options that
    take names can be repeated, and take comma-separated names. CLUSTER is a name below clusters/ or a folder;
    by default all clusters.

    Options:
        --check: Write nothing; if a lock is out of date, exit 1 with the reasons.
        --leave: Confirm that this node is gone: quarantine its blocks. all: every node that left.
        --no-pods: Confirm that this running node has no Cilium pods yet, so it needs no CiliumNode in the
            input. all: every node.
        --adopt: Trust the cluster: this running node holds the block that it shows, or the block around its
            addresses in use. A planned node with this block gets another one. all: every node.
        --renumber: Reserve a pending block for these nodes; it is rendered only after --settle. SELECTOR uses
            the syntax of nodeSelector: "rack == 'r7'".
        --settle: Confirm that this node is drained: render its pending block, and quarantine the old one.
        --release: Free quarantined blocks now, or cancel a pending renumber.
        --rename: Give the blocks of a node that is gone to its replacement.
        --follow: The former name of --adopt all.
        --mode: Switch the lock to the IPAM mode of the Cluster.
        --onto: First merge the lock of this revision, as the merge driver does. Quarantines that began on
            this branch begin today. Merge the inputs before.
        --reshard: Let the number of shards grow to fit output.shardSize.
    Examples:
        ipamc lock lab  # update the lock of clusters/lab/
        ipamc lock --check  # write nothing; if a lock is out of date, fail with the reasons
        ipamc lock lab --leave node-7  # node-7 is really gone, although the inventory looks truncated
        ipamc lock lab --renumber pool/rack-a
            # reserve a pending block for each node of rack-a; render nothing
        ipamc lock lab --settle node-7
            # node-7 is drained: render its pending block, and print the next steps
        ipamc lock --onto origin/main  # merge the locks of the trunk, which a forge cannot do
        ipamc lock lab --adopt node-7  # node-7 runs with a block that differs from the lock: keep that block
        ipamc lock lab --rename node-7=node-8  # node-8 replaces node-7, which is gone, and takes its blocks
    Exit codes:
        1: refused, out of date with --check, or an I/O or environment error
    """
    from ipamc.cli.runner import ClusterRun, compile_all, conclude
    from ipamc.lock.consent import is_selector, parse_consent
    from ipamc.model.cluster import Mode
    from ipamc.model.selector.expression import SelectorError
    from ipamc.model.wording import listing
    from ipamc.workspace.environment import today

    if asks["mode"] and (modes := {mode.value for mode in Mode} & set(clusters)):
        instead = f"write mode: {min(modes)} in cluster.yaml, and give only --mode"
        raise click.UsageError(f"--mode takes no value: {instead}")
    pairs = []
    texts = (each for text in asks["rename"] for each in (text.split(",") if text.count("=") > 1 else [text]))
    for text in texts:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            names = [name for name in re.split(r"\s*(?:->|=>|[:,=\s])\s*", text) if name]
            names += clusters[1:]  # --rename OLD NEW
            better = f": write --rename {'='.join(names)}" if len(names) == 2 else ""
            raise click.UsageError(f"--rename {text!r} is not OLD=NEW{better}")
        pairs.append((old, new))
    folders = find(clusters)
    if asks.pop("follow"):
        asks["adopt"] = ("all",)
    select = [text for text in asks["renumber"] if is_selector(text)]
    named = tuple(text for text in asks["renumber"] if text not in select)
    named = tuple(part for text in named for part in text.split(","))  # no name has a comma
    try:
        consent = parse_consent(**{**asks, "renumber": named, "rename": pairs, "select": select})
    except SelectorError as problem:
        raise click.UsageError(f"--renumber: {problem}{problem.help and f'; {problem.help}'}") from None
    if check and any(asks.values()):
        raise click.UsageError("--check and consent exclude each other: omit one of them")
    if len(folders) > 1 and any(asks[name] for name in TARGETED):
        one = f"name the cluster, {listing(map(name_of, folders))}"
        raise click.UsageError(f"consent for a node, CIDR or pool applies to one cluster: {one}")
    run = ClusterRun(folder="", today=today(), consent=consent, render=False, check=check, assume=assume)
    run = replace(run, locked=check and not onto, onto=onto or "")
    return conclude(compile_all([replace(run, folder=folder) for folder in folders], None), style)


@click.command(cls=Verb)
@format_option
def fn(*, style: str) -> int:
    """Compile a cluster as a KRM function: read a ResourceList from stdin, and write it to stdout.

    The items are the documents of one cluster, and a ConfigMap with the lock under the key ipam.lock. ipamc
    adds the manifests to the items, and the findings to the results. Other kinds pass through unchanged. A
    stale lock is refused, unless the function's configuration has lock: write.

    Examples:
        ipamc fn < list.yaml  # compile the objects of a ResourceList
        kpt fn eval clusters/lab --exec 'ipamc fn' -- lock=write
            # compile a package; the lock is in ipamc-state.yaml
        kustomize build --enable-alpha-plugins --enable-exec clusters/lab
            # with a transformer that runs ipamc fn: see docs/how-to/kpt-and-kustomize.md
    Exit codes:
        1: refused; stderr and the results of the list have the reasons
    """
    from ipamc.model.diagnostics import Refused
    from ipamc.pipeline import Inputs, compile_cluster
    from ipamc.read.resource_list import LOCK, NotAResourceList, read_resource_list
    from ipamc.read.syntax.document import Unreadable
    from ipamc.report.findings import with_spans
    from ipamc.report.resource_list import compiled, dumps, published, results
    from ipamc.workspace.environment import today

    try:
        came = read_resource_list(disk.read_stdin())
    except NotAResourceList as problem:
        raise EnvironmentFailure(str(problem)) from None
    except Unreadable as problem:
        print_findings(problem.diagnostics, style)
        return REFUSED
    try:
        with progress("compiling"):
            data, files = came.data, published(came.data)
            inputs = Inputs(
                name=came.name,
                folder=came.folder or "the ResourceList",
                sources={name: source.text for name, source in came.sources.items()},
                lock_path=LOCK if data.get(LOCK) else came.state_path or LOCK,
                lock=data[LOCK].encode() if LOCK in data else None,
                rendered=bool(files) or came.was_rendered,
                published=files,
                schemas=disk.assets("schemas"),
                templates=disk.assets("templates"),
                today=today(),
                locked=not came.writes,
            )
            compilation = compile_cluster(inputs)
    except Refused as refused:
        findings = tuple(map(with_spans, refused.diagnostics))
        click.echo(dumps([item.value for item in came.items], results(came, findings)), nl=False)
        print_findings(findings, style)
        return REFUSED
    if came.writes and not came.state_path and compilation.lock != data.get(LOCK, ""):
        raise EnvironmentFailure(
            "lock: write needs the files of kpt; with kustomize the new blocks would be lost: "
            "omit it, and run ipamc lock"
        )
    items = compiled(came, compilation.files, compilation.lock)
    click.echo(dumps(items, results(came, compilation.diagnostics)), nl=False)
    print_findings(compilation.diagnostics, style)
    return DONE


@click.command("merge-driver", cls=Verb)
@click.argument("base", metavar="%O")
@click.argument("ours", metavar="%A")
@click.argument("theirs", metavar="%B")
@click.argument("path", metavar="%P")
def merge_driver(*, base: str, ours: str, theirs: str, path: str) -> int:
    """Merge two versions of a lock into %A; git calls it.

    If two new blocks overlap, the one in the trunk's lock stays (git config ipamc.trunk, by default
    origin/HEAD), else the one whose node name sorts first. The other node is named on stderr, and the next
    compile places it again. A quarantine that the trunk lacks begins today.

    Until the merge is complete, %A has both sides between conflict markers, which an interrupted run leaves.

    Examples:
        ipamc merge-driver %O %A %B %P  # git runs this after 'ipamc init' has configured it
    Exit codes:
        0: merged
        1: conflicts, which stay between markers for you to resolve; or an I/O or environment error
    """
    from ipamc.lock.merge import merge, unmerged
    from ipamc.report.lock_lines import dropped_lines
    from ipamc.workspace import git
    from ipamc.workspace.environment import today

    texts = [disk.read_bytes(version) or b"" for version in (base, ours, theirs)]
    atomic_write.put(ours, unmerged(texts[1], texts[2]))
    merged = merge(texts[0], texts[1], texts[2], git.show(".", git.trunk("."), path), today=today())
    atomic_write.put(ours, merged.text)
    for line in dropped_lines(path, merged.dropped, "the trunk"):
        say(line)
    for conflict in merged.conflicts:
        say(visible(f"{path}: conflict: {conflict}"))
    return REFUSED if merged.conflicts else DONE


@click.command(cls=Verb)
@click.argument("rev")
def merge(*, rev: str) -> int:
    """Merge REV into the branch and commit: git merges inputs, ipamc merges locks and compiles rendered/.

    A quarantine that REV lacks begins today. If both sides changed the same lines of an input, or the merged
    inputs are refused, nothing changes, and you merge by hand.

    Examples:
        ipamc ci merge origin/main && git push  # update a branch whose lock conflicts with the trunk's
    Exit codes:
        1: inputs conflict, a compile was refused, or an I/O or environment error; the work tree is unchanged
    """
    from ipamc.cli.ci.matrix import there
    from ipamc.cli.runner import ClusterRun, compile_all, conclude
    from ipamc.workspace import git
    from ipamc.workspace.environment import today
    from ipamc.workspace.revision import commit_named, require_top

    require_top()
    commit = commit_named(".", rev)
    if git.merge_base(".", commit, "HEAD") == commit:
        say(f"{rev} is merged already")
        return DONE
    if not git.is_clean("."):
        raise EnvironmentFailure("there are uncommitted changes: commit or stash them first")
    if problem := git.begin_merge(".", commit):
        raise EnvironmentFailure(f"git cannot merge {rev}: {problem}")
    finished = False
    try:
        # One side of rendered files is taken, which the compile writes again. Locks stay: `onto` reads
        # their sides from the index.
        unmerged = git.unmerged(".")
        generated = re.compile(
            rf"{disk.CLUSTERS}/[^/]+/(?:{re.escape(disk.LOCK)}|{disk.RENDERED}/.+)"
        ).fullmatch
        if others := sorted(path for path in unmerged if not generated(path)):
            raise EnvironmentFailure(f"both sides changed {names(others)}: merge by hand")
        rendered = {path: sides for path, sides in unmerged.items() if not path.endswith(f"/{disk.LOCK}")}
        for side in (2, 3):  # ours, if there is one, else theirs
            if paths := [path for path, sides in rendered.items() if (2 in sides) == (side == 2)]:
                git.restore(".", side, paths)
        day = today()
        tasks = [ClusterRun(folder=folder, today=day, onto=commit) for folder in there().values()]
        code = conclude(compile_all(tasks, None), "full")
        if code == DONE:
            git.finish_merge(".", disk.CLUSTERS)
            finished = True
            say(f"merged {rev}")
        return code
    finally:
        if not finished:
            git.take_back(".")
            say("the merge was undone: merge by hand, then run ipamc lock --onto REV and ipamc compile")
