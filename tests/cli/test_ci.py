"""`ipamc ci`: files that are written, clusters that changed, comments, merges."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from ipamc import __version__
from ipamc.cli import main
from ipamc.cli.ci import STEPS
from ipamc.law.change import Gate
from ipamc.read.parts import BEFORE_SHARDS, KINDS
from ipamc.review import GATES
from tests.support import in_process
from tests.support.examples import NAMES
from tests.support.pipelines import HASH, ROOT, Repository, bash, installing, inventory, steps, workflow

FILES = {"gitlab": ".gitlab-ci.yml", "github": ".github/workflows/ipamc.yml"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    Repository(folder)
    return folder


@pytest.fixture
def repository(made: Path, tmp_path: Path) -> Repository:
    """Return a repository of one's own, as copied from one that was made once."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    found = Repository.__new__(Repository)
    found.tools, found.folder = tmp_path / "bin", tmp_path / "clone"
    script = (found.tools / "ipamc").read_text()
    (found.tools / "ipamc").write_text(script.replace(str(made), str(tmp_path)))
    path = f"{found.tools}:{os.environ['PATH']}"
    found.environment = {
        "PATH": path,
        "HOME": str(tmp_path),
        "GIT_CONFIG_NOSYSTEM": "1",
        "SOURCE_DATE_EPOCH": "1795000000",
    }
    found.run("git", "config", "user.name", "a")
    found.run("git", "config", "user.email", "a@example.org")
    found.run("git", "remote", "set-url", "origin", str(tmp_path / "origin.git"))
    found.calls()
    return found


# Files.


