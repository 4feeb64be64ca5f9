"""Inputs that would cost more than they weigh: what ends the reading of them, and what is said."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ipamc.lock.file import first_shards, load, parse
from ipamc.model.diagnostics import Diagnostic, Findings, Place, Refused, Severity, note
from ipamc.model.limits import DEEPEST_DOCUMENT, MOST_FINDINGS, MOST_NODES, MOST_SHARDS
from ipamc.model.lock import Consent
from ipamc.read.locate import locate
from ipamc.read.read import read
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.json_stream import json_documents
from ipamc.read.syntax.text import Lines
from ipamc.read.syntax.yaml import parser, yaml_documents
from ipamc.report.findings import NAMES, report
from ipamc.workspace.disk import assets
from tests.support import builders
from tests.support.calls import counted

SCHEMAS = assets("schemas")
NODES = "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n"
CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: case}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
"""


def findings(**files: str) -> list[Diagnostic]:
    """Read a cluster of these files, NAME_SUFFIX for NAME.SUFFIX; return what was found."""
    sources = {name.replace("_", "."): text.encode() for name, text in files.items()}
    try:
        return read("case", ".", sources, SCHEMAS)[1]
    except Refused as refused:
        return list(refused.diagnostics)


def refusal(path: str, text: str) -> tuple[str, int, int, str]:
    """Return the one finding of a file that cannot be read: code, column, end, message."""
    with pytest.raises(Unreadable) as broken:
        list(json_documents(path, text.encode()) if path.endswith(".json") else yaml_documents(path, text))
    (found,) = locate(broken.value.diagnostics, {path: text.encode()})
    return found.code, found.at.column, found.at.end_column, found.message


MANY = MOST_FINDINGS + 500


