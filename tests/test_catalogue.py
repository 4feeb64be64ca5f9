"""The catalogue of rules: every code fires in a case, belongs to one function, and is explained; and what findings say reads well."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
from msgspec.structs import replace

from ipamc.catalogue import catalogue
from ipamc.check.admission import policy_too_large
from ipamc.check.capacity import config_map_too_large
from ipamc.cli import ipamc as main_command
from ipamc.model.acknowledge import MILD
from ipamc.model.admission import Admission
from ipamc.model.limits import LARGEST_CONFIG_MAP, LARGEST_OBJECT, LONGEST_EXPRESSION
from ipamc.workspace.disk import assets
from tests.support import builders, casefile

PACKAGE = Path(__file__).parent.parent / "compiler" / "ipamc"
SOURCES = sorted(PACKAGE.rglob("*.py"))
CODES = tuple(catalogue(assets("rules")))

ELSEWHERE = {
    "IPC0013": "ten thousand findings are no page to read: tests/read/test_limits.py",
    "IPC0441": "it takes a base: tests/law/test_change.py and tests/cli/test_plan.py",
    "IPC0443": "it takes a base: tests/cli/test_plan.py",
    "IPC0442": "it takes a base: tests/cli/test_plan.py",
    "IPC0108": "it is about what is no input: tests/cli/test_next_steps.py",
    "IPC0107": "links, pipes and folders need a real disk: tests/workspace/test_disk.py and tests/cli/test_cli.py",
    "IPC0701": "it takes two clusters: tests/test_address_space.py",
    "IPC0702": "it takes two clusters: tests/test_address_space.py",
    "IPC0703": "it takes two clusters and a base: tests/test_address_space.py",
    "IPC0705": "it takes an index of an address space: tests/test_spaces.py",
    "IPC0707": "it takes two clusters: tests/test_spaces.py",
    "IPC0710": "it takes a space and a cluster: tests/test_spaces.py",
    "IPC0312": "thousands of pools are no page to read: tests/place/test_choose.py",
    **{f"IPC080{number}": "a dump is no input: tests/read/test_dump.py" for number in range(1, 7)},
    **{
        f"IPC08{number}": "a dump is no input: tests/importing/test_what_is_said.py"
        for number in (*range(10, 26), 29, 30, 35)
    },
    "IPC0838": "a dump is no input: tests/importing/test_helm_values.py",
    "IPC0826": "a dump is no input: tests/importing/test_clustercidr.py",
    "IPC0827": "a dump is no input: tests/importing/test_clustercidr.py",
    "IPC0828": "a dump is no input: tests/cli/test_import.py",
    **{
        f"IPC08{number}": "a dump is no input: tests/importing/test_calico_says.py"
        for number in range(40, 70)
    },
    "IPC0837": "a dump is no input: tests/importing/test_without_cilium.py",
    **{f"IPC087{number}": "a table is no input: tests/cli/test_import_prefixes.py" for number in range(9)},
    **{
        f"IPC083{number}": "machines are no input: tests/cli/test_import_machines.py"
        for number in range(1, 5)
    },
    "IPC0591": "a dump is no input: tests/importing/test_bgp.py",
    "IPC0881": "a routing table is no input: tests/read/test_routes.py",
    "IPC0880": "a table is no input: tests/cli/test_import_prefixes.py",
    "IPC0879": "it takes two clusters: tests/cli/test_export.py",
    "IPC1008": "a thousand tests are no page to read: tests/assertions/test_limits.py",
    "IPC0617": "another run has to come between: tests/place/test_resize_laws.py",
    **{code: "a dump is no input: tests/review/audit/" for code in CODES if code.startswith("IPC09")},
    "IPC0529": "a ConfigMap of a megabyte is no page to read: below",
    "IPC0574": "a policy of a megabyte is no page to read: below",
}
"""Codes that no case file can show, and where they are shown."""

PROPER = re.compile(r"(Cilium|Calico|Cluster|IPv|Node|CIDR|Gt|Lt|In|[A-Z]+-?[A-Z0-9]*\b)")
"""Names that begin with a capital wherever they stand."""

FINDING = re.compile(r"^(?:error|warning|note)\[(IPC\d{4})\]: (.*)$", re.MULTILINE)
HELP = re.compile(r"^ +=? help: (.*)$", re.MULTILINE)


@cache
def cases() -> dict[str, casefile.Case]:
    """Read every case, by its name."""
    return {name: casefile.load(name) for name in casefile.names()}


def fired() -> dict[str, set[str]]:
    """Return the names of the cases by the code that they expect."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, case in cases().items():
        for finding in case.findings:
            found[finding[-8:-1]].add(path)
    return found


def fired_mildly() -> set[str]:
    """Return the codes of the notes and warnings that cases expect."""
    found = {finding for case in cases().values() for finding in case.findings}
    return {finding[-8:-1] for finding in found if "error[" not in finding}


def makers() -> Iterator[tuple[str, str]]:
    """Return (code, function) of every call that makes a finding, or chooses its severity and then makes it."""
    for path in SOURCES:
        text = path.read_text()
        for function in ast.walk(ast.parse(text)) if '"IPC' in text else ():
            if isinstance(function, ast.FunctionDef):
                for call in ast.walk(function):
                    if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant):
                        code = call.args[0].value
                        if isinstance(code, str) and re.fullmatch(r"IPC\d{4}", code):
                            yield code, f"{path.relative_to(PACKAGE)}:{function.name}"


def test_every_code_fires_in_a_case() -> None:
    assert sorted(set(CODES) - fired().keys() - ELSEWHERE.keys()) == []


