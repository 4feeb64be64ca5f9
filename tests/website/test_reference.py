"""docs/reference/ is what the code says, byte for byte; and the schemas say of every field what a reader asks."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ipamc.catalogue import catalogue
from ipamc.cli import VERBS
from ipamc.law.change import HELD, ROWS
from ipamc.model.cilium.versions import since, text
from ipamc.read.kinds import KINDS, OURS
from ipamc.report.findings import NAMES
from ipamc.workspace.disk import assets
from tools.website import reference
from tools.website.reference import codes, fields, law, outputs, verbs
from tools.website.reference.markdown import anchor, prose
from tools.website.reference.schema import Field, example, in_place, resolve
from tools.website.reference.schema import fields as fields_of

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "compiler" / "ipamc"
KIND = {fields.stem(kind): kind for kind in KINDS}


def test_the_reference_is_what_the_code_says(update: bool) -> None:  # noqa: FBT001 - a fixture
    """`make reference`, or `pytest tests/website/test_reference.py --update`, writes it."""
    if update:
        reference.write(reference.REFERENCE)
    made = reference.pages()
    there = {
        path.relative_to(reference.REFERENCE).as_posix(): path.read_text(encoding="utf-8")
        for path in reference.REFERENCE.rglob("*.md")
    }
    stale = [name for name in sorted(there.keys() | made.keys()) if there.get(name) != made.get(name)]
    assert stale == [], "run `make reference`, and read the diff"


def test_the_law_on_its_page_is_that_of_the_code(update: bool) -> None:  # noqa: FBT001 - a fixture
    if update:
        law.write()
    text = law.PAGE.read_text(encoding="utf-8")
    assert text.count("\n| held by n |") == sum(row.was == HELD for row in ROWS)
    assert text == law.with_table(text), "run `make reference`, and read the diff"


def test_every_verb_code_and_kind_has_a_page() -> None:
    made = reference.pages()
    assert {f"verbs/{name}.md" for name in VERBS} <= made.keys()
    assert {f"codes/{code}.md" for code in catalogue(assets("rules"))} <= codes.pages_of_site().keys()
    assert {f"fields/{name}.md" for name in KIND} <= made.keys()
    assert verbs.EXPLAINED.keys() <= VERBS.keys()
    assert {code[3:5] for code in catalogue(assets("rules"))} == codes.SUBJECTS.keys()


def every_field() -> Iterator[tuple[str, Field]]:
    """Yield every field of every kind, parts of selectors too."""
    for name in KIND:
        yield from ((name, field) for field in fields_of(fields.schema(name)))


ABSENT = re.compile(r"\b(If unset,|Default: )").search


def lacking(name: str, field: Field) -> Iterator[str]:
    """Yield what the schema does not say of a field. In objects of others and in selectors what may be absent is nobody's choice of ours."""
    if not field.description.endswith("."):
        yield "a description"
    if example(field) is None:
        yield "an example"
    ours = KIND[name].api_versions == (OURS,)
    said = field.required or field.choice or "default" in field.schema or ABSENT(field.description)
    if ours and not said and not re.search(r"elector|\.match", field.path):
        yield "a default, or what holds without it"


@pytest.mark.parametrize("name", KIND)
def test_a_schema_tells_of_every_field_what_a_reader_asks(name: str) -> None:
    listed = fields_of(fields.schema(name))
    assert [f"{field.path} lacks {what}" for field in listed for what in lacking(name, field)] == []


@pytest.mark.parametrize("name", KIND)
def test_an_example_is_what_the_schema_allows(name: str) -> None:
    schema = fields.schema(name)
    wrong = [
        f"{field.path}: {problem.message}"
        for field in fields_of(schema)
        for each in field.schema.get("examples", ())
        for problem in Draft202012Validator({**field.schema, "$defs": schema.get("$defs", {})}).iter_errors(
            each
        )
    ]
    assert wrong == []


def test_versions_of_fields_are_those_of_the_table() -> None:
    """A field that a description gives a version has that of the capability behind it."""
    known = {(name, field.path) for name, field in every_field()}
    assert {(name, path.partition(": ")[0]) for name, path in fields.NEEDS} <= known
    for name, field in every_field():
        if said := re.search(r"Cilium (1\.\d+) on", field.description):
            assert text(since(fields.NEEDS[name, field.path])) == said[1], field.path


def test_every_output_has_a_command_and_a_schema() -> None:
    names = {name.removesuffix(".output.json") for name in assets("schemas") if name.endswith(".output.json")}
    assert names == outputs.PRINTED.keys()


def test_every_format_of_findings_is_told() -> None:
    assert tuple(outputs.FINDINGS) == NAMES


