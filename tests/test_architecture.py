"""What keeps the code as it is meant to be: rooms in layers, size, I/O in one room, a core without clock or chance, a complete catalogue."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from ipamc.catalogue import catalogue
from ipamc.workspace.disk import assets

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "compiler" / "ipamc"
MODULES = sorted(PACKAGE.rglob("*.py"))
CLI, WORKSPACE = PACKAGE / "cli", PACKAGE / "workspace"
"""The room that prints, and the room that does all other I/O."""
JOBS = PACKAGE / "cli" / "ci" / "jobs.py"
CHECKER = {PACKAGE / "law" / "files.py", PACKAGE / "law" / "__main__.py"}
"""The I/O of the checker, which imports nothing of ipamc but the law."""
CORE = [
    path
    for path in MODULES
    if path == JOBS
    or not ({CLI, WORKSPACE} & set(path.parents) or path.name == "__main__.py" or path in CHECKER)
]

IO = {
    "os",
    "io",
    "shutil",
    "tempfile",
    "subprocess",
    "socket",
    "glob",
    "fileinput",
    "urllib",
    "http",
    "importlib.resources",
    "signal",
    "multiprocessing",
    "concurrent",
}
PRINTING = {"logging", "click", "rich"}
EXEMPT = {
    (
        CLI / "terminal.py",
        "os",
    ): "NO_COLOR, FORCE_COLOR, TERM and CI say what the terminal can show, and are no data",
    (PACKAGE / "law" / "verify.py", "socket"): "inet_pton reads an address, and no network",
}
"""Modules that a file imports all the same, and why."""
LONGEST = 400
"""Lines of a module. More is a hint that it has two subjects; a whole module of 390 is better than two halves."""

CHANCE = {"time", "random", "secrets", "uuid", "platform", "getpass", "locale"}
CODE = re.compile(r"IPC\d{4}").fullmatch


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of the syntax tree of a file, the module first."""
    return tuple(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Return (module, name) of every import of a file."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", each.name) for each in node.names)