def test_what_is_shown_elsewhere_is_not_shown_in_a_case() -> None:
    assert sorted(ELSEWHERE.keys() & fired().keys()) == []


def test_cases_expect_codes_of_the_catalogue() -> None:
    assert sorted(fired().keys() - set(CODES)) == []


def test_every_literal_is_a_code() -> None:
    literals = {code for path in SOURCES for code in re.findall(r"IPC\d{4}", path.read_text())}
    assert sorted(literals) == list(CODES)


def test_a_code_is_made_by_exactly_one_function() -> None:
    by_code: dict[str, set[str]] = defaultdict(set)
    for code, function in makers():
        by_code[code].add(function)
    assert {code: functions for code, functions in by_code.items() if len(functions) > 1} == {}
    assert sorted(by_code) == list(CODES)


def test_what_may_be_acknowledged_is_what_gives_a_note_or_a_warning() -> None:
    """The only other one is about acknowledging itself."""
    words = r"(?:warning|note|make|fails|illegal)\(\s*\"(IPC\d{4})\""
    mild = {code for path in SOURCES for code in re.findall(words, path.read_text())}
    assert mild - {"IPC0112"} == MILD
    assert not {code for code in fired_mildly() if code not in MILD | {"IPC0112"}}


def test_texts_are_well_formed() -> None:
    for entry in catalogue(assets("rules")).values():
        assert re.fullmatch(r".{10,140}\.", entry.title), entry.code
        assert entry.text.count("\n") <= 18, entry.code
        assert max(map(len, entry.text.split("\n"))) <= 120, entry.code


COMMAND = re.compile(r"`(ipamc [^`]+)`")


def test_every_code_says_why_and_what_to_run() -> None:
    for code, entry in catalogue(assets("rules")).items():
        words = f"{entry.body} {entry.why} {entry.run}".split()
        assert entry.why.endswith("."), code
        assert entry.run.endswith((".", "`")), code
        assert 25 <= len(words) <= 130, f"{code}: {len(words)} words"


def parameters(words: list[str]) -> list[click.Parameter]:
    """Return what a command takes, by the words that begin it, and drop them; raises AssertionError for no command."""
    command: click.Command = main_command
    context = click.Context(command)
    while isinstance(command, click.Group) and not words[0].startswith("-"):
        found = command.get_command(context, words.pop(0))
        assert found is not None
        command, context = found, click.Context(found, parent=context)
    return command.get_params(context)


def names(parameter: click.Parameter) -> set[str]:
    return {*parameter.opts, *parameter.secondary_opts}


def test_what_to_run_is_a_command() -> None:
    """The verbs and options of every command that a rule names are there, and none is missing that it needs."""
    for code, entry in catalogue(assets("rules")).items():
        for command in COMMAND.findall(" ".join(f"{entry.body} {entry.why} {entry.run}".split())):
            words = command.split()[1:]
            given = {word for word in words if word.startswith("-") and word != "-"}
            known = parameters(words)
            assert given <= {name for each in known for name in names(each)}, f"{code}: {command}"
            needed = [each for each in known if each.required and isinstance(each, click.Option)]
            assert all(names(each) & given for each in needed), f"{code}: {command}"


def says_what_it_shows(case: casefile.Case) -> bool:
    """Tell whether the header is a line or two that end as a sentence does."""
    header = [line for line in case.header.split("\n") if line and not line.startswith("#!")]
    return 1 <= len(header) <= 2 and header[-1].endswith(".")


def test_every_case_says_what_it_shows() -> None:
    mute = [path for path, case in cases().items() if not says_what_it_shows(case)]
    assert not mute, "\n".join(mute)


def messages(case: casefile.Case) -> list[str]:
    """Return the messages and the ways out of every report that a case expects."""
    report = "".join(text for name, text in case.files.items() if name.endswith("/report"))
    return [*(message for _, message in FINDING.findall(report)), *HELP.findall(report)]


def reads_well(text: str) -> bool:
    """Tell whether a message says something, in lower case, unless a name begins it, and without a full stop."""
    return text != "" and (text[0] == text[0].lower() or bool(PROPER.match(text))) and not text.endswith(".")


def test_messages_and_ways_out_read_alike() -> None:
    odd = [
        f"{path}: {text}" for path, case in cases().items() for text in messages(case) if not reads_well(text)
    ]
    assert not odd, "\n".join(odd)


def test_a_config_map_has_at_most_a_megabyte() -> None:
    cluster = builders.plan("multi-pool", [builders.pool("default", "10.0.0.0/8")], {}).cluster
    path = "cilium/configmap.yaml"
    assert not list(config_map_too_large(cluster, {path: "x" * LARGEST_CONFIG_MAP}))
    assert [each.code for each in config_map_too_large(cluster, {path: "x" * (LARGEST_CONFIG_MAP + 1)})] == [
        "IPC0529"
    ]


def test_an_admission_policy_has_at_most_so_many_bytes() -> None:
    cluster = builders.plan("cluster-pool", [builders.pool("default", "10.0.0.0/8")], {}).cluster
    cluster = replace(cluster, admission=Admission(assign=True))
    path, whole = "admission/assign-ciliumnodes.yaml", "x\n" * (LARGEST_OBJECT // 2)
    assert not list(policy_too_large(cluster, {path: f"{whole}\n---\n{whole}"}))
    assert [each.code for each in policy_too_large(cluster, {path: f"{whole}x"})] == ["IPC0574"]
    assert [each.code for each in policy_too_large(cluster, {path: "x" * LONGEST_EXPRESSION + "x"})] == [
        "IPC0574"
    ]
