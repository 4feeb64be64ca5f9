"""Questions to a lock's text: a look that reads a few rows answers as a full read would, and sees what is not as a compile writes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.lock.file import dumps
from ipamc.lock.lookup import NumberedLine, of, over
from ipamc.model.cidr import Block, parse_block
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Refused
from ipamc.model.lock import Line, Lock, State

NODES = ("n1", "n2", "n10", "n1.example")
HEAD = b'{"lock":1,"cluster":"lab","mode":"multi-pool","shards":1}\n'


def text_of(*lines: Line) -> bytes:
    return dumps(Lock(cluster="lab", mode=Mode.MULTI_POOL, shards=1, lines=lines)).encode()


@st.composite
def locks(draw: st.DrawFn) -> list[Line]:
    """Some blocks of 10.0.0.0/24 and fd00::/120, of several sizes, none over another."""
    lines = []
    for base in (parse_block("10.0.0.0/24"), parse_block("fd00::/120")):
        at = 0
        while at < 256:
            size = draw(st.sampled_from([1, 2, 8, 16, 64]))
            at = -(-at // size) * size
            if at < 256 and draw(st.booleans()):
                block = Block(base.family, base.first + at, base.prefix + 9 - size.bit_length())
                lines.append(
                    Line(
                        block=block,
                        pool="p",
                        node=draw(st.sampled_from(NODES)),
                        state=draw(st.sampled_from([State.HELD, State.RELEASED])),
                    )
                )
            at += size
    return lines


@st.composite
def questions(draw: st.DrawFn) -> Block:
    base = parse_block(
        draw(st.sampled_from(["10.0.0.0/24", "fd00::/120", "9.255.255.0/24", "10.0.1.0/24", "fd00::100/120"]))
    )
    more = draw(st.integers(-4, 8))
    size = 1 << (8 - more)
    return Block(base.family, (base.first + draw(st.integers(0, 255))) // size * size, base.prefix + more)


@given(locks(), questions())
def test_the_lines_over_a_block(lines: list[Line], block: Block) -> None:
    expected = [
        NumberedLine(line=line, number=number)
        for number, line in enumerate(lines, 2)
        if line.block.overlaps(block)
    ]
    assert over(text_of(*lines), "ipam.lock", block) == expected


@given(locks(), st.sampled_from([*NODES, "n", "n3"]))
def test_the_lines_of_a_node(lines: list[Line], node: str) -> None:
    assert of(text_of(*lines), "ipam.lock", node) == [
        NumberedLine(line=line, number=number) for number, line in enumerate(lines, 2) if line.node == node
    ]


ONE, TWO = (
    b'{"block":"10.0.0.0/27","pool":"p","node":"n1"}\n',
    b'{"block":"10.0.0.32/27","pool":"p","node":"n2"}\n',
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", "IPC0402"),
        (b"{}\n", "IPC0403"),
        (HEAD + ONE[:-1], "IPC0403"),
        (HEAD + b"<<<<<<< ours\n" + ONE + b"=======\n" + TWO + b">>>>>>> theirs\n", "IPC0403"),
        (HEAD + TWO + ONE, "IPC0409"),
        (HEAD + ONE + ONE, "IPC0407"),
        (HEAD + ONE + b'{"block":"10.0.0.16/28","pool":"p","node":"n2"}\n', "IPC0407"),
        (HEAD + ONE.replace(b'","', b'", "'), "IPC0409"),
        (HEAD + ONE.replace(b"}", b',"extra":1}'), "IPC0403"),
    ],
)
def test_what_no_compile_writes_is_refused_with_what_a_full_read_finds(text: bytes, code: str) -> None:
    with pytest.raises(Refused) as refused:
        over(text, "ipam.lock", parse_block("10.0.0.0/24"))
    assert {each.code for each in refused.value.diagnostics} == {code}


def test_a_look_trusts_what_it_does_not_come_across() -> None:
    """The price of an answer that does not read every line; `ipamc compile --check` reads them all."""
    far = b'{"block":"10.9.0.0/27","pool":"p", "node":"n3"}\n'
    last = b'{"block":"10.9.1.0/27","pool":"p","node":"n4"}\n'
    text = HEAD + ONE + TWO + TWO.replace(b"10.0.0.", b"10.1.0.") + far + last
    assert [each.line.node for each in over(text, "ipam.lock", parse_block("10.0.0.5/32"))] == ["n1"]
