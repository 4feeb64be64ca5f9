"""Clusters to jobs: order, limits, and nothing dropped."""

from __future__ import annotations

import json

import pytest
import yaml

from ipamc.cli.ci.jobs import github, gitlab, is_name, jobs, of_environments, touched
from ipamc.cli.ci.pipelines import rendered
from ipamc.model.limits import GITHUB_JOBS, GITLAB_JOBS
from ipamc.read.parts import is_part, parts

LARGE = ("cilium", "nodes/000", "nodes/001", "ciliumnodes/000", "ciliumnodes/001")


def test_parts_come_in_the_order_in_which_they_are_applied() -> None:
    folders = [
        "ciliumnodes/000",
        "nodes/010",
        "cilium/component",
        "pools/000",
        "nodes/00f",
        "cilium",
        "seeds/000",
    ]
    found = parts(["kustomization.yaml", *(f"{folder}/kustomization.yaml" for folder in folders)])
    assert found == ("cilium", "pools/000", "nodes/00f", "nodes/010", "ciliumnodes/000")


@pytest.mark.parametrize("text", ["lab", "lab-1.example", "0", "a" * 253])
def test_names_of_clusters(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize(
    "text", ["", "Lab", "a b", "$(id)", "a;b", "a\nb", "-a", "a/b", "a..b", "ä", "a" * 254, "a'b", "${{ x }}"]
)
def test_what_could_mean_something_to_a_shell_is_no_name(text: str) -> None:
    assert not is_name(text)
    assert not is_part(f"nodes/{text}")


def test_files_belong_to_clusters() -> None:
    paths = [
        "README.md",
        "clusters/b/ipam.lock",
        "clusters/a/deep/x.yaml",
        "clusters/b/rendered/cilium/x",
        "clusters/.schemas/x",
        "clusters/x",
    ]
    assert touched(paths, "clusters/") == ["a", "b"]


def test_a_cluster_is_a_job() -> None:
    planned = jobs({"b": LARGE, "a": ()}, apply=False, large=0, most=9)
    assert [job.targets for job in planned] == [("a",), ("b",)]


def test_to_apply_a_large_one_is_a_job_a_shard() -> None:
    planned = jobs({"a": LARGE, "b": LARGE[:3]}, apply=True, large=3, most=9)
    assert [job.name for job in planned] == [
        "a/nodes/000",
        "a/nodes/001",
        "a/ciliumnodes/000",
        "a/ciliumnodes/001",
        "b",
    ]
    assert {job.environment for job in planned} == {"a", "b"}


def test_no_cluster_no_job() -> None:
    assert jobs({}, apply=True, large=8, most=9) == ()
    lines = 'compile=skipped\nplan=skipped\napply=skipped\nrefresh=skipped\nmatrix={"include":[]}\n'
    assert github((), stage="compile", plan=False) == lines


@pytest.mark.parametrize("number", [256, 257, 1000, 5000])
def test_github_gets_at_most_256_jobs_and_nothing_is_dropped(number: int) -> None:
    clusters = {f"c{index:04}": () for index in range(number)}
    planned = jobs(clusters, apply=False, large=8, most=GITHUB_JOBS)
    lines = dict(line.split("=", 1) for line in github(planned, stage="compile", plan=True).splitlines())
    include = json.loads(lines["matrix"])["include"]
    assert lines["compile"] == "success"
    each = -(-number // GITHUB_JOBS)
    assert len(include) == -(-number // each)
    assert [target for entry in include for target in entry["targets"].split()] == sorted(clusters)
    assert {len(entry["targets"].split()) for entry in include[:-1]} == {each}
    assert len(github(planned, stage="compile", plan=True).encode("utf-16")) < 1 << 20
    assert len({entry["name"] for entry in include}) == len(include)


def test_jobs_beyond_the_limit_have_equally_many_targets() -> None:
    clusters = {f"c{index:04}": LARGE if index == 500 else () for index in range(1000)}
    planned = jobs(clusters, apply=True, large=2, most=GITHUB_JOBS)
    assert [len(job.targets) for job in planned] == [4] * 250 + [3]
    parts = [f"c0500/{part}" for part in LARGE[1:]]
    assert [target for job in planned for target in job.targets] == [
        target for name in sorted(clusters) for target in (parts if name == "c0500" else [name])
    ]


def test_clusters_of_an_environment_share_jobs_and_no_others() -> None:
    names = [f"{kind}-{index:03}" for kind in ("lab", "prod") for index in range(400)]
    patterns = "production=prod-0*,production=prod-*,lab=lab-*"
    planned = jobs(
        dict.fromkeys([*names, "own"], ()),
        apply=True,
        large=8,
        most=GITHUB_JOBS,
        environments=of_environments(patterns, [*names, "own"]),
    )
    assert [len(job.targets) for job in planned] == [4] * 100 + [1] + [4] * 100
    assert {job.environment: {target[:3] for target in job.targets} for job in planned} == {
        "lab": {"lab"},
        "production": {"pro"},
        "own": {"own"},
    }
    assert sorted(target for job in planned for target in job.targets) == [*names[:400], "own", *names[400:]]


def test_as_long_as_each_cluster_has_a_job_none_shares_an_environment() -> None:
    planned = jobs({f"c{index:03}": LARGE for index in range(200)}, apply=True, large=2, most=GITHUB_JOBS)
    assert {len({target.partition("/")[0] for target in job.targets}) for job in planned} == {1}
    assert {job.environment for job in planned} == {f"c{index:03}" for index in range(200)}


def test_with_more_environments_than_jobs_the_others_share_one() -> None:
    clusters = {f"c{index:03}": () for index in range(300)}
    planned = jobs(clusters, apply=True, large=8, most=GITHUB_JOBS)
    assert all(job.environment == ("ipamc" if len(job.targets) > 1 else job.targets[0]) for job in planned)
    with pytest.raises(ValueError, match="300 environments need more jobs"):
        jobs(clusters, apply=True, large=8, most=9, environments={name: f"e-{name}" for name in clusters})


@pytest.mark.parametrize("text", ["production", "a b=*", "x=$(id)", "x=a;b", "=a", "x=", "${{ x }}=a"])
def test_what_is_no_pattern(text: str) -> None:
    with pytest.raises(ValueError, match="does not have the form"):
        of_environments(text, ())


def child(number: int, *, apply: bool, name: str = "c{:04}") -> str:
    planned = jobs(
        {name.format(index): () for index in range(number)}, apply=apply, large=8, most=GITLAB_JOBS
    )
    return rendered(
        "gitlab-child", gitlab(planned, stage="apply" if apply else "compile", base="0" * 40, version="1")
    )


@pytest.mark.parametrize("apply", [False, True])
def test_gitlab_gets_a_matrix_within_its_limit(apply: bool) -> None:  # noqa: FBT001 - a parameter of the test
    document = yaml.safe_load(child(200, apply=apply))
    entries = document["apply" if apply else "compile"]["parallel"]["matrix"]
    assert [entry["TARGETS"] for entry in entries] == [f"c{index:04}" for index in range(200)]


@pytest.mark.parametrize("apply", [False, True])
@pytest.mark.parametrize("name", ["c{:04}", "a" * 249 + "{:04}"])
def test_gitlab_gets_jobs_of_their_own_beyond(apply: bool, name: str) -> None:  # noqa: FBT001 - a parameter of the test
    document = yaml.safe_load(child(1000, apply=apply, name=name))
    found = {
        title: body
        for title, body in document.items()
        if isinstance(body, dict) and "TARGETS" in body.get("variables", {})
    }
    assert len(found) == GITLAB_JOBS
    assert max(map(len, found)) < 255
    assert [target for body in found.values() for target in body["variables"]["TARGETS"].split()] == [
        name.format(index) for index in range(1000)
    ]
    assert all("ENVIRONMENT" in body["variables"] for body in found.values()) == apply


def test_a_long_name_is_no_matrix_entry() -> None:
    document = yaml.safe_load(child(1, apply=False, name="a" * 249 + "{:04}"))
    assert "compile" not in document
    assert all(len(title) < 255 for title in document)


def test_the_largest_child_is_far_below_what_gitlab_reads() -> None:
    assert len(child(5000, apply=True)) < 100_000


def test_an_empty_child_has_a_job() -> None:
    assert yaml.safe_load(child(0, apply=True))["nothing to do"]["script"]
