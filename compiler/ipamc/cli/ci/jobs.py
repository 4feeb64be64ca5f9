"""Clusters to CI jobs: which must run, with how many targets each, within the limits of the forges.

A target is `CLUSTER`, or `CLUSTER/PART`, where a part is a folder below `rendered/` that builds and applies
alone: `lab/nodes/000`. Names are checked before they are written: they end in YAML, in JSON and in shells.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import count

from msgspec import Struct, structs

from ipamc.cli.ci.runners import Runners, runner_of
from ipamc.model.limits import TARGET_IN_JOB
from ipamc.model.selector.label_syntax import subdomain_problem
from ipamc.read.parts import shards_of

IMAGE = "python:3.13"  # the default image of GitLab's jobs that compile and plan
SEVERAL = "ipamc"
"""The environment of a job with several clusters that share no other."""


def is_name(text: str) -> bool:
    """Return whether a folder's name can be a cluster's: a DNS-1123 subdomain."""
    return not subdomain_problem(text)


def touched(paths: Iterable[str], below: str, there: Collection[str] = ()) -> list[str]:
    """Return the clusters that contain the paths, sorted: names of folders below `below` (`clusters/`).
    A path directly below `below` counts if it is in `there`: git lists a submodule or a linked folder so.
    """
    inside = (path.removeprefix(below).partition("/") for path in paths if path.startswith(below))
    found = {name for name, slash, _ in inside if slash or name in there}
    return sorted(name for name in found if not name.startswith("."))


class Job(Struct, frozen=True, kw_only=True):
    """One job of a pipeline."""

    targets: tuple[str, ...]
    environment: str
    """The forge's environment, which may have a kubeconfig and approvals."""
    runner: tuple[str, ...] = ()
    """The labels or tags of its runner, where clusters have different ones."""

    @property
    def name(self) -> str:
        """The target; for several, the first, the last and their number."""
        first, last = (target[:TARGET_IN_JOB] for target in (self.targets[0], self.targets[-1]))
        return first if len(self.targets) == 1 else f"{first[:90]} to {last[:90]} ({len(self.targets)})"

    def record(self) -> dict[str, object]:
        """Return the values of the job for a template or a matrix."""
        runner = {"runner": self.runner} if self.runner else {}
        return {
            "name": self.name,
            "targets": " ".join(self.targets),
            "environment": self.environment,
            **runner,
        }