@pytest.mark.parametrize("step", STEPS)
def test_help_of_every_step_teaches(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ci", step, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"ipamc ci {step}" in text.split("Examples:")[1]
    assert "Exit codes:" in text


@pytest.mark.parametrize("forge", FILES)
def test_writing_again_gives_the_same_bytes(repository: Repository, forge: str) -> None:
    before = (repository.folder / FILES[forge]).read_text()
    assert f"{FILES[forge]}: unchanged" in repository.run("ipamc", "ci", forge)
    assert repository.run("ipamc", "ci", forge, "--write", "-") == before
    repository.write(FILES[forge], before + "# edited\n")
    assert "written" in repository.run("ipamc", "ci", forge)
    assert (repository.folder / FILES[forge]).read_text() == before


@pytest.mark.parametrize("forge", FILES)
def test_never_over_a_file_of_somebody_else(repository: Repository, forge: str) -> None:
    repository.write(FILES[forge], "mine: true\n")
    said = repository.run("ipamc", "ci", forge, code=1)
    assert f"error: {FILES[forge]} was not written by ipamc" in said
    assert f"'ipamc ci {forge} --write FILE'" in said
    assert (repository.folder / FILES[forge]).read_text() == "mine: true\n"
    assert "written" in repository.run("ipamc", "ci", forge, "--write", "ci/ipamc.yml")


def test_only_at_the_top_of_the_repository(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository.folder / "clusters")
    assert main(["ci", "gitlab"]) == 1
    assert "run this at the top of the repository" in capsys.readouterr().err


def test_the_branch_of_the_workflow_is_quoted(repository: Repository) -> None:
    text = repository.run("ipamc", "ci", "github", "--branch", "a: b#c", "--write", "-")
    assert workflow(text)["on"]["push"]["branches"] == ["a: b#c"]


@pytest.mark.parametrize("path", sorted(FILES.values()))
def test_what_is_written_promises_what_it_should(repository: Repository, path: str) -> None:
    text = (repository.folder / path).read_text()
    assert "force-conflicts" not in text
    assert "--token" not in text


def test_the_workflow_has_few_rights_and_pinned_actions(repository: Repository) -> None:
    found = workflow((repository.folder / FILES["github"]).read_text())
    assert found["permissions"] == {}
    assert {
        name: job["permissions"] for name, job in found["jobs"].items() if "write" in str(job["permissions"])
    } == {
        "plan": {"contents": "read", "pull-requests": "write"},
        "applied": {"contents": "write"},
        "merge": {"contents": "write"},
    }
    steps = [step for job in found["jobs"].values() for step in job["steps"]]
    checkouts = [step["with"] for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert {found["persist-credentials"] for found in checkouts} == {"false"}
    assert not any("pull_request_target" in event for event in found["on"])
    # A token or a secret is in the environment of the one step that needs it
    tokens = [
        (name, re.findall("ipamc (?:ci )?[a-z]+|git .*push", step["run"]), value)
        for name, job in found["jobs"].items()
        for step in job["steps"]
        for value in step.get("env", {}).values()
        if "token" in value or "secrets." in value
    ]
    push = found["jobs"]["merge"]["steps"][-1]["run"].partition(" origin ")[0]
    assert tokens == [
        ("changes", ["ipamc ci matrix"], "${{ github.event_name == 'push' && github.token || '' }}"),
        ("plan", ["ipamc ci consent"], "${{ github.token }}"),
        ("plan", ["ipamc ci comment"], "${{ github.token }}"),
        ("apply", ["ipamc apply"], "${{ secrets.IPAMC_KUBECONFIG }}"),
        ("applied", ["ipamc ci applied"], "${{ github.token }}"),
        ("merge", [push], "${{ secrets.IPAMC_TOKEN || github.token }}"),
    ]
    assert "secrets." not in str(found["env"])
    scripts = [step["run"] for job in found["jobs"].values() for step in job["steps"] if "run" in step]
    # What people may choose reaches a shell by its environment alone
    assert not [script for script in scripts if "${{" in script]


def written(*options: str) -> str:
    """Return the workflow for GitHub."""
    return main_prints("github", "--sha256", HASH, *options)


def test_every_action_is_named_by_commit_with_its_tag_beside() -> None:
    text = written("--refresh")
    found = re.findall(r"uses: (actions/.*)$", text, re.MULTILINE)
    assert len(found) == text.count("uses: actions/") == 10
    assert text.count("uses:") == 10 + text.count("uses: ./.github/actions/ipamc\n")
    assert all(
        re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+", each) for each in found
    )
    assert len(set(found)) == len({each.partition("@")[0] for each in found})  # of each action one version


def test_a_merge_group_is_compared_with_what_it_is_merged_into() -> None:
    found = workflow(written())
    assert found["on"]["merge_group"] == {"types": ["checks_requested"]}
    assert "'merge_group' && github.event.merge_group.base_sha ||" in found["env"]["BASE"]


def test_a_merge_train_is_compared_with_the_request_before_it(repository: Repository) -> None:
    """Else a request behind one that deletes a cluster, with a label, would need that label, too."""
    rules = workflow((repository.folder / FILES["gitlab"]).read_text())["ipamc-changes"]["rules"]
    assert [(rule["if"], rule["variables"]["IPAMC_BASE"]) for rule in rules[:2]] == [
        ('$CI_MERGE_REQUEST_EVENT_TYPE == "merge_train"', "$CI_MERGE_REQUEST_TARGET_BRANCH_SHA"),
        ("$CI_MERGE_REQUEST_IID", "origin/$CI_MERGE_REQUEST_TARGET_BRANCH_NAME"),
    ]


def child(repository: Repository, stage: str, *options: str) -> dict[str, Any]:
    """Return GitLab's child pipeline of a stage."""
    repository.run(
        *("ipamc", "ci", "matrix", "--output", "gitlab", "--stage", stage, *options, "--write", "child.yml")
    )
    return workflow((repository.folder / "child.yml").read_text())


def test_a_merge_train_has_no_comment_and_no_button(repository: Repository) -> None:
    button = workflow((repository.folder / FILES["gitlab"]).read_text())["ipamc-merge-target"]
    assert button["rules"][0] == {"if": '$CI_MERGE_REQUEST_EVENT_TYPE == "merge_train"', "when": "never"}
    (script,) = child(repository, "compile")["plan"]["script"]
    comment = next(line for line in script.splitlines() if "ci comment" in line)
    for kind, commented in (("merge_train", False), ("merged_result", True)):
        said = repository.run(
            *bash(comment.replace("ipamc ci comment", "echo commented")), CI_MERGE_REQUEST_EVENT_TYPE=kind
        )
        assert ("commented" in said) == commented


@pytest.mark.parametrize(("stage", "jobs"), [("apply", {".job"}), ("repair", {".job", ".refresh", ".audit"})])
def test_the_jobs_of_gitlab_that_need_kubectl_look_for_it(
    repository: Repository, stage: str, jobs: set[str]
) -> None:
    found = child(repository, stage, *(["--refresh", "--audit"] if stage == "repair" else []))
    needing = {
        name
        for name, job in found.items()
        if isinstance(job, dict) and "kubectl" in str(job.get("variables"))
    }
    assert needing == jobs
    assert {found[name]["extends"] for name in jobs} == {".ipamc"}
    assert found[".ipamc"]["before_script"][0] == found[".ready"]


def test_a_token_that_may_write_is_in_the_scope_of_the_jobs_of_the_default_branch(
    repository: Repository,
) -> None:
    jobs = {**child(repository, "repair", "--refresh"), **child(repository, "apply")}
    for name in (".job", ".refresh", "applied"):
        assert jobs[name]["environment"]["name"].startswith("ipamc/"), name
    page = " ".join((ROOT / "docs/how-to/ci-gitlab.md").read_text().split())
    assert "| `IPAMC_TOKEN` in the scope `ipamc/*` | masked, hidden, protected | a second token," in page
    assert not [
        job for job in child(repository, "compile").values() if isinstance(job, dict) and "environment" in job
    ]


WITHOUT = {
    "kubectl": "error: the image of this job has no kubectl: set the CI/CD variable IPAMC_IMAGE to",
    "git": "error: the image of this job has no git",
    "ipamc": "error: the image of this job has neither ipamc nor Python 3.11 or newer with pip",
    "another ipamc": f"error: the image of this job has ipamc 0.0.9, but ipamc {__version__} wrote the pipeline",
}


@pytest.mark.parametrize("what", WITHOUT)
def test_an_image_that_lacks_something_fails_with_one_line(
    repository: Repository, tmp_path: Path, what: str
) -> None:
    found = workflow((repository.folder / FILES["gitlab"]).read_text())
    image = tmp_path / "image"
    image.mkdir()
    for name in ("git", "kubectl", "ipamc"):
        if name != what:
            version = "0.0.9" if what == "another ipamc" else __version__
            (image / name).write_text(f"#!/bin/sh\necho ipamc {version}\n")
            (image / name).chmod(0o755)
    variables = {
        "PATH": str(image),
        "IPAMC_NEEDS": "kubectl",
        "IPAMC_VERSION": found["variables"]["IPAMC_VERSION"],
    }
    shell = str(shutil.which("sh"))
    said = repository.run(shell, "-ec", found[".ready"][0], code=1, **variables)
    (line,) = [line for line in said.splitlines() if line.startswith("error: ")]
    assert WITHOUT[what] in line


def test_argocd_prunes_and_deletes_nothing() -> None:
    text = main_prints("argocd", "--repo", "https://example.org/fleet.git")
    spec = yaml.safe_load(text)["spec"]
    assert spec["syncPolicy"] == {"applicationsSync": "create-update", "preserveResourcesOnDeletion": True}
    policy = spec["template"]["spec"]["syncPolicy"]
    assert policy["automated"] == {"prune": False, "selfHeal": True}
    assert {"ServerSideApply=true", "RespectIgnoreDifferences=true"} <= set(policy["syncOptions"])
    assert "/spec/ipam/pools" in spec["template"]["spec"]["ignoreDifferences"][0]["jsonPointers"]


def test_argocd_finds_every_part_of_every_cluster_and_nothing_else() -> None:
    spec = yaml.safe_load(main_prints("argocd", "--repo", "https://example.org/fleet.git"))["spec"]
    patterns = [each["path"] for each in spec["generators"][0]["git"]["directories"]]
    assert [pattern.split("/")[3] for pattern in patterns] == [*BEFORE_SHARDS, *KINDS]
    found = sorted(
        path.relative_to(ROOT).as_posix()
        for pattern in patterns
        for path in ROOT.glob(pattern)
        if path.is_dir()
    )
    kustomizations = sorted(
        path.parent.relative_to(ROOT).as_posix()
        for path in ROOT.glob("clusters/*/rendered/*/**/kustomization.yaml")
    )
    assert found == [path for path in kustomizations if not path.endswith("/component")]


def test_argocd_may_have_an_application_for_each_small_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = main_prints("argocd", "--repo", "https://example.org/fleet.git", "--large", "1")
    whole, shards = yaml.safe_load_all(text)
    directories = whole["spec"]["generators"][0]["git"]["directories"]
    assert directories[0] == {"path": "clusters/*/rendered/cilium"}
    large = {each["path"].split("/")[1] for each in directories[1:] if each["exclude"]}
    assert large == {"bgp"}  # it has a shard of Nodes and one of CiliumNodes
    assert {
        each["path"].split("/")[1] for each in shards["spec"]["generators"][0]["git"]["directories"]
    } == large
    assert whole["metadata"]["name"] != shards["metadata"]["name"] == "ipamc"
    assert (
        whole["spec"]["template"]["spec"]["source"]["path"]
        == "clusters/{{ index .path.segments 1 }}/rendered"
    )
    assert (
        len(list(yaml.safe_load_all(main_prints("argocd", "--repo", "https://e.org", "--large", "9")))) == 1
    )


@pytest.mark.skipif(not os.environ.get("KUSTOMIZE_BUILD"), reason="needs KUSTOMIZE_BUILD")
def test_waves_of_argocd_have_policies_and_pools_first(tmp_path: Path) -> None:
    text = main_prints("argocd", "--repo", "https://example.org/fleet.git", "--large", "9")
    patches = yaml.safe_load(text)["spec"]["template"]["spec"]["source"]["kustomize"]["patches"]
    for name in ("cluster-pool", "multi-pool"):
        shutil.copytree(ROOT / "clusters" / name, tmp_path / name)
        top = tmp_path / name / "rendered" / "kustomization.yaml"
        policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
        (top.parent / "policy.yaml").write_text(yaml.safe_dump(policy | {"metadata": {"name": "z"}}))
        root = yaml.safe_load(top.read_text())
        root["resources"].append("policy.yaml")
        top.write_text(yaml.safe_dump(root | {"patches": patches}))
        command = [*os.environ["KUSTOMIZE_BUILD"].split(), str(top.parent)]
        built = list(yaml.safe_load_all(subprocess.run(command, check=True, capture_output=True).stdout))
        waves = {
            (each["apiVersion"].split("/")[0], each["kind"]): each["metadata"]
            .get("annotations", {})
            .get("argocd.argoproj.io/sync-wave", "0")
            for each in built
        }
        assert waves.get(("cilium.io", "CiliumNode"), "0") == "0"
        assert waves["admissionregistration.k8s.io", "ValidatingAdmissionPolicy"] == "-2"
        assert waves.get(("cilium.io", "CiliumPodIPPool"), "-1") == "-1"


def test_flux_may_have_a_kustomization_for_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a folder without a kustomization Flux builds those right below."""
    monkeypatch.chdir(ROOT)
    items = [each for each in yaml.safe_load_all(main_prints("flux", "bgp", "--large", "2")) if each]
    paths = {each["metadata"]["name"]: each["spec"]["path"] for each in items}
    assert paths == {
        f"bgp-{kind}": f"./clusters/bgp/rendered/{kind}" for kind in ("cilium", "nodes", "ciliumnodes")
    }
    assert all(not (ROOT / paths[f"bgp-{kind}"] / "kustomization.yaml").exists() for kind in KINDS[1:])


def test_flux_applies_every_shard_after_cilium_and_prunes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    items = [each for each in yaml.safe_load_all(main_prints("flux", "bgp")) if each]
    assert [(each["metadata"]["name"], each["spec"].get("dependsOn")) for each in items] == [
        ("bgp-cilium", None),
        ("bgp-nodes-000", [{"name": "bgp-cilium"}]),
        ("bgp-ciliumnodes-000", [{"name": "bgp-cilium"}]),
    ]
    assert all(
        each["spec"]["prune"] is False and (ROOT / each["spec"]["path"] / "kustomization.yaml").exists()
        for each in items
    )


def test_flux_for_a_fleet_names_the_secret_of_each_cluster(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    items = [each for each in yaml.safe_load_all(main_prints("flux", "--remote")) if each]
    assert {each["spec"]["kubeConfig"]["secretRef"]["name"] for each in items} == {
        f"{name}-kubeconfig" for name in NAMES
    }
    assert main(["ci", "flux"]) == 64
    assert "--remote" in capsys.readouterr().err


def main_prints(*arguments: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert main(["ci", *arguments, "--write", "-"]) == 0
    return output.getvalue()


# What the jobs install.


@pytest.mark.parametrize("forge", FILES)
def test_every_dependency_is_installed_by_hash(repository: Repository, forge: str) -> None:
    path = f".{forge}/ipamc-requirements.txt"
    text = (repository.folder / path).read_text()
    installed = {
        entry.partition("==")[0]: entry.count("--hash=sha256:")
        for entry in text.replace("\\\n", "").splitlines()
        if not entry.startswith("#")
    }
    assert all(installed.values())
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {re.split("[<>=]", entry)[0] for entry in needed} <= installed.keys()
    assert f"ipamc=={__version__} \\\n    --hash=sha256:{HASH}\n" in text
    repository.run("ipamc", "ci", forge)  # what was given once stays
    assert (repository.folder / path).read_text() == text
    (repository.folder / path).unlink()
    (repository.folder / FILES[forge]).unlink()
    for more in ((), ("--write", "-")):
        said = repository.run("ipamc", "ci", forge, *more, code=64)
        assert (
            f"no way to get ipamc {__version__}, so no file is written: give --wheel, --git, --image or --sha256"
            in " ".join(said.split())
        )
        assert "name:" not in said
    assert not (repository.folder / path).exists()
    assert not (repository.folder / FILES[forge]).exists()
    assert "is not a SHA-256" in repository.run("ipamc", "ci", forge, "--sha256", "A1" * 32, code=64)


@pytest.mark.parametrize("forge", [*FILES, "child"])
def test_jobs_install_wheels_by_hash_and_run_no_module_of_the_checkout(
    repository: Repository, forge: str
) -> None:
    if forge == "child":
        repository.run("ipamc", "ci", "matrix", "--output", "gitlab", "--write", "child.yml")
    text = (repository.folder / FILES.get(forge, "child.yml")).read_text()
    found = workflow(text)
    if forge == "github":
        text = str(installing(repository)["run"])
    lines = [line.partition("-m ")[2] or line for line in text.splitlines() if "pip install" in line]
    folder = "github" if forge == "github" else "gitlab"
    assert {line.strip().removeprefix("- run: ") for line in lines} == {
        f"pip install --quiet --only-binary :all: --require-hashes -r .{folder}/ipamc-requirements.txt",
    }
    variables = found["env" if forge == "github" else "variables"]
    assert variables["PYTHONSAFEPATH"] == "1"
    pairs = [(variables[f"GIT_CONFIG_KEY_{n}"], variables[f"GIT_CONFIG_VALUE_{n}"]) for n in range(2)]
    assert pairs == [("safe.bareRepository", "explicit"), ("core.hooksPath", "/dev/null")]


# Clusters that changed.


def names(repository: Repository, *options: str) -> list[str]:
    done = in_process.ipamc(
        *("ci", "matrix", "--output", "names", *options),
        cwd=repository.folder,
        environment=repository.environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "path", ["nodes.yaml", "ipam.lock", "rendered/cilium/configmap.yaml", "new/deep.yaml"]
)
def test_inputs_lock_and_rendered_change_a_cluster(repository: Repository, path: str) -> None:
    repository.run("git", "checkout", "-q", "-b", "feature")
    file = repository.folder / "clusters/red" / path
    repository.write(f"clusters/red/{path}", (file.read_text() if file.exists() else "") + "# changed\n")
    repository.write("README.md", "changed")
    repository.commit("feature")
    assert names(repository, "--base", "origin/main") == ["red"]
    assert names(repository) == ["blue", "red"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".gitattributes", "* text=auto\n"),
        ("clusters/.gitattributes", "* text=auto\n"),
        (".gitmodules", "# none\n"),
        ("clusters/tests.yaml", "apiVersion: ipamc/v1alpha1\nkind: Tests\ntests: []\n"),
    ],
)
def test_what_holds_for_all_clusters_lists_all(repository: Repository, path: str, text: str) -> None:
    """An attribute at the top can change what a checkout of any cluster is, also of one that the branch leaves alone."""
    repository.run("git", "checkout", "-q", "-b", "feature")
    repository.write(path, text)
    repository.commit("feature")
    assert names(repository, "--base", "origin/main") == ["blue", "red"]
    assert names(repository, "--base", "origin/main", "--stage", "apply") == []
    repository.run("git", "checkout", "-q", "-b", "without")
    (repository.folder / path).unlink()
    repository.commit("without")
    assert names(repository, "--base", "feature") == ["blue", "red"]


def test_an_attribute_of_one_cluster_concerns_that_one(repository: Repository) -> None:
    repository.run("git", "checkout", "-q", "-b", "feature")
    repository.write("clusters/red/.gitattributes", "* text=auto\n")
    repository.write("docs/.gitattributes", "* eol=crlf\n")
    repository.commit("feature")
    assert names(repository, "--base", "origin/main") == ["red"]


def test_a_cluster_that_lists_the_addresses_of_others_is_compiled_with_them(repository: Repository) -> None:
    """Of what is applied a commit tells: there, the rendered list changed, too, or did not."""
    cluster = repository.folder / "clusters/blue/cluster.yaml"
    text = cluster.read_text().replace("managedBy: none}", "managedBy: none, masquerade: {}}")
    text = text.replace("  ipam:", "  addressSpace: fabric\n  ipam:")
    repository.write("clusters/blue/cluster.yaml", text)
    repository.commit("blue")
    repository.run("git", "checkout", "-q", "-b", "feature")
    repository.write("clusters/red/nodes.yaml", inventory("n7"))
    repository.commit("feature")
    assert names(repository, "--base", "main") == ["blue", "red"]
    assert names(repository, "--base", "main", "--stage", "apply") == ["red"]
    repository.run("git", "checkout", "-q", "main")
    repository.run("git", "checkout", "-q", "-b", "beside")
    repository.write("README.md", "changed")
    repository.commit("beside")
    assert names(repository, "--base", "main") == []


def test_what_changed_on_the_target_meanwhile_is_not_ours(repository: Repository) -> None:
    repository.branch("feature", "red", "n2")
    repository.run("git", "checkout", "-q", "main")
    repository.write("clusters/blue/more.yaml", inventory("n9"))
    repository.commit("theirs")
    repository.run("git", "checkout", "-q", "feature")
    assert names(repository, "--base", "main") == ["red"]


@pytest.mark.parametrize("base", ["0" * 40, "nowhere", "^HEAD", "--all", "HEAD..HEAD"])
def test_where_git_cannot_tell_a_branch_fails_and_an_apply_takes_every_cluster(
    repository: Repository, base: str
) -> None:
    command = ("ipamc", "ci", "matrix", "--output", "names", f"--base={base}")
    said = repository.run(*command, code=1)
    assert f"error: {base} cannot be compared with HEAD: git has no such revision here; fetch" in said
    for stage in ("apply", "repair"):
        said = repository.run(*command, "--stage", stage)
        assert f"listing all clusters: {base} cannot be compared" in said
        assert {"blue", "red"} <= set(said.splitlines())


def test_a_shallow_clone_is_said(repository: Repository, tmp_path: Path) -> None:
    repository.branch("feature", "red", "n2")
    repository.run("git", "push", "-q", "origin", "feature")
    repository.run(
        "git",
        "clone",
        "-q",
        "--depth",
        "1",
        "--no-single-branch",
        f"file://{tmp_path}/origin.git",
        str(tmp_path / "shallow"),
    )
    repository.folder = tmp_path / "shallow"
    repository.run("git", "checkout", "-q", "feature")
    assert "perhaps in a shallow clone" in repository.run(
        *("ipamc", "ci", "matrix", "--output", "names", "--base", "origin/main"), code=1
    )


@pytest.mark.parametrize("how", ["link", "link to another"])
def test_a_cluster_behind_a_link_fails_the_pipeline(repository: Repository, how: str) -> None:
    clusters = repository.folder / "clusters"
    if how == "link":
        (clusters / "red").rename(repository.folder / "elsewhere")
        (clusters / "red").symlink_to("../elsewhere")
    else:
        (clusters / "new").symlink_to("blue")
    repository.commit(how)
    command = ("ipamc", "ci", "matrix", "--output", "names", "--base", "origin/main")
    assert "is a link, and ipamc neither reads nor writes a cluster through links" in repository.run(
        *command, code=1
    )


def test_a_space_is_compiled_with_its_members_and_never_applied(repository: Repository) -> None:
    clusters = repository.folder / "clusters"
    (clusters / "fabric").mkdir()
    (clusters / "fabric" / "space.yaml").write_text(
        "apiVersion: ipamc/v1alpha1\nkind: AddressSpace\nmetadata: {name: fabric}\n"
        "spec: {ipv4: {cidrs: [10.128.0.0/16], prefixLength: 20}}\n"
    )
    index = clusters / "fabric" / "rendered" / "index.jsonl"
    index.parent.mkdir()
    line = '{"cidr":"10.128.0.0/20","cluster":"red","pool":"pods","range":1}\n'
    index.write_text('{"index":1,"space":"fabric"}\n' + line)
    repository.commit("a space that has given red a range")
    # Of what is red's alone only the index tells.
    assert names(repository, "--base", "origin/main") == ["fabric", "red"]
    repository.run("git", "push", "-q", "origin", "HEAD:main")
    repository.run("git", "fetch", "-q", "origin")
    assert names(repository, "--base", "origin/main") == []
    (clusters / "blue" / "nodes.yaml").write_text(inventory("a", "b", "z"))
    repository.commit("a node")
    assert names(repository, "--base", "origin/main") == ["blue", "fabric"]
    assert names(repository, "--base", "origin/main", "--stage", "apply") == ["blue"]
    index.write_text('{"index":1,"space":"fabric"}\nno line\n')
    repository.commit("a broken index")
    assert names(repository, "--base", "origin/main") == ["blue", "fabric", "red"]


@pytest.mark.parametrize("how", ["deleted", "all deleted", "renamed"])
def test_a_cluster_that_goes_is_planned(repository: Repository, how: str) -> None:
    clusters = repository.folder / "clusters"
    if how == "renamed":
        (clusters / "red").rename(clusters / "green")
    else:
        shutil.rmtree(clusters / "red")
        if how == "all deleted":
            shutil.rmtree(clusters)
    repository.commit(how)
    here, gone = {
        "deleted": ([], ["red"]),
        "all deleted": ([], ["blue", "red"]),
        "renamed": (["green"], ["red"]),
    }[how]
    assert names(repository, "--base", "origin/main") == sorted(here + gone)
    command = ("ipamc", "ci", "matrix", "--base", "origin/main", "--write")
    said = repository.run(*command, "out", "--output", "github")
    assert ("deleted here, but applied objects stay: " + ", ".join(gone) in said) == bool(gone)
    lines = dict(line.split("=", 1) for line in (repository.folder / "out").read_text().splitlines())
    assert lines["plan"] == "success"
    assert lines["compile"] == ("success" if here else "skipped")
    assert [job["name"] for job in json.loads(lines["matrix"])["include"]] == here
    repository.run(*command, "child.yml", "--output", "gitlab")
    child = yaml.safe_load((repository.folder / "child.yml").read_text())
    assert "plan" in child
    assert ("compile" in child) == bool(here)
    if how != "all deleted":  # after the merge it is named, and there is nothing to do
        repository.run(*command, "apply", "--output", "github", "--stage", "apply")
        assert "plan=skipped" in (repository.folder / "apply").read_text()


def test_nothing_that_is_no_cluster_is_a_deleted_one(repository: Repository) -> None:
    repository.write("clusters/README.md", "text")
    repository.commit("more")
    repository.run("git", "branch", "-q", "base")
    (repository.folder / "clusters/README.md").unlink()
    repository.commit("less")
    assert names(repository, "--base", "base") == []


@pytest.mark.parametrize("name", ["$(touch x)", "a b", "a\nb", "UP"])
def test_a_folder_that_is_no_name_stops_everything(repository: Repository, name: str) -> None:
    (repository.folder / "clusters" / name).mkdir()
    said = repository.run("ipamc", "ci", "matrix", "--output", "github", code=1)
    assert "cannot name a cluster" in said
    assert "matrix=" not in said


# What was applied last.


class Runs(BaseHTTPRequestHandler):
    """An API that lists the successful pipelines; each request is remembered."""

    answer: Any
    requests: list[tuple[str, str]]
    code = 200

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its signature
        """Say nothing."""

    def do_GET(self) -> None:
        token = self.headers.get("Authorization") or self.headers.get("Private-Token") or ""
        self.requests.append((self.path, token))
        data = json.dumps(self.answer).encode()
        self.send_response(self.code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def runs() -> Iterator[tuple[type[Runs], str]]:
    handler = type("OneRuns", (Runs,), {"answer": None, "requests": []})
    with serving(handler) as url:
        yield handler, url


def github_runs(url: str, sha: str = "") -> tuple[dict[str, Any], Any]:
    """Return the variables of a job of GitHub, and what the API answers."""
    variables = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": url,
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_REF_NAME": "main",
        "GITHUB_WORKFLOW_REF": "o/r/.github/workflows/ipamc.yml@refs/heads/main",
        "GITHUB_TOKEN": "t0ken",
    }
    return variables, {"workflow_runs": [{"head_sha": sha}] if sha else []}


def gitlab_runs(url: str, sha: str = "") -> tuple[dict[str, Any], Any]:
    """Return the variables of a job of GitLab, and what the API answers."""
    variables = {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": url,
        "CI_PROJECT_ID": "5",
        "CI_COMMIT_BRANCH": "main",
        "IPAMC_TOKEN": "t0ken",
    }
    return variables, [{"sha": sha}] if sha else []


def find(repository: Repository, **variables: Any) -> str:
    """Run `ipamc ci matrix` as the job after a merge does."""
    command = ("ipamc", "ci", "matrix", "--output", "names", "--stage", "apply", "--base", "last-success")
    return repository.run(*command, **variables)


def head(repository: Repository) -> str:
    return repository.run("git", "rev-parse", "HEAD").strip()


@pytest.mark.parametrize(
    ("forge_runs", "path", "secret"),
    [
        (
            github_runs,
            "/repos/o/r/actions/workflows/ipamc.yml/runs?branch=main&event=push&status=success&per_page=1",
            "Bearer t0ken",
        ),
        (
            gitlab_runs,
            "/projects/5/pipelines?ref=main&source=push&status=success&order_by=id&sort=desc&per_page=1",
            "t0ken",
        ),
    ],
)
def test_a_cluster_whose_apply_failed_is_listed_until_one_succeeds(
    repository: Repository, runs: tuple[type[Runs], str], forge_runs: Any, path: str, secret: str
) -> None:
    handler, url = runs
    commits = [head(repository)]
    for cluster, node in (("red", "n2"), ("blue", "n3")):
        repository.write(f"clusters/{cluster}/more.yaml", inventory(node))
        repository.run("ipamc", "compile")
        repository.commit(cluster)
        commits.append(head(repository))
    for success, listed in zip(commits, (["blue", "red"], ["blue"], []), strict=True):
        variables, handler.answer = forge_runs(url, success)
        said = find(repository, **variables)
        assert [line for line in said.splitlines() if line in {"blue", "red"}] == listed
        assert "t0ken" not in said
    assert set(handler.requests) == {(path, secret)}


def test_after_a_push_by_force_the_clusters_that_differ_are_listed(
    repository: Repository, runs: tuple[type[Runs], str]
) -> None:
    handler, url = runs
    repository.branch("applied", "red", "n2")
    variables, handler.answer = github_runs(url, head(repository))
    repository.run("git", "checkout", "-q", "main")
    repository.write("clusters/blue/more.yaml", inventory("n3"))
    repository.commit("another history")
    assert {"blue", "red"} <= set(find(repository, **variables).splitlines())


@pytest.mark.parametrize("forge_runs", [github_runs, gitlab_runs])
@pytest.mark.parametrize("trouble", ["no token", "none yet", "unknown commit", "refused", "unreachable"])
def test_where_the_forge_does_not_tell_every_cluster_is_listed(
    repository: Repository, runs: tuple[type[Runs], str], forge_runs: Any, trouble: str
) -> None:
    handler, url = runs
    variables, handler.answer = forge_runs(
        "http://127.0.0.1:9" if trouble == "unreachable" else url,
        "1" * 40 if trouble == "unknown commit" else "",
    )
    if trouble == "no token":
        variables |= {"GITHUB_TOKEN": "", "IPAMC_TOKEN": ""}
    if trouble == "refused":
        handler.code = 403
    said = find(repository, **variables)
    assert "listing all clusters: last-success cannot be compared" in said
    assert {"blue", "red"} <= set(said.splitlines())
    assert "t0ken" not in said


def test_outside_of_a_forge_every_cluster_is_listed(repository: Repository) -> None:
    assert "this is not a job of GitHub or GitLab" in find(repository)


def test_only_who_asks_for_it_gets_a_job_that_refreshes(repository: Repository) -> None:
    assert "refresh" not in workflow((repository.folder / FILES["github"]).read_text())["jobs"]
    assert "--refresh" not in (repository.folder / FILES["gitlab"]).read_text()
    found = workflow(repository.run("ipamc", "ci", "github", "--refresh", "--write", "-"))
    job = found["jobs"]["refresh"]
    assert job["permissions"] == {"contents": "write", "pull-requests": "write"}
    assert job["if"] == "github.ref == 'refs/heads/main' && needs.changes.outputs.refresh == 'success'"
    # No step has the kubeconfig and a token that may push
    secrets = {
        re.findall("ipamc (?:ci [a-z]+|dump)", step["run"])[0]: {
            value for value in step["env"].values() if "secrets." in value or "token" in value
        }
        for step in job["steps"]
        if re.search("ipamc (ci|dump)", step.get("run", ""))
    }
    assert secrets == {
        "ipamc dump": {"${{ secrets.IPAMC_KUBECONFIG }}"},
        "ipamc ci refresh": {"${{ secrets.IPAMC_TOKEN }}", "${{ github.token }}"},
    }
    matrix = repository.run(
        "ipamc", "ci", "matrix", "--output", "github", "--stage", "refresh", "--large", "0"
    )
    assert '"targets":"blue"' in matrix  # also where an apply would have a job for each shard
    said = repository.run("ipamc", "ci", "matrix", "--output", "gitlab", "--stage", "refresh", code=64)
    assert "--stage repair --refresh" in said


def test_the_workflow_asks_for_the_last_success_after_a_push_and_repairs_by_schedule(
    repository: Repository,
) -> None:
    found = workflow((repository.folder / FILES["github"]).read_text())
    assert found["on"]["schedule"] == [{"cron": "17 * * * *"}]
    assert "github.event_name == 'push' && 'last-success'" in found["env"]["BASE"]
    changes, apply = found["jobs"]["changes"], found["jobs"]["apply"]
    assert changes["permissions"] == {"actions": "read", "contents": "read"}
    assert changes["if"].endswith("|| github.ref == 'refs/heads/main'")
    (matrix,) = (step for step in changes["steps"] if step.get("id") == "matrix")
    assert "github.event_name == 'schedule' && 'repair'" in matrix["env"]["STAGE"]
    (script,) = (step for step in apply["steps"] if "ipamc apply" in step.get("run", ""))
    assert script["env"]["REPAIR"] == "${{ github.event_name == 'schedule' && 'true' || '' }}"
    other = repository.run(
        "ipamc", "ci", "github", "--schedule", "*/5 * * * *", "--branch", "x'y", "--write", "-"
    )
    assert workflow(other)["on"]["schedule"] == [{"cron": "*/5 * * * *"}]
    assert "github.ref == 'refs/heads/x''y'" in workflow(other)["jobs"]["changes"]["if"]


def test_the_scripts_of_the_workflow_repair_where_it_is_scheduled(repository: Repository) -> None:
    text = (repository.folder / FILES["github"]).read_text()
    (repository.tools / "kubectl").write_text('#!/bin/sh\necho "no such context" >&2\nexit 1\n')
    (repository.tools / "kubectl").chmod(0o755)
    *_, script = steps(text, "apply")
    rest = f"--trunk main --receipt {repository.tools}/receipts red"
    for repair, call in (("true", f"apply --check --repair {rest}"), ("", f"apply --check {rest}")):
        variables: dict[str, Any] = {
            "RUNNER_TEMP": str(repository.tools),
            "IPAMC_KUBECONFIG": "",
            "TRUNK": "main",
        }
        repository.run(*bash(script), TARGETS="red", REPAIR=repair, code=123, **variables)
        assert call in repository.calls()


def test_gitlab_asks_for_the_last_success_after_a_push_and_repairs_by_schedule(
    repository: Repository,
) -> None:
    found = yaml.safe_load((repository.folder / FILES["gitlab"]).read_text())
    rules = found["ipamc-changes"]["rules"]
    chosen = [
        (rule["if"].partition('CI_PIPELINE_SOURCE == "')[2].partition('"')[0], rule["variables"])
        for rule in rules
    ]
    assert chosen[2:] == [
        ("schedule", {"IPAMC_STAGE": "repair", "IPAMC_BASE": ""}),
        ("push", {"IPAMC_STAGE": "apply", "IPAMC_BASE": "last-success"}),
        ("", {"IPAMC_STAGE": "apply", "IPAMC_BASE": ""}),
    ]
    repository.run("ipamc", "ci", "matrix", "--output", "gitlab", "--stage", "repair", "--write", "child.yml")
    child = yaml.safe_load((repository.folder / "child.yml").read_text())
    assert "ipamc apply --check --repair" in child[".job"]["script"][-1]
    assert {entry["TARGETS"] for entry in child["repair"]["parallel"]["matrix"]} == {"blue", "red"}


# The steps of the workflow, by bash.


def test_the_workflow_of_a_pull_request(repository: Repository, tmp_path: Path) -> None:
    text = (repository.folder / FILES["github"]).read_text()
    repository.branch("feature", "red", "n2")
    repository.run("git", "checkout", "-q", "main")
    repository.run("git", "merge", "-q", "--no-ff", "--no-edit", "feature")  # what GitHub checks out
    output, summary = tmp_path / "output", tmp_path / "summary"
    shared: dict[str, Any] = {
        "BASE": "HEAD^1",
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(summary),
        "RUNNER_TEMP": str(tmp_path),
    }
    (find,) = steps(text, "changes")
    repository.run(*bash(find), STAGE="compile", **shared)
    lines = dict(line.split("=", 1) for line in output.read_text().splitlines())
    assert lines["compile"] == "success"
    (entry,) = json.loads(lines["matrix"])["include"]
    assert entry == {"name": "red", "targets": "red", "environment": "red"}
    (check,) = steps(text, "compile")
    repository.run(*bash(check), TARGETS=entry["targets"])
    _, plan, _, verify = steps(text, "plan")
    repository.run(*bash(plan), **shared)
    assert summary.read_text() == (tmp_path / "plan.md").read_text() != ""
    assert (tmp_path / "plan.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "plan.svg").read_text().startswith("<svg ")
    repository.run(*bash(verify), **shared, LABELS="")
    calls = repository.calls()
    assert f"verify --base HEAD^1 --fail-on {ASKED} --allow " in calls
    assert any(
        call.startswith("plan --clusters-from ")
        and "/names --base HEAD^1 --output markdown --write html=" in call
        and call.endswith(f"/plan.svg --fail-on {ASKED} --allow ")
        for call in calls
    )


@pytest.mark.parametrize("forge", FILES)
def test_what_a_compile_did_not_write_is_found(repository: Repository, tmp_path: Path, forge: str) -> None:
    """By the step that verifies, whatever the others say."""
    repository.branch("feature", "red", "n2")
    if forge == "github":
        *_, verify = steps((repository.folder / FILES[forge]).read_text(), "plan")
    else:
        base = ("--base", "origin/main", "--write", "child.yml")
        repository.run("ipamc", "ci", "matrix", "--output", "gitlab", *base)
        (verify,) = workflow((repository.folder / "child.yml").read_text())["verify"]["script"]
    shared: dict[str, Any] = {
        "BASE": "origin/main",
        "IPAMC_BASE": "origin/main",
        "LABELS": "",
        "CI_MERGE_REQUEST_LABELS": "",
        "RUNNER_TEMP": str(tmp_path),
    }
    assert "nothing found" in repository.run(*bash(f"({verify}) 2>&1"), **shared)
    rendered = next(repository.folder.glob("clusters/red/rendered/*nodes/*/*nodes.yaml"))
    rendered.write_text(re.sub(r"10[.]\S+/", "10.66.0.0/", rendered.read_text(), count=1))
    said = repository.run(*bash(f"({verify}) 2>&1"), **shared, code=1)
    assert "10.66.0.0" in said


ASKED = "renumber,rename,release,follow,delete-cluster,weaker,disputed"
"""The gates that ask for a label where nobody chose others."""
CHOSEN = {
    (): ASKED,
    ("--gate", "leave,renumber"): "renumber,leave",
    ("--gate", "leave", "--gate", "renumber"): "renumber,leave",
    ("--gate", "capacity"): "capacity",
    ("--gate", "none"): "",
}


def planned(repository: Repository, folder: Path, forge: str, labels: str, *options: str) -> bool:
    """Plan HEAD against `origin/main` in the pipeline of a forge that is written with these options, as a
    request with these labels; return whether it passes.
    """
    text = repository.run("ipamc", "ci", forge, *options, "--write", "-")
    shared: dict[str, Any] = {"BASE": "origin/main", "IPAMC_BASE": "origin/main", "RUNNER_TEMP": str(folder)}
    shared |= {"GITHUB_OUTPUT": str(folder / "o"), "GITHUB_STEP_SUMMARY": str(folder / "s")}
    shared |= {
        "LABELS": labels,
        "CI_MERGE_REQUEST_LABELS": labels,
        "CI_MERGE_REQUEST_EVENT_TYPE": "merge_train",
    }
    if forge == "github":
        _, script, _, _ = steps(text, "plan")
    else:
        (write,) = workflow(text)["ipamc-changes"]["script"]
        repository.run(*bash(write), **shared, IPAMC_STAGE="compile")
        (script,) = workflow((repository.folder / "ipamc-child.yml").read_text())["plan"]["script"]
    repository.calls()
    command = bash(f"({script}) > {folder}/said && echo passed || echo failed")
    return repository.run(*command, **shared).endswith("passed\n")


@pytest.mark.parametrize("forge", FILES)
@pytest.mark.parametrize("options", CHOSEN)
def test_a_pipeline_asks_for_the_labels_that_were_chosen(
    repository: Repository, tmp_path: Path, forge: str, options: tuple[str, ...]
) -> None:
    asked = CHOSEN[options]
    ipamc = repository.tools / "ipamc"  # for the plan, only the call counts
    ipamc.write_text(ipamc.read_text().replace("exec ", '[ "$1" = plan ] && exit 0\nexec ', 1))
    repository.write("clusters/red/more.yaml", inventory("n2"))
    repository.commit("n2")
    (repository.folder / "plan.md").symlink_to(tmp_path / "victim")
    assert planned(repository, tmp_path, forge, "a,ipamc/release", *options)
    (call,) = (call for call in repository.calls() if call.startswith("plan "))
    pictures = r"--write html=\S*plan.html --write svg=\S*plan.svg"
    gates = f" --fail-on {asked}" if asked else ""
    assert re.fullmatch(
        rf"plan --clusters-from \S+ --base origin/main --output markdown {pictures}{gates} --allow a,ipamc/release",
        call,
    )
    assert not (tmp_path / "victim").exists()


def test_every_gate_has_words_and_an_unknown_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert [*GATES] == [*Gate, "disputed", "capacity"]
    page = (ROOT / "docs/concepts/consent.md").read_text()
    assert re.findall(r"^\| `ipamc/(.*)` \| (.*) \|$", page, re.MULTILINE) == [*GATES.items()]
    for step in (["github"], ["gitlab"], ["matrix", "--output", "gitlab"]):
        assert main(["ci", *step, "--gate", "renumber,typo"]) == 64
        assert f"'typo' is not one of {', '.join(GATES)}, none\n" in capsys.readouterr().err


def test_the_labels_of_github_are_those_of_the_pull_request_or_of_the_merge_group() -> None:
    found = workflow(written())
    given = [step["env"] for step in found["jobs"]["plan"]["steps"] if "LABELS" in step.get("env", {})]
    group, request = "steps.consent.outputs.labels", "join(github.event.pull_request.labels.*.name)"
    assert given == [{"LABELS": f"${{{{ {group} || {request} }}}}"}] * 2
    assert {"labeled", "unlabeled"} <= set(found["on"]["pull_request"]["types"])


STRANGE = "$(touch ran),`touch ran`,\";touch ran;\",';touch ran;',--allow,-h,*,a b,ipamc/*,ipamc/released,x-ipamc/{0}"
"""Labels of somebody else: none agrees to anything, and none is a command or an option."""


@pytest.mark.parametrize("forge", FILES)
def test_a_plan_agrees_by_labels_alone(repository: Repository, tmp_path: Path, forge: str) -> None:
    repository.run("ipamc", "lock", "red", "--renumber", "n1")
    repository.commit("renumbered")
    for gate in ("renumber", "delete-cluster"):
        if gate == "delete-cluster":
            shutil.rmtree(repository.folder / "clusters/blue")
            repository.run("git", "checkout", "-q", "origin/main", "clusters/red")
            repository.commit("deleted")
        others = ",".join(f"ipamc/{each}" for each in GATES if each != gate)
        for labels in ("", f"{STRANGE.format(gate)},{others}"):
            assert not planned(repository, tmp_path, forge, labels)
        assert planned(repository, tmp_path, forge, f"a,ipamc/{gate},b")
        assert planned(repository, tmp_path, forge, "", "--gate", "none") == (gate == "renumber")
    assert not (repository.folder / "ran").exists()


def test_one_plan_has_all_clusters_however_long_their_names_are(
    repository: Repository, tmp_path: Path
) -> None:
    """The arguments of one process would not hold them: xargs started the plan twice, and one half was lost."""
    names = [f"{'c' * 245}-{number:04}" for number in range(600)]
    ipamc = repository.tools / "ipamc"
    listed = "".join(f"{name}\n" for name in names)
    (tmp_path / "listed").write_text(listed)
    fake = (
        f'[ "$2" = matrix ] && exec cat {tmp_path}/listed\n[ "$1" = plan ] && exec cp "$3" {tmp_path}/seen\n'
    )
    ipamc.write_text(ipamc.read_text().replace("exec ", f"{fake}exec ", 1))
    _, plan, _, _ = steps((repository.folder / FILES["github"]).read_text(), "plan")
    output: dict[str, Any] = {
        "GITHUB_OUTPUT": str(tmp_path / "o"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "s"),
    }
    repository.run(*bash(plan), RUNNER_TEMP=str(tmp_path), BASE="HEAD^1", **output)
    assert (tmp_path / "seen").read_text() == listed
    assert len([call for call in repository.calls() if call.startswith("plan ")]) == 1


@pytest.mark.parametrize("verb", ["plan", "compile"])
def test_clusters_come_from_a_file(repository: Repository, verb: str, tmp_path: Path) -> None:
    (tmp_path / "names").write_text("red\nclusters/blue\n")
    said = repository.run("ipamc", verb, "--clusters-from", str(tmp_path / "names"))
    assert "red" in said
    assert "blue" in said
    assert "blue" not in repository.run(*bash(f"echo red | ipamc {verb} --clusters-from -"))
    (tmp_path / "names").write_text("\n")
    said = repository.run("ipamc", verb, "--clusters-from", str(tmp_path / "names"), code=1)
    assert "names no cluster" in said
    repository.run("ipamc", verb, "--clusters-from", "-", "red", code=64)
    assert "there is no file" in repository.run("ipamc", verb, "--clusters-from", "none", code=1)


def test_where_the_clusters_cannot_be_listed_the_plan_fails(repository: Repository) -> None:
    """In a shell without `pipefail` too: no empty list of names is planned."""
    repository.branch("feature", "red", "n2")
    repository.run(
        "ipamc", "ci", "matrix", "--output", "gitlab", "--base", "origin/main", "--write", "child.yml"
    )
    (script,) = yaml.safe_load((repository.folder / "child.yml").read_text())["plan"]["script"]
    repository.run("sh", "-e", "-c", script, code=1, IPAMC_BASE="0" * 40)
    assert not [call for call in repository.calls() if call.startswith("plan ")]


def test_a_stale_commit_fails_the_pull_request(repository: Repository) -> None:
    repository.run("git", "checkout", "-q", "-b", "feature")
    repository.write("clusters/red/more.yaml", inventory("n2"))
    repository.commit("not compiled")
    (check,) = steps((repository.folder / FILES["github"]).read_text(), "compile")
    assert "n2" in repository.run(*bash(check), TARGETS="red", code=1)


# One comment.


class Forge(BaseHTTPRequestHandler):
    """An API that keeps comments and their authors, as GitHub and GitLab do; each request is remembered.

    The token is of GitHub's `github-actions[bot]`, and of GitLab's user 9.
    """

    comments: list[dict[str, Any]]
    requests: list[tuple[str, str, str]]
    refuses: int = 0

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its signature
        """Say nothing."""

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        self.requests.append(
            (
                self.command,
                self.path,
                self.headers.get("Authorization") or self.headers.get("Private-Token") or "",
            )
        )
        found: Any = {}
        if self.path == "/graphql":
            found = {"data": {"viewer": {"login": "github-actions[bot]"}}}
        elif self.path == "/user":
            found = {"id": 9, "username": "project_5_bot"}
        elif self.command == "GET":
            asked = parse_qs(urlsplit(self.path).query)
            size, page = int(asked["per_page"][0]), int(asked["page"][0])
            found = self.comments[(page - 1) * size : page * size]
        elif self.command == "POST":
            self.comments.append({"id": len(self.comments), **by("github-actions[bot]", 9), **body})
        else:
            self.comments[int(self.path.rpartition("/")[2])].update(body)
        data = json.dumps(found).encode()
        self.send_response(self.refuses or 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_PUT = answer  # noqa: N815 - its names


def by(login: str, number: int) -> dict[str, Any]:
    """Return the author of a comment, as GitHub and as GitLab tell it."""
    return {"user": {"login": login, "type": "Bot"}, "author": {"id": number, "username": login}}


@pytest.fixture
def forge() -> Iterator[tuple[type[Forge], str]]:
    handler = type("OneForge", (Forge,), {"comments": [], "requests": [], "refuses": 0})
    with serving(handler) as url:
        yield handler, url


@contextlib.contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve on loopback until the block ends; give the URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(
            target=server.serve_forever, args=(0.01,)
        )  # it looks so often whether to end
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def on_github(url: str) -> dict[str, Any]:
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": url,
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_REF": "refs/pull/7/merge",
        "GITHUB_TOKEN": "t0ken",
    }


def on_gitlab(url: str) -> dict[str, Any]:
    return {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": url,
        "CI_PROJECT_ID": "5",
        "CI_MERGE_REQUEST_IID": "7",
        "IPAMC_TOKEN": "t0ken",
    }


@pytest.mark.parametrize(
    ("where", "create", "update", "secret"),
    [
        (
            on_github,
            ("POST", "/repos/o/r/issues/7/comments"),
            ("PATCH", "/repos/o/r/issues/comments/150"),
            "Bearer t0ken",
        ),
        (
            on_gitlab,
            ("POST", "/projects/5/merge_requests/7/notes"),
            ("PUT", "/projects/5/merge_requests/7/notes/150"),
            "t0ken",
        ),
    ],
)
def test_one_comment_is_brought_up_to_date(
    repository: Repository, forge: tuple[type[Forge], str], where: Any, create: Any, update: Any, secret: str
) -> None:
    handler, url = forge
    handler.comments += [
        {"id": index, "body": f"a person says: {index} <!-- ipamc ci comment -->", **by("a", 1)}
        for index in range(150)
    ]
    repository.write("plan.md", "### one\n")
    assert "comment posted" in repository.run("ipamc", "ci", "comment", "plan.md", **where(url))
    repository.write("plan.md", "### two\n")
    said = repository.run("ipamc", "ci", "comment", "plan.md", **where(url))
    assert "comment updated" in said
    assert "t0ken" not in said
    assert len(handler.comments) == 151
    assert handler.comments[-1]["body"] == "<!-- ipamc ci comment -->\n### two\n"
    writes = [
        (method, path) for method, path, _ in handler.requests if method != "GET" and path != "/graphql"
    ]
    assert writes == [create, update]
    assert {given for _, _, given in handler.requests} == {secret}


def test_a_long_plan_is_cut_and_says_so(repository: Repository, forge: tuple[type[Forge], str]) -> None:
    handler, url = forge
    repository.write("plan.md", "x" * 70_000)
    repository.run("ipamc", "ci", "comment", "plan.md", **on_github(url))
    body = handler.comments[0]["body"]
    assert len(body) < 65_536
    assert body.endswith("… and 5,000 more characters: see the log of the job.\n")


def test_a_forge_that_refuses_fails_the_job(repository: Repository, forge: tuple[type[Forge], str]) -> None:
    handler, url = forge
    handler.refuses = 403
    repository.write("plan.md", "x")
    said = repository.run("ipamc", "ci", "comment", "plan.md", code=1, **on_github(url))
    assert "error: POST" in said
    assert "403" in said
    assert "t0ken" not in said


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "this is not a job of GitHub or GitLab"),
        ({**on_github("http://127.0.0.1:9"), "GITHUB_TOKEN": ""}, "there is no GITHUB_TOKEN"),
        (
            {**on_github("http://127.0.0.1:9"), "GITHUB_REF": "refs/heads/main"},
            "this is not a merge request or pull request",
        ),
        ({**on_gitlab("http://127.0.0.1:9"), "IPAMC_TOKEN": ""}, "there is no IPAMC_TOKEN"),
    ],
)
def test_nowhere_to_post_is_no_failure(
    repository: Repository, environment: dict[str, Any], said: str
) -> None:
    repository.write("plan.md", "x")
    assert f"no comment posted: {said}" in repository.run("ipamc", "ci", "comment", "plan.md", **environment)


# A merge queue: what is combined there is judged by the consent of its own request.


class Labels(Forge):
    """An API that has the labels of a pull request."""

    def answer(self) -> None:
        """Answer with `comments`, which are labels here, of #7 alone."""
        self.requests.append((self.command, self.path, self.headers.get("Authorization") or ""))
        data = json.dumps(self.comments if "/issues/7/labels?" in self.path else []).encode()
        self.send_response(self.refuses or 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = answer  # noqa: N815 - its name


QUEUE = f"refs/heads/gh-readonly-queue/main/pr-7-{'0' * 40}"


@pytest.fixture
def labels() -> Iterator[tuple[type[Labels], str]]:
    handler = type("TheseLabels", (Labels,), {"comments": [], "requests": [], "refuses": 0})
    with serving(handler) as url:
        yield handler, url


def queued(repository: Repository, base: str, url: str, folder: Path) -> str:
    """Run the steps that plan a merge group, as GitHub runs them; return the exit code of the plan."""
    text = (repository.folder / FILES["github"]).read_text()
    consent, plan, _, _ = steps(text, "plan")
    output = folder / "output"
    output.write_text("")
    shared = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(folder / "s"), "BASE": base}
    variables: dict[str, Any] = {**on_github(url), **shared, "GITHUB_REF": QUEUE, "RUNNER_TEMP": str(folder)}
    repository.run(*bash(consent), **variables)
    labels = dict(line.split("=", 1) for line in output.read_text().splitlines())["labels"]
    said = repository.run(*bash(f"({plan}) && echo 0 || echo $?"), **variables, LABELS=labels)
    return said.splitlines()[-1]


def test_a_merge_group_has_the_consent_of_its_own_pull_request(
    repository: Repository, labels: tuple[type[Labels], str], tmp_path: Path
) -> None:
    handler, url = labels
    shutil.rmtree(repository.folder / "clusters/red")
    repository.commit("gone")
    assert queued(repository, "HEAD^1", url, tmp_path) == "1"
    handler.comments.append({"name": "ipamc/delete-cluster"})
    assert queued(repository, "HEAD^1", url, tmp_path) == "0"
    assert {path for _, path, _ in handler.requests} == {"/repos/o/r/issues/7/labels?per_page=100&page=1"}


def test_a_merge_group_has_no_label_but_those_of_gates(
    repository: Repository, labels: tuple[type[Labels], str]
) -> None:
    """GitHub reads each line of a step's output as an output."""
    handler, url = labels
    names = ["ipamc/weaker", "x\nlabels=ipamc/release", "ipamc/x\nipamc/release", "release", "ipamc/renumber"]
    handler.comments += [{"name": name} for name in names]
    said = repository.run("ipamc", "ci", "consent", **{**on_github(url), "GITHUB_REF": QUEUE})
    assert said == "ipamc/renumber,ipamc/weaker\n"


def test_a_merge_group_that_renumbers_is_refused(
    repository: Repository, labels: tuple[type[Labels], str], tmp_path: Path
) -> None:
    """Two branches give one block to nodes of theirs; each is good, and their combination takes it from the first."""
    handler, url = labels
    handler.comments += [{"name": f"ipamc/{gate}"} for gate in GATES]
    repository.branch("one", "red", "n2", file="one")
    repository.branch("other", "red", "n3", file="other")
    repository.run("git", "checkout", "-q", "-b", "group", "one")
    repository.run("git", "merge", "-q", "--no-commit", "-X", "theirs", "other")
    repository.run("git", "checkout", "other", "--", "clusters/red/ipam.lock")
    repository.run("ipamc", "compile")
    repository.commit("the second of the queue, merged")
    assert queued(repository, "one", url, tmp_path) == "1"
    assert "changed hands without consent" in (tmp_path / "plan.md").read_text()


@pytest.mark.parametrize(
    "given",
    [{"GITHUB_REF": "refs/pull/7/merge"}, {"GITHUB_REF": "refs/heads/pr-7"}, {"GITHUB_TOKEN": ""}],
    ids=["a pull request", "a branch", "no token"],
)
def test_where_nobody_tells_the_labels_the_job_fails(repository: Repository, given: dict[str, Any]) -> None:
    variables = {**on_github("http://127.0.0.1:9"), "GITHUB_REF": QUEUE, **given}
    assert "error: " in repository.run("ipamc", "ci", "consent", code=1, **variables)


# The target branch, merged in.


def test_two_branches_that_take_one_block_merge_by_rule_and_are_pushed(repository: Repository) -> None:
    for driver in ("ipamc", "ipamc-rendered"):
        repository.run("git", "config", "--remove-section", f"merge.{driver}")  # a job's clone has none
    repository.branch("feature", "red", "n-feature", file="feature")
    repository.branch("other", "red", "n-other", file="other")
    repository.run("git", "push", "-q", "origin", "other:main", "feature")
    repository.run("git", "fetch", "-q", "origin")
    repository.run("git", "checkout", "-q", "feature")
    published = repository.run("git", "show", "origin/main:clusters/red/ipam.lock").splitlines()
    for script in steps((repository.folder / FILES["github"]).read_text(), "merge"):
        repository.run(*bash(script), TARGET="main", GITHUB_REF="refs/heads/feature")
    merged = (repository.folder / "clusters/red/ipam.lock").read_text().splitlines()
    assert set(published) <= set(merged)
    assert any('"node":"n-feature"' in line for line in merged)
    repository.run("ipamc", "compile", "--locked", "--check")
    assert repository.run("git", "status", "--porcelain") == ""
    assert repository.run("git", "rev-list", "--count", "--merges", "origin/main..HEAD").strip() == "1"
    assert (
        repository.run("git", "ls-remote", "origin", "refs/heads/feature").split()[0]
        == repository.run("git", "rev-parse", "HEAD").strip()
    )
    assert "merged already" in repository.run("ipamc", "ci", "merge", "origin/main")


@pytest.mark.parametrize("damage", ["conflict", "refused"])
def test_what_a_person_has_to_decide_leaves_everything_as_it_was(repository: Repository, damage: str) -> None:
    repository.branch("feature", "red", "n2")
    repository.run("git", "checkout", "-q", "main")
    repository.write(
        "clusters/red/more.yaml" if damage == "conflict" else "clusters/red/again.yaml",
        inventory("n3" if damage == "conflict" else "n2"),
    )
    repository.run("ipamc", "compile")
    repository.commit("main")
    repository.run("git", "checkout", "-q", "feature")
    before = repository.run("git", "rev-parse", "HEAD")
    said = repository.run("ipamc", "ci", "merge", "main", code=1)
    assert ("both sides changed clusters/red/more.yaml" if damage == "conflict" else "error[") in said
    assert repository.run("git", "rev-parse", "HEAD") == before
    assert repository.run("git", "status", "--porcelain") == ""


def test_changes_that_are_not_committed_are_left_alone(repository: Repository) -> None:
    repository.branch("feature", "red", "n2")
    repository.run("git", "checkout", "-q", "main")
    repository.write("clusters/red/more.yaml", "mine")
    assert "uncommitted" in repository.run("ipamc", "ci", "merge", "feature", code=1)
    assert (repository.folder / "clusters/red/more.yaml").read_text() == "mine"
    assert "git does not know revision 'nowhere'" in repository.run("ipamc", "ci", "merge", "nowhere", code=1)
