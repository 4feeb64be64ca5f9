"""`ipamc fn`: a compile as a KRM function, for kpt and kustomize."""

from __future__ import annotations

import click

from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.findings import format_option, print_findings
from ipamc.cli.terminal import progress


@click.command(cls=Verb)
@format_option
def command(*, style: str) -> int:
    """Compile a cluster as a KRM function: a ResourceList comes on stdin, and goes to stdout.

    Its items are the documents of one cluster, and a ConfigMap with the lock under the key ipam.lock. The
    manifests are added to them; findings are its results. The lock is read-only, and a stale one is refused,
    unless the function's configuration says lock: write. Objects of other kinds pass through.

    Examples:
        ipamc fn < list.yaml  # compile the objects of a ResourceList
        kpt fn eval clusters/lab --exec 'ipamc fn' -- lock=write
            # compile a package; the lock is in ipamc-state.yaml
        kustomize build --enable-alpha-plugins --enable-exec clusters/lab
            # with a transformer that runs ipamc fn: see docs/how-to/kpt-and-kustomize.md
    Exit codes:
        1: refused; the results of the list and stderr say why
    """
    from ipamc.model.diagnostics import Refused
    from ipamc.pipeline import Inputs, compile_cluster
    from ipamc.read.resource_list import LOCK, NotAResourceList, read_resource_list
    from ipamc.read.syntax.document import Unreadable
    from ipamc.report.findings import with_spans
    from ipamc.report.resource_list import compiled, dumps, published, results
    from ipamc.workspace.disk import assets, read_stdin
    from ipamc.workspace.environment import today
    from ipamc.workspace.failure import EnvironmentFailure

    try:
        came = read_resource_list(read_stdin())
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
                schemas=assets("schemas"),
                templates=assets("templates"),
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
            "lock: write needs files, which kpt tells and kustomize does not: what is given out now would be "
            "kept nowhere, and the next run would give it to others; omit it, and run ipamc lock"
        )
    items = compiled(came, compilation.files, compilation.lock)
    click.echo(dumps(items, results(came, compilation.diagnostics)), nl=False)
    print_findings(compilation.diagnostics, style)
    return DONE
