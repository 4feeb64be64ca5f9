"""Shapes of YAML dumps, of which the reader takes out what nobody reads: real ones, and some made against that."""

from __future__ import annotations

from collections.abc import Callable, Mapping

POOL = "apiVersion: ipamc/v1alpha1\nkind: IPPool\nmetadata: {name: a}\nspec: {ipv4: {cidrs: [10.0.0.0/8], blockSize: 26}}\n"
FIELD = "    managedFields:\n"
TWICE = "    uid: a\n    uid: a\n"

Files = Mapping[str, str | bytes]
Text = Callable[[int], str]


def node(number: int, metadata: str) -> str:
    return f"- apiVersion: v1\n  kind: Node\n  metadata:\n    name: node-{number}\n{metadata}  spec: {{}}\n"


def dump(*nodes: str) -> str:
    return "apiVersion: v1\nitems:\n" + "".join(nodes) + "kind: List\n"


def _texts() -> dict[str, Text]:
    return {
        "nodes": lambda n: dump(*(node(i, FIELD + "    - a: {}\n      time: '1'\n") for i in range(n))),
        "a finding at the end": lambda n: dump(
            *(node(i, FIELD + "    - a: {}\n      time: '1'\n") for i in range(n)), node(n, TWICE)
        ),
        "all entries differ": lambda n: dump(*(node(i, f"{FIELD}    - a{i}: b\n") for i in range(n))),
        "entries of one node": lambda n: dump(node(0, FIELD + "".join(f"    - a{i}: b\n" for i in range(n)))),
        "keys of one entry": lambda n: dump(
            node(0, FIELD + "    - a: {}\n" + "".join(f'      v:"{i}": {{}}\n' for i in range(n)))
        ),
        "values with an anchor": lambda n: dump(*(node(i, FIELD + "    - &a b\n") for i in range(n))),
        "fields in a text": lambda n: dump(node(0, "    labels:\n      a: |\n" + ("    " + FIELD + "        - a: b\n        b: c\n") * n)),
        "fields in fields": lambda n: dump(node(0, "".join(f"{' ' * (i + 4)}managedFields:\n" for i in range(min(n, 1500))))),
        "a long value in each of eight fields": lambda n: dump(
            "".join(f"{' ' * i}managedFields:\n" for i in range(1, 9)) + " " * 9 + "- &a b\n" + (" " * 9 + "- c\n") * n
        ),
        "empty fields": lambda n: dump(node(0, FIELD * n)),
    }  # fmt: skip


def shapes() -> dict[str, Callable[[int], Files]]:
    return {f"dump: {name}": _files(text) for name, text in _texts().items()}


def _files(text: Text) -> Callable[[int], Files]:
    return lambda n: {"pool.yaml": POOL, "nodes.yaml": text(n)}