@pytest.mark.deep
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (NODES + "- {nome: a}\n" * MANY, "IPC0006"),
        (NODES + "- 1\n" * MANY, "IPC0007"),
        (NODES + "- name: a\n  podCIDRs: [" + "a, " * MANY + "]\n", "IPC0206"),
        (NODES + "- name: a\n  labels: {" + ", ".join(f"a{n}: '?'" for n in range(MANY)) + "}\n", "IPC0102"),
        (NODES + "- name: a\n" + "".join(f"  a{n}: 1\n" for n in range(MANY)), "IPC0006"),
        (NODES + "- name: a\n" + "x: 1\n" * MANY, "IPC0003"),
        ("--- a\n" * MANY, "IPC0007"),
        ("apiVersion: v1\nkind: List\nitems:\n" + "- {apiVersion: v1, kind: Pod}\n" * MANY, "IPC0009"),
        ("apiVersion: v1\nkind: NodeList\nitems:\n" + "- {metadata: 1}\n" * MANY, "IPC0007"),
        (NODES + "- name: a\n  labels: &a {" + ", ".join(f"a{n}: 1" for n in range(50)) + "}\n"
         + "".join(f"- {{name: b{n}, labels: *a}}\n" for n in range(MANY // 50)), "IPC0007"),
    ],
)  # fmt: skip
def test_the_reader_stops_at_ten_thousand_errors(text: str, code: str) -> None:
    found = findings(cluster_yaml=CLUSTER, nodes_yaml=text)
    errors = Counter(finding.code for finding in found)
    assert sum(errors.values()) == MOST_FINDINGS + 1
    assert errors[code] >= MOST_FINDINGS // 2
    assert [finding.message for finding in found if finding.code == "IPC0013"] == [
        "stopped at error 10,000: the rest was not checked"
    ]


def test_json_stops_there_too() -> None:
    twice = '{"a":[' + ",".join(['{"x":1,"x":1}'] * MANY) + "]}"
    items = '{"apiVersion":"v1","kind":"List","items":[' + ",".join(["1"] * MANY) + "]}"
    for text, code in ((twice, "IPC0003"), (items, "IPC0007")):
        found = Counter(finding.code for finding in findings(cluster_yaml=CLUSTER, nodes_json=text))
        assert found == {code: MOST_FINDINGS, "IPC0013": 1}


def test_of_more_warnings_the_number_is_shown_and_the_nodes_are_read() -> None:
    text = NODES + "".join(f"- name: n{number}\n  labels: {{a: on}}\n" for number in range(MANY))
    sources = {"cluster.yaml": CLUSTER.encode(), "nodes.yaml": text.encode()}
    cluster, found = read("case", ".", sources, SCHEMAS)
    assert len(cluster.nodes) == MANY
    assert [finding.severity for finding in found] == [Severity.WARNING] * MOST_FINDINGS + [Severity.NOTE]
    assert found[-1].message == "500 more findings of IPC0008 not listed"
    assert found[-1].at == Place("nodes.yaml", 0, ("nodes", MOST_FINDINGS, "labels", "a"))


def test_one_code_does_not_hide_another() -> None:
    every = Findings()
    every.extend(note("IPC0008", Place("a"), "x") for _ in range(MANY))
    every.append(note("IPC0205", Place("b"), "y"))
    assert [finding.message for finding in every][-2:] == [
        "y",
        "500 more findings of IPC0008 not listed",
    ]
    assert not every.failed


def test_half_a_surrogate_pair_is_told_beside_long_digits() -> None:
    digits = "1" * 400
    for text in (
        f'{{"serial":"{digits}","a":"\\ud800"}}',
        f'{{"a":"\\ud800","b":{digits}}}',
        f'{{"b":{"1." * 400}0,"a":"\\ud800"}}'.replace("1.", "1", 399),
    ):
        column = text.index("\\ud800") + 1
        assert refusal("a.json", text) == (
            "IPC0002", column, column + 6, "the escape is half of a surrogate pair",
        )  # fmt: skip


@pytest.mark.parametrize("number", ["1" * 5000, "-" + "9" * 5000, "1e999", "1." + "1" * 50 + "E+400"])
def test_a_number_that_is_too_large_is_shown(number: str) -> None:
    assert refusal("a.json", f'{{"a":1.5,"b":{number}}}') == (
        "IPC0002", 14, 14 + len(number), "the number is too large",
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["a.yaml", "a.json"])
@pytest.mark.parametrize("fill", ["", '"' + "\\\\" * 40_000 + '[", "\\"[", ' + '"[[", ' * 4])
def test_a_document_has_a_hundred_levels(kind: str, fill: str) -> None:
    def nested(depth: int) -> str:
        return "[" * depth + fill + "1" + "]" * depth

    def read_all(text: str) -> None:
        list(json_documents(kind, text.encode()) if kind.endswith(".json") else yaml_documents(kind, text))

    read_all(nested(DEEPEST_DOCUMENT))
    with pytest.raises(Unreadable) as broken:
        read_all(nested(DEEPEST_DOCUMENT + 1))
    assert [found.message for found in broken.value.diagnostics] == ["more than 100 levels of nesting"]


def test_a_document_has_ten_million_mappings_and_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("json_stream", "yaml"):
        monkeypatch.setattr(f"ipamc.read.syntax.{module}.MOST_CONTAINERS", 3)
    text = '[{}, {"a": "[[[[ \\" {{{{"}'
    problem = "more than 3 mappings and lists"
    assert list(json_documents("a.json", f"{text}]".encode()))
    assert list(yaml_documents("a.yaml", f"{text}]\n---\n{text}]"))  # of a document, not of a file
    assert refusal("a.json", f"{text}, []]")[::3] == ("IPC0004", problem)
    assert refusal("a.yaml", f"{text}, []]") == ("IPC0004", len(text) + 3, len(text) + 4, problem)


def test_positions_are_looked_for_only_as_deep_as_a_document_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of libyaml for a bracket grows with the brackets that are open."""
    events: Counter[str] = Counter()
    make = parser

    class Counting:
        def __init__(self, text: str) -> None:
            self.parser = make(text)

        def get_event(self) -> Any:
            events["read"] += 1
            return self.parser.get_event()

    monkeypatch.setattr("ipamc.read.syntax.positions.parser", Counting)
    text = "a: 1\na: 2\n---\n" + "[" * 20_000
    found = findings(cluster_yaml=CLUSTER, nodes_yaml=text)
    located = locate(found, {"nodes.yaml": text.encode()})
    assert [(finding.code, finding.at.line) for finding in located] == [("IPC0003", 2), ("IPC0004", 4)]
    assert located[0].also[0].at.line == 1
    for wanted in (("x",), (0,) * 50):  # beside the way to a wanted value, and on it
        events.clear()
        locate([note("IPC0008", Place("nodes.yaml", 1, wanted), "x")], {"nodes.yaml": text.encode()})
        assert events["read"] < 2 * DEEPEST_DOCUMENT


def test_an_alias_of_long_text_counts_by_its_length() -> None:
    long = "x" * 6400  # as much as a hundred values
    assert refusal("a.yaml", f"a: &a {long}\nb: [{'*a, ' * 10_001}]\n")[3] == (
        "the aliases of this file expand to more than 1,000,000 values"
    )
    assert refusal("a.yaml", f"a: &a [{long}]\nb: [{'*a, ' * 10_001}]\n")[0] == "IPC0004"
    assert refusal("a.yaml", f"? &a {long}\n: 1\nb: [{'*a, ' * 10_001}]\n")[0] == "IPC0004"
    assert list(yaml_documents("a.yaml", f"a: &a {long}\nb: [{'*a, ' * 9_990}]\n"))


def test_a_file_has_a_thousand_tag_directives() -> None:
    text = "".join(f"%TAG !a{number}! tag:a\n" for number in range(1_000))
    assert [document.value for document in yaml_documents("a.yaml", text + "--- a\n")] == ["a"]
    assert refusal("a.yaml", "%TAG !b! tag:b\n" + text + "--- a\n") == (
        "IPC0004", 1, 5, "the file has 1,001 %TAG lines, more than 1,000",
    )  # fmt: skip


def test_a_document_has_a_million_scalars_that_readers_take_differently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ipamc.read.syntax.yaml.MOST_ODD_SCALARS", 3)
    assert list(yaml_documents("a.yaml", "[y, n, on]"))
    assert refusal("a.yaml", "[y, n, on, {off: 1}]")[:2] == ("IPC0004", 13)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("weigh", "text"),
    [
        (lambda text: list(json_documents("a.json", text)), b"[" * 97 + b"1," * 500_000 + b"1" + b"]" * 97),
        (lambda text: list(json_documents("a.json", text)), b"[" + b"[" * 97 + b"]" * 97 + (b"," + b"[" * 97 + b"]" * 97) * 5_000 + b"]"),
        (lambda text: list(json_documents("a.json", text)), b'{"apiVersion":"v1","kind":"List","items":[' + b'{"a":1},' * 100_000 + b"1]}"),
        (lambda text: Lines("a.yaml", text.decode()).span(1, 2), b"\n" * 1_000_000),
    ],
)  # fmt: skip
def test_memory_is_at_most_some_forty_bytes_for_each_byte(
    weigh: Callable[[bytes], object], text: bytes
) -> None:
    tracemalloc.start()
    try:
        weigh(text)
        assert tracemalloc.get_traced_memory()[1] < 48 * len(text)
    finally:
        tracemalloc.stop()


def test_lines_end_at_every_kind_of_break() -> None:
    text = "a\r\nbc\rd\n\n\r\ne\r"
    rows = [Lines("x", text).span(offset, offset) for offset in range(len(text) + 1)]
    assert [(row.line, row.column, row.source) for row in rows] == [
        (1, 1, "a"), (1, 2, "a"), (1, 2, "a"), (2, 1, "bc"), (2, 2, "bc"), (2, 3, "bc"), (3, 1, "d"),
        (3, 2, "d"), (4, 1, ""), (5, 1, ""), (5, 1, ""), (6, 1, "e"), (6, 2, "e"), (7, 1, ""),
    ]  # fmt: skip


LOCK = '{"lock":1,"cluster":"case","mode":"cluster-pool","shards":%s}\n'


@pytest.mark.parametrize(
    ("shards", "problem"),
    [
        ("68719476736", "line 1: shard count 68,719,476,736 is more than 1,048,576"),
        (str(2 * MOST_SHARDS), "line 1: shard count 2,097,152 is more than 1,048,576"),
        ("1" + "0" * 4_000, "line 1: the header is not readable"),
        ("1" + "0" * 100_000, "line 1: the header is not readable"),
        ("-1", "line 1: shard count -1 is not a power of two"),
        ("1e3", "line 1: the header is not readable"),
        ("1.5", "line 1: the header is not readable"),
    ],
)
def test_a_shard_count_has_bounds(shards: str, problem: str) -> None:
    lock, found = parse((LOCK % shards).encode(), "ipam.lock")
    assert lock is None
    assert [finding.message for finding in found] == [problem]


def test_the_most_shards_can_be_had_and_not_more() -> None:
    lock, found = parse((LOCK % MOST_SHARDS).encode(), "ipam.lock")
    assert lock is not None
    assert not found
    assert first_shards(10**9, 1) == MOST_SHARDS


def test_a_lock_has_ten_thousand_wrong_lines_and_no_more_are_looked_for() -> None:
    cluster = builders.plan("cluster-pool", [builders.pool("a", "10.0.0.0/8")], {}).cluster
    head = (LOCK % 1).replace("case", cluster.name)
    row = '{"block":"10.0.0.0/26","pool":"a","node":"%s"}\n'
    for body, code in (("x\n" * MANY, "IPC0403"), (row % "a" * MANY, "IPC0407")):
        _, found = load((head + body).encode(), "ipam.lock", cluster, Consent(), rendered=False)
        assert Counter(finding.code for finding in found)[code] == MOST_FINDINGS


def test_words_of_a_lock_are_cut_in_findings() -> None:
    long = "x" * 100_000
    texts = [
        (LOCK % 1).replace("cluster-pool", long),
        LOCK % 1 + f'{{"block":"{long}","node":"a"}}\n',
        LOCK % 1 + f'{{"block":"10.0.0.0/26","node":"a","quarantined":"{long}"}}\n',
    ]
    for text in texts:
        (found,) = parse(text.encode(), "ipam.lock")[1]
        assert len(found.message) < 400


@pytest.mark.parametrize("name", NAMES)
def test_findings_of_one_long_line_cost_the_same_each(name: str) -> None:
    """Minified JSON is one line: a column of a finding there takes no walk along it."""
    source = "\U0001f600" + "x" * 200_000
    lines = Lines("a.json", source)
    found = [
        note("IPC0008", lines.span(200_000 - number, 200_000), f"finding {number}") for number in range(1_000)
    ]
    calls = counted(lambda: report(found, name))
    assert calls < 1_000_000
    if name == "sarif":
        result: Mapping[str, Any] = json.loads(report(found[:1], name))["runs"][0]["results"][0]
        region = result["locations"][0]["physicalLocation"]["region"]
        assert (region["startColumn"], region["endColumn"]) == (200_002, 200_002)


INVENTORY = '{"apiVersion":"ipamc/v1alpha1","kind":"NodeInventory","nodes":[%s]}'
LIST = '{"apiVersion":"v1","kind":"NodeList","items":[%s]}'


def entries(number: int, entry: str = '{"name":"n%d"}', first: int = 0) -> str:
    return ",".join(entry % index for index in range(first, first + number))


ATTACKS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "an inventory": ("json", lambda: INVENTORY % entries(MOST_NODES * 3)),
    "an inventory with an odd field": ("json", lambda: INVENTORY % (entries(MOST_NODES * 3) + ',{"odd":1}')),
    "nodes with labels": ("json", lambda: INVENTORY % entries(MOST_NODES * 3, '{"name":"n%d","labels":{}}')),
    "a list": ("json", lambda: LIST % entries(MOST_NODES * 3, '{"metadata":{"name":"n%d"}}')),
    "an inventory in YAML": ("yaml", lambda: NODES + "- {name: n}\n" * (MOST_NODES * 3)),
    "documents": ("yaml", lambda: "---\n" * (MOST_NODES * 3)),
}
"""Each of some megabytes, made where it is used."""


@pytest.mark.deep
@pytest.mark.parametrize("attack", ATTACKS)
def test_nodes_are_counted_while_they_are_read(attack: str) -> None:
    """600,000 of them are refused before they are in memory: less than for the 200,000 that are read."""
    suffix, made = ATTACKS[attack]
    sources = {"c.yaml": CLUSTER.encode(), f"n.{suffix}": made().encode()}
    tracemalloc.start()
    with pytest.raises(Refused) as refused:
        read("case", ".", sources, SCHEMAS)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    (found,) = refused.value.diagnostics
    assert found.code == "IPC0004"
    assert found.message.startswith(f"more than {MOST_NODES:,} ")
    assert peak < 500 * MOST_NODES


@pytest.mark.parametrize("again", [False, True])
def test_nodes_of_several_files_are_counted_together(again: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001 - a parameter of the test
    for module in ("read", "rules"):
        monkeypatch.setattr(f"ipamc.read.{module}.MOST_NODES", 5)
    files = {"c_yaml": CLUSTER}
    for number in range(4 if again else 2):
        files[f"n{number}_json"] = INVENTORY % entries(3, first=0 if again else 3 * number)
    assert [(each.code, each.message) for each in findings(**files) if each.code != "IPC0103"] == [
        ("IPC0004", "more than 5 nodes")
    ]
    assert not findings(c_yaml=CLUSTER, n_json=INVENTORY % entries(5))


def test_planned_nodes_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("read", "rules"):
        monkeypatch.setattr(f"ipamc.read.{module}.MOST_NODES", 5)
    planned = '{"name":"n%d","planned":true}'
    text = INVENTORY % f"{entries(3)},{entries(3, planned, first=3)}"
    assert findings(c_yaml=CLUSTER, n_json=text)[0].message == "more than 5 nodes"