def called(path: Path) -> Iterator[str]:
    """Return the last name of everything that a file calls."""
    for node in nodes(path):
        if isinstance(node, ast.Call):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_layers_are_one_way() -> None:
    command = "from importlinter.cli import lint_imports; import sys; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rooms_are_one_list_of_a_dozen() -> None:
    (contract,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert (contract["containers"], contract["exhaustive"]) == (["ipamc"], True)
    assert len(contract["layers"]) <= 12


def test_small_is_kept_small() -> None:
    lengths = {label(path): len(path.read_text().splitlines()) for path in MODULES}
    large = [f"{path}: {length} lines" for path, length in lengths.items() if length > LONGEST]
    assert not large, "\n".join(large)


def test_limits_are_one_table() -> None:
    """Every limit is in `model/limits.py`, with a reason on its line or the next; `law/` has its own."""
    table = PACKAGE / "model" / "limits.py"
    constant = re.compile(
        r"_?(?:MOST|MAX|LONGEST|LARGEST|DEEPEST|FEW|LISTED)(?:_\w+)?(?:: \w+)? = [\d(]"
    ).match
    found = [
        f"{label(path)}:{number}: {line}"
        for path in MODULES
        if path != table and PACKAGE / "law" not in path.parents
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if constant(line)
    ]
    assert not found, "\n".join(found)
    lines = table.read_text().splitlines()
    reasons = [
        "  # " in line or after.startswith('"""')
        for line, after in pairwise([*lines, ""])
        if re.match(r"[A-Z]\w* = ", line)
    ]
    names = re.findall(r"(?m)^(\w+) = ", table.read_text())
    assert all(reasons)
    assert len(names) == len(set(names))


DATACLASSES = {
    "compiler/ipamc/workspace/remote.py": "a token is not shown",
}
"""Modules with dataclasses, and why: fields that are not shown, which a Struct does not have."""


def test_values_are_structs() -> None:
    """Python makes a dataclass in 0.4 ms of every start, msgspec a Struct in 0.01; a compile has 120 of them."""
    found = {label(path) for path in MODULES if ("dataclasses", "dataclass") in imports(path)}
    assert found == DATACLASSES.keys()


def test_comments_stand_above_what_they_explain() -> None:
    """The formatter moves a comment behind the bracket of a call that it wraps: there it explains nothing."""
    behind = re.compile(r"\s*[\])}]+[,:]*\s+#(?! (?:type|noqa|fmt):)").match
    found = [
        f"{label(path)}:{number}"
        for path in MODULES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if behind(line)
    ]
    assert not found, "\n".join(found)


def doors(path: Path, modules: set[str], calls: set[str]) -> Iterator[str]:
    """Yield what a file imports of these modules or, where `os` is one of them, of real paths; and what it calls of these functions."""
    for module, name in imports(path):
        path_on_disk = module == "pathlib" and not name.startswith("Pure") and "os" in modules
        if (path, module) in EXEMPT:
            continue
        if path_on_disk or module in modules or module.partition(".")[0] in modules:
            yield f"import of {module} {name}".rstrip()
    yield from sorted(calls & set(called(path)))


def test_the_core_does_no_io_and_gives_every_run_the_same() -> None:
    calls = {"open", "print", "input", "now", "utcnow", "today", "getenv"}
    found = [f"{label(path)}: {door}" for path in CORE for door in doors(path, IO | CHANCE | PRINTING, calls)]
    assert not found, "\n".join(found)


def test_io_is_in_workspace_alone_which_prints_nothing() -> None:
    found = [
        f"{label(path)}: {door}"
        for path in sorted({*MODULES} - CHECKER)
        for door in (
            doors(path, PRINTING, {"print", "input"})
            if WORKSPACE in path.parents
            else doors(path, IO | CHANCE, {"open", "input", "now", "utcnow", "getenv"})
        )
    ]
    assert not found, "\n".join(found)


def lacks_a_reason(line: str) -> bool:
    """Tell whether a line has an exemption that does not say what it is from and why."""
    return ("# noqa" in line and not re.search(r"# noqa: [A-Z]+\d+(, [A-Z]+\d+)* - \S", line)) or (
        "# type: ignore" in line and not re.search(r"# type: ignore\[[\w, -]+\] +# \S", line)
    )


PARSES = {
    "compiler/ipamc/render/verify.py": "a template may have written anything, with places to show",
}


def test_yaml_is_read_in_one_room_and_what_is_rendered_in_one_module() -> None:
    """Everybody else asks `Rendered` in read/rendered.py."""
    found = {label(path) for path in MODULES if ("ipamc.read.syntax.yaml", "yaml_documents") in imports(path)}
    assert {path for path in found if not path.startswith("compiler/ipamc/read/")} == PARSES.keys()


def test_every_exemption_has_a_reason() -> None:
    bare = [
        f"{label(path)}: {line}"
        for path in MODULES
        for line in path.read_text().splitlines()
        if lacks_a_reason(line)
    ]
    assert not bare, "\n".join(bare)


def functions(path: Path) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Return every function of a file, and the code that its docstring starts with, or ""."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef):
            code = (ast.get_docstring(node) or "").partition(":")[0]
            yield node, code if CODE(code) else ""


def made_in(node: ast.AST) -> set[str]:
    """Return the codes of the findings that a piece of code makes."""
    makers = [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and getattr(each.func, "id", "") in {"error", "warning", "note"}
    ]
    return {
        each.args[0].value
        for each in makers
        if each.args and isinstance(each.args[0], ast.Constant) and isinstance(each.args[0].value, str)
    }


def test_the_catalogue_has_every_rule() -> None:
    """The docstring of a rule is the first line of its file below `rules/`."""
    firsts = sorted(
        ast.get_docstring(node) or "" for path in MODULES for node, code in functions(path) if code
    )
    rules = catalogue(assets("rules"))
    assert firsts == [f"{code}: {entry.title}" for code, entry in rules.items()]
    assert [name for name in assets("rules") if name.startswith("IPC")] == [f"{code}.txtar" for code in rules]


def test_a_code_belongs_to_one_function() -> None:
    """A function that explains a code makes findings of no other, and no other function makes any."""
    strays: list[str] = []
    for path in MODULES:
        rules = [(node, code) for node, code in functions(path) if code]
        strays += [
            f"{label(path)}: the function of {code} makes {other}"
            for node, code in rules
            for other in made_in(node) - {code}
        ]
        strays += [
            f"{label(path)}: no function here explains {other}"
            for other in made_in(nodes(path)[0]) - {code for _, code in rules}
        ]
    assert not strays, "\n".join(sorted(strays))


def test_every_rule_is_explained() -> None:
    for entry in catalogue(assets("rules")).values():
        assert entry.title.endswith("."), entry.code
        assert len(entry.body + entry.why) > 40, entry.code


PAGES = {page.name: page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md"))}


def places(text: str) -> list[Path]:
    """Return where a path on the page leads: below the root or the package. NAME stands for any name."""
    known = text.partition("NAME")[0].rpartition("/")[0] if "NAME" in text else text
    return [path for base in (ROOT, PACKAGE) if (path := base / known).exists()]


@cache
def bound(path: Path) -> set[str]:
    """Return the names of the functions, classes and variables of a file."""
    return {
        getattr(node, "name", "") or getattr(node, "id", "")
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    }


def steps_of(page: str) -> list[tuple[str, str]]:
    """Return (function, file) of the tables of steps. A row may have several functions of one file."""
    rows = re.findall(r"^\| ((?:`\w+\(\)`(?:, )?)+) \| `(\S+\.py)` \|", page, re.MULTILINE)
    return [(name, path) for names, path in rows for name in re.findall(r"\w+", names)]


def test_every_path_on_the_page_exists() -> None:
    page = PAGES["architecture.md"] + PAGES["recipes.md"]
    spans = [word for span in re.findall(r"`([^`]+)`", page) for word in span.split()]
    paths = [word for word in spans if "/" in word or re.search(r"\.(py|md|toml)$", word)]
    assert len(paths) > 80
    assert [path for path in paths if not places(path)] == []


@pytest.mark.parametrize(
    ("name", "least"), [("architecture.md", 50), ("recipes.md", 15), ("security.md", 30)]
)
def test_every_function_on_a_page_is_in_its_file(name: str, least: int) -> None:
    named = [*steps_of(PAGES[name]), *re.findall(r"`(\w+)(?:\(\))?`\s+in\s+`(\S+\.py)`", PAGES[name])]
    assert len(named) > least
    assert [(name, path) for name, path in named if name not in bound(places(path)[0])] == []
    assert set(re.findall(r"`(\w+)\(\)`", PAGES[name])) <= {name for name, _ in named}


def test_what_is_replaced_is_a_field() -> None:
    """Type checks do not know the keywords of msgspec's `replace`: a field that is gone fails at run time alone."""
    fields = {
        node.target.id
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    calls = [
        (path, node)
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "replace"
    ]
    assert len(calls) > 100
    unknown = {(path.name, each.arg) for path, node in calls for each in node.keywords if each.arg} - {
        (path.name, name) for path, _ in calls for name in fields
    }
    assert unknown == set()


def test_every_step_of_the_pipeline_is_on_the_page() -> None:
    rows = dict(steps_of(PAGES["architecture.md"]))
    pipeline = PACKAGE / "pipeline.py"
    ours = [(module, name) for module, name in imports(pipeline) if module.startswith("ipamc")]
    rooms = {name for module, name in ours if Path(PACKAGE.parent, *module.split("."), f"{name}.py").exists()}
    steps = {name for module, name in ours if module != "ipamc.model.progress" and name.islower()} - rooms
    steps |= {
        node.attr
        for node in nodes(pipeline)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in rooms
    }
    assert {step for step in steps if step.islower()} <= rows.keys()


def test_the_page_has_the_rooms_in_order() -> None:
    (contract,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rooms = [room for layer in contract["layers"] for room in re.split(r" [:|] ", layer)]
    assert re.findall(r"^\| `(\w+)(?:/|\.py)` \|", PAGES["architecture.md"], re.MULTILINE) == rooms