@pytest.mark.parametrize("name", outputs.PRINTED)
def test_the_schema_of_an_output_tells_what_every_field_means(name: str) -> None:
    schema = json.loads(assets("schemas")[f"{name}.output.json"])
    defs = schema.get("$defs", {})
    parts = {"": schema, **defs}
    silent = [
        f"{part} {field.path}"
        for part, each in parts.items()
        for field in fields_of({**each, "$defs": defs}, frozenset(defs))
        if not field.description.endswith(".")
    ]
    assert silent == []


def read_variables() -> Iterator[str]:
    """Yield the names of the environment variables that ipamc looks at by name."""
    texts = [path.read_text() for path in PACKAGE.rglob("*.py")]
    for source in filter(re.compile(r"\b(variable|command|environ\.get|token_of)\(|envvar=").search, texts):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                called = ast.unparse(node.func) if isinstance(node.args[0].value, str) else ""
                if called in {"variable", "command", "os.environ.get", "token_of"}:
                    yield str(node.args[0].value)
            if isinstance(node, ast.keyword) and node.arg == "envvar":
                yield ast.literal_eval(node.value)


def test_the_page_has_every_file_that_a_compile_writes() -> None:
    told = [path for paths, _, _ in outputs.FILES for path in paths.split(", ")]
    patterns = [
        path.replace("NAME", "[^/]+").replace("SHARD", "[^/]+") + (".*" if path.endswith("/") else "$")
        for path in told
    ]
    clusters = ROOT / "clusters"
    written = [
        path
        for path in clusters.rglob("*")
        if path.is_file() and ("rendered" in path.parts or path.name == "ipam.lock")
    ]
    assert len(written) > 50
    names = (path.relative_to(ROOT).as_posix() for path in written)
    assert [name for name in names if not any(re.match(pattern, name) for pattern in patterns)] == []


OF_FORGES = re.compile(r"(GITHUB|CI)_[A-Z_0-9]+").fullmatch
"""Variables that forges document; the page names those that say which forge it is."""


def test_the_page_has_every_variable() -> None:
    told = {name for names, _ in outputs.VARIABLES for name in names.split(", ")}
    found = {name for name in read_variables() if name.isupper()}
    assert {name for name in found if name not in told and not OF_FORGES(name)} == set()
    text = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    assert told <= set(re.findall(r"\w+", text))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("reads --at and a_b*", "reads `--at` and a\\_b\\*"),
        ("what 'ipamc compile' would do", "what `ipamc compile` would do"),
        ("as ipamc compile --check tells", "as `ipamc compile --check` tells"),
        ("ipamc apply --prune deletes them", "`ipamc apply --prune` deletes them"),
        ("HEAD's first parents' ends", "HEAD's first parents' ends"),
        ("below clusters/; an I/O error", "below `clusters/`; an I/O error"),
        ("of its blockSize <here>", "of its `blockSize` \\<here\\>"),
        ("`pods` stay, see https://example.com/a_b.", "`pods` stay, see https://example.com/a_b."),
    ],
)
def test_prose(given: str, shown: str) -> None:
    assert prose(given) == shown


def test_codes_are_links_where_their_index_is() -> None:
    assert (
        prose("see IPC0207, not `IPC0208`", "../codes/")
        == "see [IPC0207](../codes/README.md#ipc0207), not `IPC0208`"
    )


def test_links_to_codes_lead_to_their_pages_in_the_site() -> None:
    given = (
        "[IPC0207](../codes/README.md#ipc0207), [a](README.md#ipc0208), [b](../codes/README.md#02-addresses)"
    )
    wanted = "[IPC0207](../codes/IPC0207.md), [a](IPC0208.md), [b](../codes/README.md#02-addresses)"
    assert codes.to_pages(given) == wanted


@pytest.mark.parametrize(
    ("heading", "wanted"),
    [
        ("`spec.ipam.mode`", "specipammode"),
        ("02: addresses and pools", "02-addresses-and-pools"),
        ("Where, & how", "where--how"),
        ("[x](y.md) z", "x-z"),
    ],
)
def test_anchors_are_those_of_forges(heading: str, wanted: str) -> None:
    assert anchor(heading) == wanted


def test_an_example_stands_in_its_place() -> None:
    assert (
        in_place("tests[].blocks.within", ["10.0.0.0/8"])
        == "tests:\n  - blocks:\n      within:\n        - 10.0.0.0/8\n"
    )
    assert in_place("spec.pins.*", ["10.0.0.0/24"]) == "spec:\n  pins:\n    NAME:\n      - 10.0.0.0/24\n"


def test_what_a_schema_adds_to_what_it_refers_to_counts() -> None:
    assert resolve(
        {"$ref": "#/$defs/a", "description": "mine"}, {"a": {"description": "its", "type": "string"}}
    ) == (
        {"description": "mine", "type": "string"},
        "a",
    )
