"""Text is text to every YAML reader, and a template that goes wrong says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from ipamc.render.targets.context import File
from ipamc.render.yaml import emit, quoted, scalar
from tests.support.builders import read

PLAIN = [
    "worker-1",
    "rack.a",
    "kubernetes.io/hostname",
    "10.0.0.0/24",
    "10.0.0.1",
    "Node",
    "cluster-pool",
    "a_b",
    "e3",
    "nodes/00f",
]
QUOTED = [
    *(
        "",
        " ",
        "a ",
        " a",
        "a b",
        "a: b",
        "a #b",
        "- a",
        "-",
        "?",
        ":",
        "=",
        "<<",
        "~",
        "*a",
        "&a",
        "!a",
        "%a",
        "@a",
        "`a`",
        "|",
        ">",
        "[a]",
        "{a}",
        "a,b",
        "#",
    ),
    *("y", "Y", "n", "N", "yes", "No", "ON", "off", "true", "False", "null", "NULL", "Null"),
    *(
        "0",
        "08",
        "017",
        "0o17",
        "0x10",
        "0b1",
        "1e3",
        "1.5e3",
        "1_000",
        "+1",
        "-1",
        "1.",
        ".5",
        ".inf",
        "-.INF",
        ".nan",
        "1:30",
        "12:30:45",
        "1.2.3",
        "_1",
    ),
    *(
        "2026-11-21",
        "2026-11-21T10:00:00Z",
        "3node",
        "fd00::/64",
        "::1",
        "::",
        "fd00::1:2",
        "1234e567-89ab",
        "--ipam=kubernetes",
    ),
    *(
        "{{ nodes }}",
        "{% raw %}",
        "${HOME}",
        "$(x)",
        "'a'",
        '"a"',
        "\\",
        "a\nb",
        "a\r\n",
        "\t",
        "---",
        "...",
        "\x00",
        "\x1b",
        "\x7f",
        "\x85",
        "\u2028",
        "\ufeff",
        "\ufffe",
    ),
    *("é", "日本", "😀", "a\u0301"),
]
ANY = st.text(max_size=120)


@pytest.mark.parametrize("text", PLAIN)
def test_plain_text_stays_plain(text: str) -> None:
    assert quoted(text) == text
    assert read(f"{text}: {text}\n") == [{text: text}]


@pytest.mark.parametrize("text", QUOTED)
def test_doubtful_text_is_quoted(text: str) -> None:
    assert quoted(text).startswith('"')
    assert quoted(text).isascii()
    assert quoted(text).isprintable()
    assert read(f"{quoted(text)}: {quoted(text)}\n") == [{text: text}]


@given(st.lists(st.tuples(ANY, ANY), unique_by=lambda pair: pair[0]))
def test_every_text_survives_every_reader(pairs: list[tuple[str, str]]) -> None:
    text = (
        "a:\n"
        + "".join(f"  {quoted(key)}: {quoted(value)}\n" for key, value in pairs)
        + "b:\n"
        + "".join(f"- {quoted(key)}\n" for key, _ in pairs)
    )
    assert read(text) == [{"a": dict(pairs) or None, "b": [key for key, _ in pairs] or None}]


@given(
    st.from_regex(r"[-+.]?[0-9A-Fa-fxob_:.eE+-]{0,12}", fullmatch=True)
    | st.sampled_from(QUOTED).map(str.upper)
    | st.sampled_from(QUOTED).map(str.title)
)
def test_what_looks_like_a_number_or_a_word_stays_text(text: str) -> None:
    assert read(f"- {quoted(text)}\n") == [[text]]


def test_numbers_and_truth_values_are_plain() -> None:
    assert [scalar(each) for each in (True, False, 0, 27)] == ["true", "false", "0", "27"]


@pytest.mark.parametrize("value", [None, 1.5, ["a"], b"a", {}])
def test_nothing_else_is_a_scalar(value: object) -> None:
    with pytest.raises(TypeError, match="is not a scalar"):
        scalar(value)


@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["C"]))).map(tuple))
def test_a_tuple_is_a_flow_sequence(texts: tuple[str, ...]) -> None:
    assert read(f"a: {scalar(texts)}\n") == [{"a": list(texts)}]


def test_a_template_cannot_forget_to_quote() -> None:
    files = [File("a.yaml", "a.yaml.j2", {"names": ("y", "{{ x }}")})]
    assert emit(files, {"a.yaml.j2": "{% for name in names %}\n---\nname: {{ name }}\n{% endfor %}\n"}) == {
        "a.yaml": 'name: "y"\n---\nname: "{{ x }}"\n'
    }


@pytest.mark.parametrize(
    "template",
    [
        "{{ nothing }}",
        "{% if nothing %}{% endif %}",
        "{% for x in nothing %}{% endfor %}",
        "{{ some.thing }}",
    ],
)
def test_a_missing_value_is_a_failure(template: str) -> None:
    with pytest.raises(UndefinedError):
        emit([File("a", "t", {"some": ()})], {"t": template})


def test_a_missing_template_and_a_path_that_comes_twice_are_failures() -> None:
    with pytest.raises(KeyError):
        emit([File("a", "t", {})], {})
    with pytest.raises(ValueError, match="two files are called a"):
        emit([File("a", "t", {}), File("a", "t", {})], {"t": ""})
