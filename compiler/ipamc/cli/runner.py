"""One job a cluster, here or in a pool of processes. Clusters stand alone: a refused one does not keep the others from being written.

Unless they are of one address space, and share an address: then neither is.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from ipamc.cli import summary
from ipamc.cli.command import DONE, REFUSED
from ipamc.cli.findings import print_findings
from ipamc.cli.terminal import progress, say, trouble
from ipamc.model.diagnostics import Diagnostic, Refused
from ipamc.workspace import disk
from ipamc.workspace.clusters import inputs_of, name_of
from ipamc.workspace.neighbours import neighbours, refuse_overlaps

if TYPE_CHECKING:
    from ipamc.address_space import Neighbours
    from ipamc.model.lock import Consent


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to do for one cluster."""

    folder: str
    today: str
    consent: Consent
    render: bool = True
    """Write what is rendered, too; else the lock alone."""
    locked: bool = False
    """The lock is read-only."""
    check: bool = False
    """Write nothing."""
    onto: str = ""
    """A revision whose lock is merged in first."""
    neighbours: Neighbours | None = None
    """The other clusters, where this one may be of an address space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a job."""

    name: str
    folder: str
    findings: tuple[Diagnostic, ...] = ()
    done: bool = False
    """It is sound, and the disk is as it should be."""
    line: str
    """What was done, for people."""
    trouble: bool = False
    """The surroundings failed, and `line` says how."""


def run(job: Job) -> Outcome:
    """Do one job. Everything that is not a bug of ours ends in the outcome."""
    name = name_of(job.folder)
    gc.disable()  # a compile makes many objects and no cycles worth finding: collecting them costs a tenth of its time
    try:
        with nullcontext() if job.check else disk.alone(job.folder):
            return _run(job, name)
    except Refused as refused:
        return Outcome(
            name=name, folder=job.folder, findings=refused.diagnostics, line="refused, nothing written"
        )
    except Exception as problem:
        if text := trouble(problem):
            return Outcome(name=name, folder=job.folder, line=text, trouble=True)
        raise
    finally:
        gc.enable()


def _run(job: Job, name: str) -> Outcome:
    from ipamc.pipeline import compile_cluster

    inputs = inputs_of(job.folder, today=job.today, consent=job.consent, locked=job.locked)
    merged = None
    if job.onto:
        from ipamc.workspace.lock_onto import onto

        merged = onto(job.folder, job.onto)
        inputs = replace(inputs, lock=merged.lock)
    compilation = compile_cluster(inputs)
    if merged and "all" not in job.consent.leave:
        merged.refuse_strangers(
            {each.node for each in compilation.plan.stale if each.reason == "leaver"} - job.consent.leave
        )
    if job.neighbours:
        refuse_overlaps(inputs, compilation, job.neighbours)
    lock = None if job.locked and not job.check else compilation.lock
    files = compilation.files if job.render else None
    changes = (disk.compare if job.check else disk.write)(job.folder, lock, files)
    if job.check:
        line = summary.outdated(changes) if changes else "up to date"
    else:
        line = f"{summary.placed(merged.before if merged else inputs.lock, compilation.lock, compilation.plan)}; {summary.written(changes)}"
    return Outcome(
        name=name,
        folder=job.folder,
        findings=compilation.diagnostics,
        done=not (job.check and changes),
        line="\n".join((*(merged.lines if merged else ()), line)),
    )


class _OfAFolder(Protocol):
    @property
    def folder(self) -> str: ...


Work = TypeVar("Work", bound=_OfAFolder)
Result = TypeVar("Result")


def compile_all(jobs: Sequence[Job], processes: int | None) -> list[Outcome]:
    """Do `run` for all jobs, each with what the other clusters of its address space claim."""
    beside = neighbours([job.folder for job in jobs])
    return run_all([replace(job, neighbours=beside.get(job.folder)) for job in jobs], processes, run)


def run_all(jobs: Sequence[Work], processes: int | None, do: Callable[[Work], Result]) -> list[Result]:
    """Do all jobs; outcomes in the order of the jobs. By default, as many processes as there are processors or jobs."""
    processes = min(processes or _processors(), len(jobs))
    with progress(f"compiling {name_of(jobs[0].folder) if len(jobs) == 1 else f'{len(jobs)} clusters'}"):
        return [do(job) for job in jobs] if processes <= 1 else _in_pool(jobs, processes, do)


def _in_pool(jobs: Sequence[Work], processes: int, do: Callable[[Work], Result]) -> list[Result]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))
    ours = signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # workers inherit that: an interrupt is the parent's alone
    try:
        outcomes = pool.map(do, jobs)
        signal.signal(signal.SIGINT, ours)
        return list(outcomes)
    except BrokenProcessPool:
        raise disk.Trouble("a worker process was killed, for lack of memory perhaps: try --jobs 1") from None
    finally:
        signal.signal(signal.SIGINT, ours)
        pool.shutdown(cancel_futures=True)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def conclude(outcomes: Sequence[Outcome], style: str) -> int:
    """Print the findings of all clusters, then a line for each; give the exit code. A document is all there is on stderr."""
    from ipamc.report.findings import format_of
    from ipamc.report.findings.content import Failure

    failures = [Failure(each.folder, each.line) for each in outcomes if each.trouble]
    print_findings([finding for each in outcomes for finding in each.findings], style, failures)
    for each in outcomes:
        if not (each.trouble or format_of(style).document):
            say(f"{each.name}: {each.line}")
    return DONE if all(each.done for each in outcomes) else REFUSED
