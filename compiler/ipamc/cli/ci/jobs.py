"""Clusters to CI jobs: which must run, with how many targets each, within the limits of the forges.

A target is `CLUSTER`, or `CLUSTER/PART`, where a part is a folder below `rendered/` that builds and applies
alone: `lab/nodes/000`. Names are checked before they are written: they end in YAML, in JSON and in shells.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct, structs

from ipamc.model.selector.label_syntax import subdomain_problem
from ipamc.read.parts import BEFORE_SHARDS

GITHUB_JOBS = 256  # jobs of one matrix in one run (GitHub: usage limits)
GITLAB_JOBS = 200  # jobs of one `parallel: matrix` (GitLab, CI/CD YAML reference)
IMAGE = "python:3.13"  # what GitLab's jobs run in where nothing names another image: it compiles and plans
LONGEST = 200
"""Characters of a target in a job's name.
Where a name has more than 255, GitLab silently creates no pipeline (gitlab-org/gitlab#584573)."""
LARGE = 8  # the most shards that one job applies; a cluster with more gets a job for each shard


def is_name(text: str) -> bool:
    """Return whether a folder's name can be a cluster's: a DNS-1123 subdomain."""
    return not subdomain_problem(text)


def touched(paths: Iterable[str], below: str, there: Collection[str] = ()) -> list[str]:
    """Return the clusters that files belong to, sorted: the folders below `below` (`clusters/`).
    What is right below is one if it is `there`: git lists a submodule, or a link to a folder, by its path.
    """
    inside = (path.removeprefix(below).partition("/") for path in paths if path.startswith(below))
    found = {name for name, slash, _ in inside if slash or name in there}
    return sorted(name for name in found if not name.startswith("."))


class Job(Struct, frozen=True, kw_only=True):
    """One job of a pipeline."""

    targets: tuple[str, ...]

    @property
    def name(self) -> str:
        """The target; for several, the first, the last and their number."""
        first, last = (target[:LONGEST] for target in (self.targets[0], self.targets[-1]))
        return first if len(self.targets) == 1 else f"{first[:90]} to {last[:90]} ({len(self.targets)})"

    @property
    def environment(self) -> str:
        """The forge's environment: the cluster's name, or `ipamc` for several. It may have a kubeconfig."""
        clusters = {target.partition("/")[0] for target in self.targets}
        return clusters.pop() if len(clusters) == 1 else "ipamc"

    def record(self) -> dict[str, str]:
        """Return what a template or a matrix says of the job."""
        return {"name": self.name, "targets": " ".join(self.targets), "environment": self.environment}


def jobs(clusters: Mapping[str, Sequence[str]], *, apply: bool, large: int, most: int) -> tuple[Job, ...]:
    """Return at most `most` jobs for clusters, which are given by name with their parts.
    A cluster is one job. To apply, a cluster with more than `large` shards has one job for each shard; they
    need no order, because each applies `cilium/` first. Where that makes more than `most` jobs, targets share
    jobs as evenly as possible: none is dropped.
    """
    targets: list[str] = []
    for name, parts in sorted(clusters.items()):
        shards = [part for part in parts if part not in BEFORE_SHARDS]
        sharded = apply and len(shards) > large
        targets += [f"{name}/{shard}" for shard in shards] if sharded else [name]
    count = min(len(targets), most)
    ends = [index * len(targets) // count for index in range(count + 1)] if count else []
    return tuple(Job(targets=tuple(targets[start:end])) for start, end in pairwise(ends))


def github(planned: Sequence[Job], *, plan: bool) -> str:
    """Return the lines for `$GITHUB_OUTPUT`: `has_work`, `has_plan`, and a matrix in one line of JSON.
    GitHub refuses an empty matrix: test `has_work` first. `has_plan` is true, too, where clusters were only
    deleted: they have a plan and no job.
    """
    matrix = json.dumps({"include": [job.record() for job in planned]}, separators=(",", ":"))
    work, plans = json.dumps(bool(planned)), json.dumps(plan)
    return f"has_work={work}\nhas_plan={plans}\nmatrix={matrix}\n"


class Child(Struct, frozen=True, kw_only=True):
    """Values of GitLab's child pipeline that its parent decides."""

    image: str = IMAGE
    source: str = ""  # the commit that ipamc is built from; "" where it is not
    oidc: bool = False
    unattended: bool = False


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
    if all(len(job.targets) == 1 and len(job.targets[0]) <= LONGEST for job in planned):
        return {"targets": [(job.targets[0], job.environment) for job in planned], "jobs": []}
    several = [
        {**job.record(), "name": f"{number:03} {job.name}", "environment": job.environment[:LONGEST]}
        for number, job in enumerate(planned, 1)
    ]
    return {"targets": [], "jobs": several}
