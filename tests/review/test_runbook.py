"""Runbooks: who is in which wave, in which order things are done in each mode, and what reaches a shell."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError
from msgspec.structs import replace

from ipamc.model.admission import Admission
from ipamc.model.cidr import parse_block
from ipamc.model.cilium.support import READ_AT, UNFIT
from ipamc.model.diagnostics import Refused
from ipamc.model.lock import State
from ipamc.model.plan import Plan
from ipamc.pipeline import Inputs
from ipamc.report.runbook import groups, to_json, to_markdown, written
from ipamc.review.runbook.request import Request, Unclear, requested
from ipamc.review.runbook.site import Site
from ipamc.review.runbook.steps import Runbook, Split, Step, Where, waves
from ipamc.review.runbook.steps import runbook as of_template
from ipamc.workspace.disk import assets
from tests.support import depth
from tests.support.builders import node, plan, pool, read, rendered

ZONE = "topology.kubernetes.io/zone"
TEMPLATES = assets("templates/runbooks")
SCHEMA = json.loads(assets("schemas")["runbook.output.json"])
NAMES = tuple(f"n{number:02}" for number in range(1, 7))
HELD = {name: f"10.0.{number}.0/26" for number, name in enumerate(NAMES)}
MODES: dict[str, tuple[str, dict[str, Any]]] = {
    "kubernetes": ("kubernetes", {}),
    "admitted": ("kubernetes", {"admission": Admission(assign=True), "kubernetes": (1, 36)}),
    "annotations": ("kubernetes", {"patch_nodes": "annotations"}),
    "bystander": ("cluster-pool", {}),
    "patched": ("cluster-pool", {"patch_nodes": "podCIDRs"}),
    "adopt": ("cluster-pool", {"operator": "adopt"}),
    "crd": ("crd", {}),
    "pinned": ("multi-pool", {"pinning": "node"}),
    "shared": ("multi-pool", {"pinning": "pool"}),
    "none": ("multi-pool", {"pinning": "none"}),
}
ASKED: dict[str, dict[str, Any]] = {
    "renumber": {"nodes": NAMES[:4]},
    "mode": {"to": "multi-pool"},
    "dual-stack": {},
    "new-range": {"pools": ("default",), "to": "10.7.0.0/16"},
    "decommission": {"nodes": NAMES[3:]},
    "replace-node": {"nodes": NAMES[:1], "to": "n99"},
    "calico": {"to": "distinct"},
    "upgrade": {"to": "1.20"},
    "restore-git": {},
    "restore-etcd": {},
}
"""A request of each kind."""


def made(mode: str = "bystander", **more: Any) -> Plan:
    word, fields = MODES[mode]
    nodes = [node(name, {ZONE: f"z{number % 2}"}) for number, name in enumerate(NAMES)]
    pools = [pool("default", "10.0.0.0/16")]
    if mode == "adopt":  # it needs a pool for unlisted nodes
        pools += [pool("unlisted", "10.8.0.0/24", unlisted=True)]
    return plan(word, pools, HELD, nodes=nodes, **{**fields, **more})


def ask(
    change: str,
    plan: Plan,
    folder: str = "",
    split: Split = Split(size=2),  # noqa: B008 - frozen
    *,
    loops: bool = False,
    **asked: Any,
) -> Runbook:
    inputs = Inputs(
        name="lab", folder="lab", sources={}, lock_path="lab/ipam.lock", lock=None, today="2026-11-22"
    )
    request = Request(change=change, split=split, inputs=inputs, **(asked or ASKED[change]))
    return requested(request, plan, Site(plan, TEMPLATES, folder, loops=loops))


def steps(runbook: Runbook) -> Iterator[Step]:
    return (step for phase in runbook.phases for wave in phase.waves for step in wave.steps)


def keys(runbook: Runbook, phase: int = -1, wave: int = 0) -> list[str]:
    return [step.key for step in runbook.phases[phase].waves[wave].steps]


# Waves.


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        (Split(), [("", (name,)) for name in NAMES]),  # a tenth of six nodes is one
        (Split(size=4), [("", NAMES[:4]), ("", NAMES[4:])]),
        (Split(by="zone"), [("z0", NAMES[::2]), ("z1", NAMES[1::2])]),
        (
            Split(by=ZONE, size=2),
            [("z0", ("n01", "n03")), ("z0", ("n05",)), ("z1", ("n02", "n04")), ("z1", ("n06",))],
        ),
        (Split(by="rack"), [("without rack", NAMES)]),
    ],
)
def test_waves(split: Split, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert list(waves(made().cluster, set(NAMES), split)) == expected


# A renumber.


def test_nodes_of_the_control_plane_move_last_and_one_by_one() -> None:
    role = {"node-role.kubernetes.io/control-plane": ""}
    nodes = [node(name, role if name in NAMES[:2] else {}) for name in NAMES]
    cluster = plan("cluster-pool", [pool("default", "10.0.0.0/16")], HELD, nodes=nodes).cluster
    found = [names for _, names in waves(cluster, set(NAMES), Split(size=3))]
    assert found == [NAMES[2:5], NAMES[5:], NAMES[:1], NAMES[1:2]]


def test_all_targets_are_reserved_before_the_first_node_moves() -> None:
    first, moves, last = ask("renumber", made()).phases
    (reserve,) = (
        command
        for wave in first.waves
        for step in wave.steps
        for command in step.commands
        if "--renumber" in command
    )
    assert shlex.split(reserve) == [
        "ipamc",
        "lock",
        "built",
        *(word for name in NAMES[:4] for word in ("--renumber", name)),
    ]
    assert [wave.nodes for wave in moves.waves] == [("n01", "n02"), ("n03", "n04")]
    assert [step.key for step in last.waves[0].steps] == [*BRANCH, "audit"]
    assert "import built --refresh" in str(last)


BRANCH = ["branch", "propose", "merge"]
JOINS = ["save-node", "delete-node", "restart-kubelet", "label-node", "cordon", *BRANCH]
AGENTS = ["restart-agent", "agent-ready", "restart-pods"]


@pytest.mark.parametrize(
    ("mode", "between"),
    [
        ("kubernetes", [*JOINS, "apply", *AGENTS]),
        ("admitted", ["apply", *JOINS, "apply", *AGENTS]),
        ("annotations", ["apply", *AGENTS]),
        ("bystander", ["apply", "delete-ciliumnode", *AGENTS]),
        ("patched", [*JOINS, "apply", "delete-ciliumnode", *AGENTS]),
        ("adopt", ["apply", "roll-out", "delete-ciliumnode", *AGENTS]),
        ("crd", ["apply", "delete-ciliumnode", *AGENTS]),
        ("pinned", ["apply", "delete-ciliumnode", *AGENTS]),
        ("shared", ["apply", "seed", *AGENTS]),
    ],
)
def test_the_order_of_a_wave(mode: str, between: list[str]) -> None:
    """Settled before a Node is deleted: one that joins again gets for good what is rendered then, or applied as a policy."""
    end = ["shown", "audit", "uncordon"]
    assert keys(ask("renumber", made(mode)), phase=1) == ["cordon", "drain", *BRANCH, *between, *end]


def test_the_blocks_of_a_check_are_those_that_the_lock_gives() -> None:
    (shown,) = (
        step.check for step in ask("renumber", made()).phases[1].waves[0].steps if step.key == "shown"
    )
    assert shown
    assert shown.expect == "n01 10.0.0.64/26\nn02 10.0.0.128/26"


@pytest.mark.parametrize("mode", ["pinned", "shared"])
def test_a_seed_is_the_one_that_is_rendered(mode: str) -> None:
    pools = [pool("default", "10.0.0.0/16", allow_first=True)]
    word, fields = MODES[mode]
    seeded = plan(word, pools, HELD, version="1.20", **fields)
    site = Site(seeded)
    wanted = {each["metadata"]["name"]: each for each in read(rendered(seeded)["seeds/000.yaml"])}
    assert {name: json.loads(site.seed(name, lines)) for name, lines in seeded.held.items()} == wanted
    assert "allowFirstIP" in str(wanted)


def test_without_room_the_findings_say_so() -> None:
    full = plan("cluster-pool", [pool("default", "10.0.0.0/26")], {"n1": "10.0.0.0/26"})
    with pytest.raises(Refused) as refused:
        ask("renumber", full, nodes=("n1",))
    assert refused.value.diagnostics


# What holds for all.


@pytest.mark.deep
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", ASKED)
def test_every_runbook_can_be_done(change: str, mode: str) -> None:
    """Each command is a line of a shell, each node is in one wave of a phase, and every step says something."""
    try:
        runbook = ask(change, made(mode))
    except Unclear:
        return  # not in this mode, as the tests below say
    lines = [line for step in steps(runbook) for line in step.commands]
    lines += [step.check.command for step in steps(runbook) if step.check]
    done = subprocess.run(["bash", "-n"], input="\n".join(lines), text=True, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert all("\n" not in line for line in lines)
    for phase in runbook.phases:
        counted = Counter(name for wave in phase.waves for name in wave.nodes)
        assert set(counted.values()) <= {1}
        for wave in phase.waves:
            assert {name for step in wave.steps for name in step.nodes} <= {*wave.nodes, *NAMES, "n99"}
    for step in steps(runbook):
        assert (
            step.commands
            or step.edit
            or step.check
            or step.why
            or step.key in {"note", "control-plane", "join", "roll-out", "ghosts"}
        ), step
    jsonschema.validate(json.loads(to_json("built", [runbook])), SCHEMA)
    shown = to_markdown([runbook])
    assert all(line in shown for line in lines)


def test_of_many_nodes_the_audit_is_the_check() -> None:
    names = [f"m{number:03}" for number in range(60)]
    held = {name: f"10.{number}.0.0/26" for number, name in enumerate(names)}
    large = plan("cluster-pool", [pool("default", "10.0.0.0/8")], held)
    runbook = ask("renumber", large, nodes=tuple(names), split=Split(size=60))
    assert "shown" not in keys(runbook, phase=1)
    assert "audit" in keys(runbook, phase=1)
    assert max(map(len, (step.why for step in steps(runbook)))) < 1000


CALLS = r"""
say() { printf '<%s>' "$@"; echo; }
for each in git kubectl ipamc helm sudo grep xargs; do eval "$each() { say $each \"\$@\"; }"; done
set -e
"""
"""Programs that print how they were called, in place of those that runbooks call."""


def calls(lines: Iterable[str], cwd: Path) -> str:
    script = "\n".join((CALLS, *lines))
    done = subprocess.run(["bash", "-c", script], cwd=cwd, text=True, check=True, capture_output=True)
    return done.stdout


@pytest.mark.deep
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", ASKED)
def test_the_loops_of_many_nodes_call_what_the_steps_of_each_wave_call(
    change: str, mode: str, tmp_path: Path
) -> None:
    """Wave by wave, with the files written: the same programs with the same words, and checks that expect the same."""
    names = [f"m{number}" for number in range(31)]  # m1 begins m10
    held = {name: f"10.0.{number}.0/26" for number, name in enumerate(names)}
    word, fields = MODES[mode]
    some = {"nodes": names} if change in {"renumber", "decommission"} else {}
    large = plan(word, [pool("default", "10.0.0.0/16")], held, **fields)
    asked = {**ASKED[change], **some}
    try:
        runbook, looped = (
            ask(change, large, split=Split(size=10), loops=loops, **asked) for loops in (False, True)
        )
    except Unclear:
        return
    for phase, short in zip(runbook.phases, looped.phases, strict=True):
        assert bool(short.file) is (len(phase.waves) > 1)
        if not short.file:
            assert short == phase
            continue
        found = list(groups(short))
        assert [number for first, last, _ in found for number in range(first, last + 1)] == [1, 2, 3, 4]
        calls(written(short), tmp_path)
        for number, (wave, other) in enumerate(zip(phase.waves, short.waves, strict=True), 1):
            assert (other.name, other.nodes) == (wave.name, wave.nodes)
            for step, once in zip(wave.steps, other.steps, strict=True):
                assert calls([f"wave={number}", *lines(once)], tmp_path) == calls(lines(step), tmp_path)
                assert once.title.replace("$wave", str(number)) == step.title
                if step.check and once.check:
                    turns = wave.nodes if once.check.each else ("",)
                    expected = [once.check.expect.replace("$node", node) for node in turns]
                    assert "\n".join(expected) == step.check.expect


def lines(step: Step) -> list[str]:
    return [*step.commands, *([step.check.command] if step.check else [])]


def test_waves_of_many_nodes_are_one_page() -> None:
    """The last wave is smaller and does the same, so that all steps are told once."""
    names = [f"m{number:03}" for number in range(299)]
    held = {name: f"10.{number}.0.0/26" for number, name in enumerate(names[:200])}
    held |= {name: f"11.{number}.0.0/26" for number, name in enumerate(names[200:])}
    large = plan("cluster-pool", [pool("default", "10.0.0.0/8", "11.0.0.0/8")], held)
    text = to_markdown([ask("renumber", large, nodes=tuple(names), split=Split(), loops=True)])
    assert "### Waves 1 to 11 of 11" in text
    assert len(text.splitlines()) < 350


# What is hostile reaches a shell as one word.


HOSTILE = st.text(st.sampled_from("a'\"`$();|&<> \\\t\n\0*~#!{}[]%é-:"), min_size=1, max_size=12)
SHELL = HOSTILE.filter(lambda text: not {"\n", "\0"} & set(text))
"""A line of a shell has neither."""


@settings(deadline=None, max_examples=depth.examples(60))
@given(value=SHELL, folder=SHELL, name=SHELL)
def test_nothing_of_a_user_is_obeyed_by_a_shell(value: str, folder: str, name: str) -> None:
    """Names and labels like these are refused on reading; the commands do not rely on it."""
    made = plan(
        "kubernetes",
        [pool("default", "10.0.0.0/16")],
        {name: ["10.0.0.0/26", "pending 10.0.1.0/26"]},
        nodes=[node(name, {"rack": value})],
    )
    found = {step.key: step for step in steps(ask("renumber", made, folder, nodes=(name,)))}
    (label,) = found["label-node"].commands
    assert shlex.split(label) == [
        "kubectl",
        "--context=built",
        "label",
        "node",
        name,
        "--overwrite",
        f"rack={value}",
    ]
    (drain,) = found["drain"].commands
    assert shlex.split(drain)[3] == name
    assert ["git", "add", folder] in [shlex.split(line) for line in found["propose"].commands]
    shared = plan("multi-pool", [pool("default", "10.0.0.0/16")], {name: "10.0.0.0/26"})
    found = {step.key: step for step in steps(ask("renumber", shared, folder, nodes=(name,)))}
    (restart,) = found["restart-agent"].commands
    assert shlex.split(restart)[-1] == f"--field-selector=spec.nodeName={name}"
    assert shlex.split(found["audit"].commands[0])[-1] == "built.live.json"
    (seed,) = found["seed"].commands
    words = shlex.split(seed)
    assert json.loads(words[words.index("printf") + 2])["metadata"]["name"] == name


@pytest.mark.deep
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", sorted(set(ASKED) - {"replace-node"}))  # which refuses such a name
def test_no_name_and_no_folder_runs_anything(change: str, mode: str, tmp_path: Path) -> None:
    """Every command of a runbook is run, with other programs in its place; the steps are those of any names."""

    def asked(name: str, rack: str, folder: str) -> Runbook:
        word, fields = MODES[mode]
        held = {name: "10.0.0.0/26", "n2": "10.0.1.0/26"}
        labelled = [node(name, {"rack": rack}), node("n2", {"rack": "zz"})]
        made = plan(word, [pool("default", "10.0.0.0/16")], held, nodes=labelled, **fields)
        some = {"nodes": [name, "n2"]} if change in {"renumber", "decommission"} else {}
        return ask(change, made, folder, Split(by="rack"), **{**ASKED[change], **some})

    name, rack = (
        "n'`touch pwned`$(touch pwned);\"&|\n# x",
        "$(touch pwned)`touch pwned`';touch pwned\n### x: y",
    )
    try:
        hostile = asked(name, rack, "x '$(touch pwned)`touch pwned`\n```")
    except Unclear:
        return
    lines = [line for step in steps(hostile) for line in step.commands]
    lines += [step.check.command for step in steps(hostile) if step.check]
    every = 'set +e; for line in "$@"; do (eval "$line"); done'
    script = ["bash", "-c", f"{CALLS}\n{every}", "bash", *lines]
    done = subprocess.run(script, cwd=tmp_path, text=True, check=False, capture_output=True)
    assert "<--context=built>" in done.stdout
    assert not list(tmp_path.rglob("pwned"))
    assert [step.key for step in steps(hostile)] == [step.key for step in steps(asked("n1", "r", ""))]


EVERY_FIELD = """
{{ title(x) }} {{ about(x) }} {{ way_back(x) }}
{% call(nodes) phase(x, ((x, (x,)),)) %}
{% call(node) step("key", x, x, nodes=nodes, check=x, prints_each="$node", if_not=x) %}
echo {{ node }} {{ nodes }} {{ x }}
{% endcall %}
{% call edit("other", x, x) %}
{{ x }}
{% endcall %}
{% endcall %}
"""


@settings(deadline=None, max_examples=200)
@given(text=st.one_of(HOSTILE, st.sampled_from(["{{ 7 * 7 }}", "{% if %}", "$node", "$wave"])))
def test_a_value_is_where_the_template_has_it(text: str) -> None:
    """It is as it is in prose, and one word of a shell in commands."""
    runbook = of_template({"t.j2": EVERY_FIELD}, "t", "built", "mode", {"x": text}, loops=True)
    (phase,) = runbook.phases
    (wave,) = phase.waves
    step, edit = wave.steps
    assert (runbook.title, runbook.about, runbook.way_back) == (text, (text,), text)
    assert (phase.title, wave.name, wave.nodes) == (text, text, (text,))
    assert (step.title, step.why, step.nodes, step.if_not) == (text, text, (text,), text)
    assert step.commands == (f"echo {' '.join([shlex.quote(text)] * 3)}",)
    assert step.check
    assert step.check.expect == text
    assert (edit.where, edit.edit) == (Where.EDITOR, text)


def test_a_constant_of_a_template_is_a_value() -> None:
    template = (
        "{% macro m(x) %}<{{ x }}>{% endmacro %}{{ phase('x') }}"
        "{% call step('k', 'y') %}{{ '<a & b>' }} {{ m('<&>') }}{% endcall %}"
    )
    (step,) = steps(of_template({"t.j2": template}, "t", "built", "mode", {}))
    assert step.commands == ("'<a & b>' <'<&>'>",)


@pytest.mark.parametrize(
    "wrong",
    [
        "{{ step('k') }}",
        "{{ step('k', 't', wher='here') }}",
        "{{ step('k', 't', where='there') }}",
        "{{ x }}",
    ],
)
def test_a_template_that_is_no_runbook_is_a_bug(wrong: str) -> None:
    with pytest.raises((TypeError, ValueError, UndefinedError)):
        of_template({"t.j2": "{{ phase('x') }}" + wrong}, "t", "built", "mode", {})


def test_a_planned_node_is_cut_out_of_its_pattern() -> None:
    nodes = [replace(node(f"w-{number}", {}), planned=True, pattern="w-{1..9}") for number in range(1, 10)]
    made = plan("cluster-pool", [pool("default", "10.0.0.0/16")], {"w-3": "10.0.0.0/26"}, nodes=nodes)
    shown = to_markdown([ask("decommission", made, split=Split(by="rack"), nodes=("w-3",))])
    assert "write w-{1..2}, w-{4..9} instead of w-{1..9}" in shown
    assert "remove: w-3" in shown


def test_blocks_that_a_leaver_moved_away_from_are_among_its_lines_in_quarantine() -> None:
    here = made()
    first = next(line for line in here.lock.lines if line.node == NAMES[3])
    moved = replace(first, block=parse_block("10.0.9.0/26"), state=State.QUARANTINED, moved=True)
    here = replace(here, lock=replace(here.lock, lines=(*here.lock.lines, moved)))
    (checked,) = [step.check for step in steps(ask("decommission", here)) if step.key == "quarantined"]
    assert checked
    assert checked.expect == str(len(NAMES[3:]) + 1)


def test_markdown_shows_text_as_it_is() -> None:
    made = plan(
        "cluster-pool",
        [pool("default", "10.0.0.0/16")],
        {"n1": "10.0.0.0/26"},
        nodes=[node("n1", {"rack": "<b>*x* `a_b`"})],
    )
    shown = to_markdown([ask("decommission", made, split=Split(by="rack"), nodes=("n1",))])
    assert r"\<b\>\*x\* `a_b`" in shown


@pytest.mark.parametrize(
    ("change", "shown", "never"),
    [
        ("replace-node", "If not: stop, and solve each problem", "wave"),
        ("renumber", "If this fails: a PodDisruptionBudget", "If not: a PodDisruptionBudget"),
        ("restore-etcd", "kubectl --context=there delete node NODE", "If not: kubectl"),
        (
            "upgrade",
            "helm --kube-context=there --namespace=kube-system rollback cilium",
            "kube-context=built",
        ),
    ],
)
def test_a_remedy_fits_its_step(change: str, shown: str, never: str) -> None:
    text = to_markdown([ask(change, made(context="there", managed_by="helm"))])
    assert shown in text
    assert never not in text


def test_a_name_at_the_begin_of_a_sentence_keeps_its_case() -> None:
    text = to_markdown([ask("renumber", made("kubernetes"))])
    assert "podCIDRs of a Node are immutable." in text
    assert "Pods get addresses" in text


# Another mode.


def test_pools_for_nodes_that_nobody_listed_are_of_cluster_pool_mode_alone() -> None:
    """They serve listed nodes from then on: each has a block of each pool."""
    pools = [pool("default", "10.0.0.0/16", unlisted=True), pool("served", "10.1.0.0/16")]
    adopts = plan("cluster-pool", pools, HELD, nodes=list(map(node, NAMES)), operator="adopt")
    found = {step.key: step for step in steps(ask("mode", adopts, to="multi-pool"))}
    assert "remove operator: adopt, and unlisted: true from default" in found["edit-mode"].edit
    assert "n01 10.0.0.0/26 10.0.0.0/26,10.1.0.0/26" in str(found["shown"].check)


# A second family.


def test_an_operator_that_adopts_is_off_from_before_the_merge_until_it_knows_the_family() -> None:
    runbook = ask("dual-stack", made("adopt"))
    assert keys(runbook, 0) == ["branch", "edit-families", "propose", "operator-off", "merge", "print-again"]
    assert keys(runbook, 1) == [
        "operator-off",
        "apply",
        "flags",
        "operator-on",
        "agents",
        "agent-ready",
        "audit",
    ]
    assert "operator-off" not in {step.key for step in steps(ask("dual-stack", made()))}


@pytest.mark.parametrize(("mode", "follows"), [("pinned", False), ("shared", True), ("none", True)])
def test_git_follows_an_operator_that_gives_the_second_family(mode: str, *, follows: bool) -> None:
    titles = [phase.title for phase in ask("dual-stack", made(mode)).phases]
    assert ("Bring the inventory up to date" in titles) is follows


def test_a_pool_that_changes_leaves_autocreate_before() -> None:
    for change in ("new-range", "dual-stack"):
        runbook = ask(change, made("none", auto_create=("default",)))
        assert any("remove pool default from autoCreate" in note for note in runbook.about)


# Requests.


@pytest.mark.parametrize(
    ("change", "mode", "asked", "said"),
    [
        ("renumber", "bystander", {"nodes": ("gone",)}, "does not contain gone"),
        ("renumber", "bystander", {}, "no node is selected"),
        ("renumber", "bystander", {"selector": "zone =="}, "--selector"),
        ("renumber", "bystander", {"pools": ("gone",)}, "built has no pool gone, only default"),
        ("mode", "bystander", {"to": "bridge"}, "name the new mode"),
        ("mode", "bystander", {"to": "cluster-pool"}, "is already in cluster-pool mode"),
        ("mode", "bystander", {"to": "crd"}, "IPC0543"),
        ("dual-stack", "kubernetes", {"to": ""}, "first change to cluster-pool mode"),
        ("new-range", "bystander", {"pools": ("default",), "to": "10.7.0.1/24"}, "host bits"),
        ("new-range", "bystander", {"pools": ("default",), "to": "fd00::/64"}, "has no IPv6"),
        ("new-range", "bystander", {"pools": ("default",), "to": "10.7.0.0/27"}, "no room for a /26"),
        ("new-range", "bystander", {"to": "10.7.0.0/24"}, "name one pool"),
        ("replace-node", "bystander", {"nodes": ("n01", "n02"), "to": "n99"}, "name one node"),
        ("replace-node", "bystander", {"nodes": ("n01",), "to": "n02"}, "is already in the inventory"),
        ("replace-node", "bystander", {"nodes": ("n01",), "to": "$(x)"}, "is not a valid node name"),
        ("calico", "bystander", {"to": ""}, "multi-pool mode with pinning: node"),
        ("calico", "pinned", {"to": "10.0.0.0/8"}, "--to distinct"),
        ("upgrade", "bystander", {"to": "1.17"}, "built has 1.18"),
        ("upgrade", "bystander", {"to": "1.21"}, "minors up to 1.20"),
        ("upgrade", "bystander", {"to": "latest"}, "name a minor"),
    ],
)
def test_a_request_that_cannot_be_meant(change: str, mode: str, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(Unclear, match=re.escape(said)):
        ask(change, made(mode), **(asked or {"to": ""}))


def test_nodes_leave_the_ranges_in_which_they_have_blocks() -> None:
    pools = [pool("default", "10.0.0.0/16", "10.1.0.0/16"), pool("spare", "10.2.0.0/16", nodes="has(none)")]
    of_two = plan("cluster-pool", pools, HELD, nodes=list(map(node, NAMES)))
    (propose,) = (
        step for step in steps(ask("new-range", of_two)) if step.key == "propose" and "moves to" in str(step)
    )
    assert propose.commands[0] == "ipamc lock built --renumber 10.0.0.0/16"
    with pytest.raises(Unclear, match="no node would move"):
        ask("new-range", of_two, pools=("spare",), to="10.7.0.0/16")


def test_nodes_pools_and_selectors_add_up() -> None:
    runbook = ask("decommission", made(), split=Split(size=9), nodes=("n02",), selector=f'{ZONE} == "z0"')
    assert runbook.phases[0].waves[0].nodes == ("n01", "n02", "n03", "n05")


# Upgrades.


def test_what_a_minor_no_longer_has_is_replaced_before_it_runs() -> None:
    old = made(version="1.15", bgp="metallb")
    phases = ask("upgrade", old, to="1.18").phases
    assert [phase.title for phase in phases] == ["1.15 to 1.16", "1.16 to 1.17", "1.17 to 1.18"]
    order = [[step.key for step in phase.waves[0].steps] for phase in phases]
    assert order[1].index("before") < order[1].index("upgrade") < order[1].index("edit-version")
    assert "before" not in order[0] + order[2]


def test_what_1_15_stored_is_stored_anew_before_1_20() -> None:
    """1.20.0 and 1.20.1 do not start otherwise; the release that a runbook names does."""
    old, last = (ask("upgrade", made(version="1.18"), to="1.20").phases[number].waves[0] for number in (0, 1))
    keys = [step.key for step in last.steps]
    assert keys.index("stored-anew") < keys.index("stored-versions") < keys.index("upgrade")
    assert "stored-versions" not in [step.key for step in old.steps]
    assert not any(READ_AT[minor] in releases for minor, releases in UNFIT.items())


def test_agents_that_count_flags_have_to_count_none() -> None:
    phases = ask("upgrade", made(version="1.18"), to="1.20").phases
    before, after = ([step for step in phase.waves[0].steps if step.key == "no-drift"] for phase in phases)
    assert not before
    assert [(step.check.expect, step.nodes) for step in after if step.check] == [("0.000000", ())]

    old, new = (
        [
            step.check
            for step in ask("renumber", made(version=version)).phases[1].waves[0].steps
            if step.key == "no-drift"
        ]
        for version in ("1.19", "1.20")
    )
    assert not old
    (check,) = filter(None, new)
    assert check.expect == "0.000000\n0.000000"
    assert check.command.startswith("for node in n01 n02; do for pod in $(kubectl ")
    assert check.command.endswith("; done; done")


def test_a_minor_says_what_it_changes_for_the_mode() -> None:
    (first,) = ask("upgrade", made("pinned", version="1.15"), to="1.16").phases
    (note,) = (step.why for step in first.waves[0].steps if step.key == "note")
    assert "CiliumNodeConfig is stored as `cilium.io/v2`" in note
    (first,) = ask("upgrade", made("bystander", version="1.18"), to="1.19").phases
    (note,) = (step.why for step in first.waves[0].steps if step.key == "note")
    assert "undoes a change" in note