def jobs(
    clusters: Mapping[str, Sequence[str]],
    *,
    apply: bool,
    large: int,
    most: int,
    environments: Mapping[str, str] | None = None,
    runners: Runners = (),
) -> tuple[Job, ...]:
    """Return at most `most` jobs for clusters, which are given by name with their parts.
    A cluster is one job. To apply, a cluster with more than `large` shards has one job for each shard. These
    jobs need no order, because each applies `cilium/` first. If there would be more than `most` jobs,
    neighbours in the order of names share jobs, equally many in each, and none is dropped. A job has one
    environment and one runner, so only clusters of the same ones share jobs; `environments` lists clusters
    whose environment has another name than the cluster. If the remaining clusters outnumber the jobs, they
    share SEVERAL. Raises ValueError if there are more `environments` than jobs.
    """
    environments = environments or {}
    runs = {name: runner_of(runners, name) for name in clusters}
    targets = []
    for name in sorted(clusters):
        shards = shards_of(clusters[name]) if apply else ()
        divided = [f"{name}/{shard}" for shard in shards] if len(shards) > large else [name]
        targets += [(target, name) for target in divided]
    if len(targets) <= most:
        return tuple(
            Job(targets=(each,), environment=environments.get(name, name), runner=runs[name])
            for each, name in targets
        )
    own = len({(environments.get(name, name), runs[name]) for name in clusters}) <= most
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for target, name in targets:
        environment = environments.get(name, name if own else SEVERAL)
        groups.setdefault((environment, runs[name]), []).append(target)
    if len(groups) > most:
        raise ValueError(f"{len(groups)} environments need more jobs than the limit of {most}")
    size = next(size for size in count(2) if sum(-(-len(group) // size) for group in groups.values()) <= most)
    planned = []
    for (environment, runner), group in groups.items():
        for at in range(0, len(group), size):
            some = tuple(group[at : at + size])
            only = {target.partition("/")[0] for target in some}
            single = len(only) == 1 and only.isdisjoint(environments)
            planned.append(
                Job(targets=some, environment=only.pop() if single else environment, runner=runner)
            )
    return tuple(planned)


def of_environments(patterns: str, names: Iterable[str]) -> dict[str, str]:
    """Return the environment of each cluster that a pattern matches. Raises ValueError for malformed text.
    `patterns` is ENVIRONMENT=PATTERN, several with commas between them; the first match counts.
    """
    pairs = []
    for text in filter(None, patterns.split(",")):
        environment, equals, pattern = text.partition("=")
        if not equals or not is_name(environment) or not is_name(pattern.replace("*", "x")):
            raise ValueError(f"{text!r} does not have the form production=prod-*")
        pairs.append((environment, pattern))
    found = ((name, next((env for env, glob in pairs if fnmatchcase(name, glob)), "")) for name in names)
    return {name: environment for name, environment in found if environment}


def github(planned: Sequence[Job], *, stage: str, plan: bool) -> str:
    """Return the lines for `$GITHUB_OUTPUT`: how each job has to end, and a matrix in one line of JSON.
    A job that has work has to end with `success`; another one is `skipped`, because GitHub refuses an empty
    matrix. `plan` has work, too, where clusters were only deleted: they have a plan and no job.
    """
    work = {"apply" if stage == "repair" else stage: planned, "plan": plan}
    rows = [
        f"{job}={'success' if work.get(job) else 'skipped'}"
        for job in ("compile", "plan", "apply", "refresh")
    ]
    matrix = json.dumps({"include": [job.record() for job in planned]}, separators=(",", ":"))
    return "\n".join((*rows, f"matrix={matrix}", ""))


class Child(Struct, frozen=True, kw_only=True):
    """Values of GitLab's child pipeline that its parent decides."""

    image: str = IMAGE
    source: str = ""  # the commit that ipamc is built from; "" where it is not
    oidc: bool = False
    unattended: bool = False
    gates: str = ""  # the words for `ipamc plan --fail-on`
    tags: tuple[str, ...] = ()  # of the jobs' runner, where a job has no other
    own: bool = False  # whether there is a file of the user to include


def gitlab(
    planned: Sequence[Job],
    *,
    stage: str,
    base: str,
    version: str,
    plan: bool = False,
    more: Mapping[str, Sequence[Job]] | None = None,
    child: Child | None = None,
) -> dict[str, object]:
    """Return the values for the template of the child pipeline: jobs of one stage, and `more` by stage.
    They are for one `parallel: matrix` where each job has one target, else for separate jobs.
    """
    beside = {name: found for name, found in (more or {}).items() if found}
    sorts = [(stage, "job", planned), *((name, name, found) for name, found in beside.items())]
    return {
        **structs.asdict(child or Child()),
        "version": version,
        "base": base,
        "apply": stage != "compile",
        "repair": stage == "repair",
        "work": bool(planned or beside) or plan,
        "sorts": [{"name": name, "base": f".{kind}", **_listed(found)} for name, kind, found in sorts],
        "refresh": "refresh" in beside,
        "audit": "audit" in beside,
    }


def _listed(planned: Sequence[Job]) -> dict[str, object]:
    runs = {job.runner for job in planned}
    alike = len(runs) <= 1
    if alike and all(len(job.targets) == 1 and len(job.targets[0]) <= TARGET_IN_JOB for job in planned):
        targets = [(job.targets[0], job.environment) for job in planned]
        return {"targets": targets, "jobs": [], "runner": next(iter(runs), ())}
    several = [
        {
            **job.record(),
            "name": f"{number:03} {job.name}",
            "environment": job.environment[:TARGET_IN_JOB],
            "runner": job.runner,
        }
        for number, job in enumerate(planned, 1)
    ]
    return {"targets": [], "jobs": several, "runner": ()}
