"""A template of `templates/runbooks/` and its values in, a runbook out.

A template is Markdown for one parser. Marks stand at the start of a line:

    # title of the runbook       ## title of a phase       ### key: title of a step
    - what to know before        wave: (name, nodes)       why, as prose
    way back: prose                                        nodes:, where:, only if:, check: and if not:
                                                           ```sh, ```edit and ```prints, up to ```

Prose goes on until the next mark, and a line that ends with a backslash goes on in the next one. Each value
that a template writes enters the text as JSON between two NULs, and is put in its place after the text was
divided: no value can be a mark. In commands it is quoted for a shell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from shlex import quote
from typing import TYPE_CHECKING, Any

from ipamc.model.diagnostics import count, names
from ipamc.review.runbook.values import Check, Phase, Runbook, Step, Wave, Where

if TYPE_CHECKING:
    from jinja2 import Environment

HEADINGS = {"#", "##", "###"}
_MARK = re.compile(
    r"(#{1,3}|-|wave:|nodes:|where:|only if:|check:|if not:|way back:) (.*)|```(sh|edit|prints)"
).fullmatch
_CONTINUED = re.compile(r" \\\n *")
_VALUE = re.compile(r"\0([^\0]*)\0")


def runbook(
    templates: Mapping[str, str], template: str, cluster: str, change: str, values: Mapping[str, object]
) -> Runbook:
    """Return the runbook of a template. A bug in the template raises Jinja2's own errors or ValueError."""
    text = _environment(tuple(templates.items())).get_template(f"{template}.md.j2").render(values)
    return parse(text, cluster, change)


@lru_cache(maxsize=2)
def _environment(templates: tuple[tuple[str, str], ...]) -> Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined, pass_context  # noqa: PLC0415 - 60 ms
    from markupsafe import Markup  # noqa: PLC0415 - as above

    @pass_context  # else Jinja2 escapes constants as HTML while it compiles
    def escaped(_: object, value: object) -> Markup:
        # With `autoescape`, a macro returns Markup: text of a template, whose values are escaped already.
        if isinstance(value, Markup):
            return value
        plain = value if type(value) in {int, list, tuple} else str(value)
        return Markup(f"\0{json.dumps(plain)}\0")  # noqa: S704 - as JSON

    environment = Environment(
        loader=DictLoader(dict(templates)),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=escaped,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "counted": count,
        "json": lambda value: json.dumps(value, separators=(",", ":")),
        "names": names,
        "sh": quote,
    }
    return environment


def parse(text: str, cluster: str, change: str) -> Runbook:
    """Return the runbook of a rendered template. Raises ValueError."""
    title = way_back = ""
    about: list[str] = []
    phases: list[tuple[str, list[dict[str, Any]]]] = []
    step: dict[str, Any] = {}
    for mark, lines in _parts(text):
        first = lines[0] if lines else ""
        if mark == "#":
            title = _prose(lines)
        elif mark == "-":
            about.append(_prose(lines))
        elif mark == "way back:":
            way_back = _prose(lines)
        elif mark == "##":
            phases.append((_prose(lines), []))
            step = {}
        elif mark == "wave:":
            name, nodes = json.loads(first.strip("\0"))
            phases[-1][1].append({"name": name, "nodes": tuple(nodes), "steps": []})
            step = {}
        elif mark == "###":
            key, _, rest = first.partition(": ")
            step = {"key": key, "title": _prose([rest])}
            if not phases[-1][1]:
                phases[-1][1].append({"steps": []})
            phases[-1][1][-1]["steps"].append(step)
        else:
            field, read = _FIELDS[mark]
            if field in step or not step:
                raise ValueError(f"{mark} where it cannot be, in {title}: {step}")
            step[field] = read(lines)
    every = [(each, tuple(map(_wave, waves)) or (Wave(steps=()),)) for each, waves in phases]
    made = tuple(Phase(title=each, waves=waves) for each, waves in every)
    return Runbook(
        cluster=cluster, change=change, title=title, about=tuple(about), phases=made, way_back=way_back
    )


def _parts(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each mark with its lines; for prose behind the title of a step, the mark is "why"."""
    mark, lines, fenced = "", [], False
    for line in [*_CONTINUED.sub(" ", text).split("\n"), "# "]:
        if fenced and line != "```":
            lines.append(line)
            continue
        found = None if fenced else _MARK(line)
        if not (fenced or found):
            lines += [line.strip()] if line.strip() else []
            continue
        if mark and (lines or mark != "why"):
            yield mark, lines
        elif lines:
            raise ValueError(f"prose without a mark: {lines[0]}")
        mark, lines, fenced = "", [], bool(found and found[3])
        if found:
            mark, lines = (found[3], []) if fenced else (found[1], [found[2]])
        if mark in HEADINGS and line != "# ":
            yield mark, lines
            mark, lines = "why" if mark == "###" else "", []
    if fenced:
        raise ValueError(f"a block that does not end: {lines}")


def _prose(lines: list[str]) -> str:
    found = (_VALUE.sub(lambda value: str(json.loads(value[1])), line) for line in lines)
    return " ".join(filter(None, found))


def _verbatim(lines: list[str]) -> str:
    return "\n".join(_prose([line]) for line in lines)


def _shell(line: str) -> str:
    """Return a command in which each value, and each item of a list, is quoted as one word of a shell."""

    def words(found: re.Match[str]) -> str:
        value = json.loads(found[1])
        return " ".join(quote(str(each)) for each in (value if isinstance(value, list) else [value]))

    return _VALUE.sub(words, line)


_FIELDS: Mapping[str, tuple[str, Callable[[list[str]], Any]]] = {
    "why": ("why", _prose),
    "nodes:": ("nodes", lambda lines: tuple(json.loads(lines[0].strip("\0")))),
    "where:": ("where", lambda lines: Where(_prose(lines))),
    "only if:": ("only_if", _prose),
    "edit": ("edit", _verbatim),
    "sh": ("commands", lambda lines: tuple(_shell(line) for line in lines if line)),
    "check:": ("check", lambda lines: _shell(lines[0])),
    "prints": ("expect", _verbatim),
    "if not:": ("if_not", _prose),
}
"""The field of a step and the function that reads it, by mark."""


def _wave(wave: dict[str, Any]) -> Wave:
    return Wave(**{**wave, "steps": tuple(_step(**step) for step in wave["steps"])})


def _step(check: str = "", expect: str = "", **fields: Any) -> Step:
    return Step(check=Check(command=check, expect=expect) if check else None, **fields)
