"""Shapes of text: hostile YAML, JSON and locks, and some that are only large."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

HEAD = "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\n"
NODES = HEAD + "nodes:\n"
JSON_HEAD = '{"apiVersion":"ipamc/v1alpha1","kind":"NodeInventory","nodes":'
LIST = '{"apiVersion":"v1","kind":"List","items":['
LOCK = '{"lock":1,"cluster":"bench","mode":"cluster-pool","shards":1}\n'
POOL = "apiVersion: ipamc/v1alpha1\nkind: IPPool\nmetadata: {name: a}\nspec: {ipv4: {cidrs: [10.0.0.0/8], blockSize: 26}}\n"
BROKEN = "---\na: 1\na: 2\n---\n"
"""A document with a finding, so that positions are looked up."""
INPUT_FLAW = "apiVersion: ipamc/v1alpha1\nkind: Nothing\n"

Files = Mapping[str, str | bytes]
Text = Callable[[int], str]


def yaml(text: Text) -> Callable[[int], Files]:
    return lambda n: {"pool.yaml": POOL, "nodes.yaml": text(n)}


def as_json(text: Text) -> Callable[[int], Files]:
    return lambda n: {"pool.yaml": POOL, "nodes.json": text(n)}


def lock(text: Text) -> Callable[[int], Files]:
    return lambda n: {"pool.yaml": POOL, "nodes.yaml": NODES + "- {name: a}\n", "ipam.lock": text(n)}


def row(number: int, **more: object) -> str:
    third, fourth = divmod(number * 64, 256)
    second, third = divmod(third, 256)
    line = {"block": f"10.{second}.{third}.{fourth}/26", "pool": "a", "node": f"node-{number}", **more}
    return json.dumps(line, separators=(",", ":")) + "\n"


def _yaml() -> dict[str, Text]:
    return {
        "nodes": lambda n: NODES + "".join(f"- name: node-{i}\n  labels:\n    rack: r{i % 40}\n" for i in range(n)),
        "empty documents": lambda n: NODES + "- name: a\n" + "---\n" * n,
        "null documents": lambda n: NODES + "- name: a\n" + "--- ~\n" * n,
        "document ends": lambda n: NODES + "- name: a\n" + "...\n" * n,
        "unknown documents": lambda n: INPUT_FLAW + ("---\n" + INPUT_FLAW) * n,
        "documents that are text": lambda n: NODES + "- name: a\n" + "--- a\n" * n,
        "documents with a key twice": lambda n: "--- {a: 1, a: 1}\n" * n,
        "documents of one node": lambda n: "".join(
            f"---\napiVersion: v1\nkind: Node\nmetadata:\n  name: n{i}\n" for i in range(n)
        ),
        "deep after a finding": lambda n: BROKEN + "[" * n,
        "deep": lambda n: "[" * n,
        "deep mappings": lambda n: "{a: " * n,
        "deep block": lambda n: "\n".join(" " * i + "a:" for i in range(min(n, 1500))),
        "deep block list": lambda n: "- " * n,
        "deep at 99": lambda n: NODES + "- name: a\n  labels: " + "[" * 90 + "]" * 90 + "\n" + ("- " + "[" * 90 + "]" * 90 + "\n") * (n // 90),
        "question marks": lambda n: "? " * n,
        "question marks after a finding": lambda n: BROKEN + "? " * n,
        "colons": lambda n: ": " * n,
        "flow question marks": lambda n: "[" + "? " * n,
        "flow keys": lambda n: "{" + "a," * n + "}",
        "flow items": lambda n: NODES[:-1] + " [" + "a," * n + "]\n",
        "flow items of nothing": lambda n: NODES[:-1] + " [" + "{}," * n + "]\n",
        "wrong nodes": lambda n: NODES + "- {nome: a}\n" * n,
        "numbers for nodes": lambda n: NODES + "- 1\n" * n,
        "nulls for nodes": lambda n: NODES + "-\n" * n,
        "numbers for names": lambda n: NODES + "- name: 1\n" * n,
        "unknown fields of a node": lambda n: NODES + "- name: a\n" + "".join(f"  a{i}: 1\n" for i in range(n)),
        "unknown fields": lambda n: NODES + "- name: a\n" + "".join(f"a{i}: 1\n" for i in range(n)),
        "numbers for labels": lambda n: NODES + "- name: a\n  labels:\n" + "".join(f"    a{i}: 1\n" for i in range(n)),
        "ambiguous labels": lambda n: NODES + "- name: a\n  labels:\n" + "".join(f"    a{i}: y\n" for i in range(n)),
        "ambiguous numbers": lambda n: NODES + "- name: a\n  labels:\n" + "".join(f"    a{i}: 0{i}\n" for i in range(n)),
        "labels that are keys of numbers": lambda n: NODES + "- name: a\n  labels:\n" + "".join(f"    {i}: a\n" for i in range(n)),
        "bad labels": lambda n: NODES + "- name: a\n  labels:\n" + "".join(f"    a{i}: '?'\n" for i in range(n)),
        "bad names": lambda n: NODES + "".join(f"- name: N{i}\n" for i in range(n)),
        "the same name": lambda n: NODES + "- name: a\n" * n,
        "bad CIDRs": lambda n: NODES + "- name: a\n  podCIDRs:\n" + "  - a\n" * n,
        "keys twice": lambda n: NODES + "- name: a\n" + "x: 1\n" * n,
        "merge keys": lambda n: "<<: 1\n" + "".join(f"a{i}: {{<<: a}}\n" for i in range(n)),
        "tags": lambda n: "".join(f"a{i}: !x a\n" for i in range(n)),
        "a long tag": lambda n: "a: !" + "x" * n + " a\n",
        "many tag directives": lambda n: "".join(f"%TAG !a{i}! tag:a\n" for i in range(n)) + "--- a\n",
        "the same directive": lambda n: "%YAML 1.2\n" * n + "--- a\n",
        "unknown directives": lambda n: "%A b\n" * n + "---\n" + NODES,
        "anchors": lambda n: "".join(f"a{i}: &a{i} a\n" for i in range(n)),
        "anchors of one name": lambda n: "".join(f"a{i}: &a a\n" for i in range(n)),
        "a long anchor": lambda n: "a: &" + "x" * n + " a\n",
        "aliases": lambda n: "a: &a a\n" + "".join(f"a{i}: *a\n" for i in range(n)),
        "unknown aliases": lambda n: "".join(f"---\na: *a{i}\n" for i in range(n)),
        "expanded aliases": lambda n: NODES + "- &a {name: a, labels: {a: b}}\n" + "- *a\n" * n,
        "expanded aliases of wrong nodes": lambda n: NODES + "- &a {nome: a, labels: {a: 1}}\n" + "- *a\n" * n,
        "aliases of large labels": lambda n: NODES
        + "- name: a\n  labels: &a {" + ",".join(f"a{i}: a" for i in range(100)) + "}\n"
        + "".join(f"- {{name: b{i}, labels: *a}}\n" for i in range(n)),
        "aliases of wrong labels": lambda n: NODES
        + "- name: a\n  labels: &a {" + ",".join(f"a{i}: 1" for i in range(100)) + "}\n"
        + "".join(f"- {{name: b{i}, labels: *a}}\n" for i in range(n)),
        "aliases of bad labels": lambda n: NODES
        + "- name: a\n  labels: &a {" + ",".join(f"a{i}: '?'" for i in range(100)) + "}\n"
        + "".join(f"- {{name: b{i}, labels: *a}}\n" for i in range(n)),
        "laughs": lambda n: "a0: &a0 a\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i},*a{i}]\n" for i in range(min(n, 90))),
        "comments": lambda n: "# a\n" * n + NODES + "- name: a\n",
        "a long comment": lambda n: "#" + "a" * n + "\n" + NODES + "- name: a\n",
        "empty lines": lambda n: "\n" * n + NODES + "- name: a\n",
        "empty lines in text": lambda n: NODES + '- name: "a' + "\n" * n + '"\n',
        "carriage returns": lambda n: NODES + "- name: a\r\n" * n,
        "spaces": lambda n: NODES + " " * n + "- name: a\n",
        "tabs": lambda n: NODES + "\t" * n + "- name: a\n",
        "a long plain scalar": lambda n: NODES + "- name: " + "a" * n + "\n",
        "a long plain scalar of lines": lambda n: NODES + "- name: a\n" + "    a\n" * n,
        "long keys": lambda n: "".join(f"{'a' * 1000}{i}: a\n" for i in range(n // 1000 + 1)),
        "a long key": lambda n: "a" * n + ": a\n",
        "a long quoted key": lambda n: '"' + "a" * n + '": a\n',
        "a long key after a question mark": lambda n: '? "' + "a" * n + '"\n: a\n',
        "a long block scalar": lambda n: NODES + "- name: |\n" + "    a\n" * n,
        "a long quoted scalar": lambda n: NODES + '- name: "' + "a" * n + '"\n',
        "a long scalar of escapes": lambda n: NODES + '- name: "' + "\\u0041" * n + '"\n',
        "an unfinished quote": lambda n: NODES + '- name: "' + "a" * n,
        "unfinished quotes of lines": lambda n: NODES + '- name: "a\n' * n,
        "a long number": lambda n: NODES + "- name: a\n  maxPods: " + "1" * n + "\n",
        "long numbers": lambda n: NODES + "- name: a\n" + "".join(f"  a{i}: 1{'0' * 300}\n" for i in range(n)),
        "a number of underscores": lambda n: NODES + "- name: a\n  maxPods: 1" + "_" * n + "\n",
        "a base 60 number": lambda n: NODES + "- name: a\n  maxPods: 1" + ":1" * n + "\n",
        "a long hexadecimal": lambda n: NODES + "- name: a\n  maxPods: 0x" + "f" * n + "\n",
        "a long fraction": lambda n: NODES + "- name: a\n  maxPods: 1." + "1" * n + "\n",
        "an exponent": lambda n: NODES + "- name: a\n  maxPods: 1e" + "1" * n + "\n",
        "a long date": lambda n: NODES + "- name: a\n  maxPods: 2001-01-01 " + " " * n + "0:00:00x\n",
        "a long selector": lambda n: POOL.replace("spec: {", 'spec: {nodeSelector: "' + "a == 'b' || " * n + 'has(a)", ').replace("name: a", "name: b"),
        "a deep selector": lambda n: POOL.replace("spec: {", 'spec: {nodeSelector: "' + "(" * n + '", ').replace("name: a", "name: b"),
        "a wrong selector": lambda n: POOL.replace("spec: {", 'spec: {nodeSelector: "' + "\\u0061" * n + ' =", ').replace("name: a", "name: b"),
        "wrong selectors": lambda n: "---\n".join(POOL.replace("spec: {", "spec: {nodeSelector: '" + "a" * 100 + " =', ") for _ in range(n)),
        "pools of one name": lambda n: "---\n".join([POOL] * n),
        "wrong pools": lambda n: "---\n".join([POOL.replace("blockSize: 26", "blockSize: x")] * n),
        "ranges of text": lambda n: POOL.replace("10.0.0.0/8", "a, " * n + "a").replace("name: a", "name: b"),
        "ranges twice": lambda n: POOL.replace("10.0.0.0/8", "10.0.0.0/8, " * n + "10.0.0.0/8").replace("name: a", "name: b"),
        "ranges that differ": lambda n: POOL.replace("10.0.0.0/8", ", ".join(f"fd00:{i // 65536:x}:{i % 65536:x}::/64" for i in range(n)) or "a").replace("name: a", "name: b"),
        "overflows": lambda n: POOL.replace("spec: {", "spec: {overflow: [" + ", ".join(f"a{i}" for i in range(n)) + "], ").replace("name: a", "name: b"),
        "overflows of mappings": lambda n: POOL.replace("spec: {", "spec: {overflow: [" + ", ".join(f"{{a: {i}}}" for i in range(n)) + "], ").replace("name: a", "name: b"),
        "autoCreate of text": lambda n: "apiVersion: ipamc/v1alpha1\nkind: Cluster\nmetadata: {name: b}\nspec: {ipam: {autoCreate: [" + "'', " * n + "]}}\n",
        "block sizes": lambda n: POOL.replace("spec: {", "spec: {blockSizes: [" + "{}, " * n + "], ").replace("name: a", "name: b"),
        "families": lambda n: "apiVersion: ipamc/v1alpha1\nkind: Cluster\nmetadata: {name: b}\nspec: {ipFamilies: [" + "IPv4, " * n + "]}\n",
        "targets": lambda n: "apiVersion: ipamc/v1alpha1\nkind: Cluster\nmetadata: {name: b}\nspec: {targets: [" + "a, " * n + "]}\n",
        "kinds": lambda n: "".join(f"---\napiVersion: ipamc/v1alpha1\nkind: Clust{i}\n" for i in range(n)),
        "a long kind": lambda n: "apiVersion: ipamc/v1alpha1\nkind: " + "Cluster" * n + "\n",
        "a list of lists": lambda n: "apiVersion: v1\nkind: List\nitems:\n" + "- {apiVersion: v1, kind: List, items: []}\n" * n,
        "nested lists": lambda n: "apiVersion: v1\nkind: List\nitems:\n" + "- {apiVersion: v1, kind: List, items: [" + "{}," * n + "]}\n",
        "a list of wrong items": lambda n: "apiVersion: v1\nkind: List\nitems:\n" + "- 1\n" * n,
        "a list of Nodes without names": lambda n: "apiVersion: v1\nkind: NodeList\nitems:\n" + "- {}\n" * n,
        "wide characters": lambda n: NODES + "- name: " + "\U0001f600" * n + "\n",
        "a list of ambiguous scalars": lambda n: "apiVersion: v1\nkind: NodeList\nitems:\n" + "- {a: y}\n" * n,
        "keys that are sequences": lambda n: "? [" + "a, " * n + "]\n: a\n",
        "no UTF-8": lambda n: NODES + "- name: a\n" * n + "\udc80",
    }  # fmt: skip


def _json() -> dict[str, Text]:
    return {
        "nodes": lambda n: JSON_HEAD + "[" + ",".join(f'{{"name":"node-{i}","labels":{{"rack":"r{i % 40}"}}}}' for i in range(n)) + "]}",
        "Nodes": lambda n: LIST + ",".join(f'{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n{i}"}},"status":{{"images":[{{"names":["a","b"],"sizeBytes":1}}]}}}}' for i in range(n)) + "]}",
        "a lone surrogate beside a number": lambda n: '{"a":"\\ud800","b":' + "1" * n + "}",
        "a lone surrogate beside digits and dots": lambda n: '{"a":"\\ud800","b":' + "1." * n + "}",
        "a lone surrogate after backslashes": lambda n: '{"b":"' + "\\\\" * n + '","a":"\\ud800"}',
        "a lone surrogate after escapes": lambda n: '{"b":"' + "\\u0041" * n + '","a":"\\ud800"}',
        "a lone surrogate after pairs": lambda n: '{"b":"' + "\\ud83d\\ude00" * n + '","a":"\\ud800"}',
        "a long number": lambda n: '{"b":' + "1" * n + "}",
        "a long number in a node": lambda n: JSON_HEAD + '[{"name":"a","maxPods":' + "1" * n + "}]}",
        "a long fraction": lambda n: JSON_HEAD + '[{"name":"a","maxPods":1.' + "1" * n + "}]}",
        "a long exponent": lambda n: JSON_HEAD + '[{"name":"a","maxPods":1e' + "1" * n + "}]}",
        "long numbers": lambda n: JSON_HEAD + "[" + ",".join(["1" + "0" * 300] * n) + "]}",
        "numbers with exponents": lambda n: JSON_HEAD + "[" + ",".join(["1e5"] * n) + "]}",
        "numbers with a key twice": lambda n: JSON_HEAD + '[{"a":1,"a":1},' + ",".join(["1" * 4000] * (n // 4000 + 1)) + "]}",
        "deep": lambda n: "[" * n,
        "deep and closed": lambda n: "[" * n + "]" * n,
        "deep mappings": lambda n: '{"a":' * n,
        "deep at 99": lambda n: "[" + ",".join(["[" * 97 + "]" * 97] * (n // 97 + 1)) + "]",
        "deep at 99 in a list": lambda n: LIST + ",".join(["[" * 97 + "]" * 97] * (n // 97 + 1)) + "]}",
        "deep at 99 in nodes": lambda n: JSON_HEAD + "[" + ",".join(["[" * 97 + "]" * 97] * (n // 97 + 1)) + "]}",
        "deep at 99 and wide": lambda n: "[" * 97 + "1," * n + "1" + "]" * 97,
        "deep at 99 of wide": lambda n: "[" * 97 + "[],[]," * n + "1" + "]" * 97,
        "deep after a flaw": lambda n: '{"a":1,"a":2,"b":' + "[" * 90 + "1," * n + "1" + "]" * 90 + "}",
        "items": lambda n: LIST + ",".join(["1"] * n) + "]}",
        "items of nothing": lambda n: LIST + ",".join(["{}"] * n) + "]}",
        "items of a list": lambda n: LIST + ",".join(['{"apiVersion":"v1","kind":"List","items":[]}'] * n) + "]}",
        "items with escapes": lambda n: LIST + ",".join(['{"apiVersion":"v1","kind":"Node","metadata":{"name":"\\u0041"}}'] * n) + "]}",
        "wrong nodes": lambda n: JSON_HEAD + "[" + ",".join(['{"nome":"a"}'] * n) + "]}",
        "numbers for nodes": lambda n: JSON_HEAD + "[" + ",".join(["1"] * n) + "]}",
        "empty nodes": lambda n: JSON_HEAD + "[" + ",".join(["{}"] * n) + "]}",
        "unknown fields": lambda n: JSON_HEAD + '[{"name":"a",' + ",".join(f'"a{i}":1' for i in range(n)) + "}]}",
        "numbers for labels": lambda n: JSON_HEAD + '[{"name":"a","labels":{' + ",".join(f'"a{i}":1' for i in range(n)) + "}}]}",
        "bad labels": lambda n: JSON_HEAD + '[{"name":"a","labels":{' + ",".join(f'"a{i}":"?"' for i in range(n)) + "}}]}",
        "keys twice": lambda n: JSON_HEAD + '[{"name":"a",' + ",".join(['"x":1'] * n) + "}]}",
        "mappings with a key twice": lambda n: JSON_HEAD + "[" + ",".join(['{"x":1,"x":1}'] * n) + "]}",
        "items with a key twice": lambda n: LIST + ",".join(['{"x":1,"x":1}'] * n) + "]}",
        "members": lambda n: "{" + ",".join(f'"a{i}":1' for i in range(n)) + "}",
        "items twice": lambda n: '{"kind":"List","apiVersion":"v1",' + ",".join(['"items":[]'] * n) + "}",
        "a long key": lambda n: '{"' + "a" * n + '":1}',
        "a long string": lambda n: JSON_HEAD + '[{"name":"' + "a" * n + '"}]}',
        "escapes": lambda n: JSON_HEAD + '[{"name":"' + "\\u0041" * n + '"}]}',
        "blanks": lambda n: " " * n + JSON_HEAD + "[]}",
        "blanks inside": lambda n: JSON_HEAD + " " * n + "[]" + "\n" * n + "}" + "\n" * n,
        "trailing garbage": lambda n: JSON_HEAD + "[]}" + "]" * n,
        "trailing values": lambda n: JSON_HEAD + "[]}" + "{}" * n,
        "an unfinished string": lambda n: JSON_HEAD + '"' + "a" * n,
        "an unfinished value": lambda n: JSON_HEAD + "[" + "1," * n,
        "NaN at the end": lambda n: JSON_HEAD + "[" + "1," * n + "NaN]}",
        "a comma at the end": lambda n: JSON_HEAD + "[" + '{"name":"a"},' * n + "]}",
        "not a mapping": lambda n: "[" + "1," * n + "1]",
    }  # fmt: skip


def _lock() -> dict[str, Text]:
    return {
        "lines": lambda n: LOCK + "".join(sorted(row(i) for i in range(n))),
        "wrong lines": lambda n: LOCK + "x\n" * n,
        "empty lines": lambda n: LOCK + "\n" * n,
        "a long line": lambda n: LOCK + "x" * n + "\n",
        "a long header": lambda n: LOCK[:-2] + " " * n + "}\n",
        "a long header of keys": lambda n: LOCK[:-2] + "".join(f',"a{i}":1' for i in range(n)) + "}\n",
        "a long cluster": lambda n: LOCK.replace("bench", "b" * n),
        "a long number in the header": lambda n: LOCK.replace('"shards":1', '"shards":1' + "0" * n),
        "a deep header": lambda n: LOCK.replace('"bench"', "[" * n),
        "deep lines": lambda n: LOCK + '{"block":' + "[" * n + "\n",
        "lines twice": lambda n: LOCK + row(0) * n,
        "lines of one node": lambda n: LOCK + "".join(row(i, node="a") for i in range(n)),
        "lines in disorder": lambda n: LOCK + "".join(row(n - i) for i in range(n)),
        "nested lines": lambda n: LOCK + "".join(f'{{"block":"10.0.0.0/{8 + i % 20}","pool":"a","node":"n{i}"}}\n' for i in range(n)),
        "conflict markers": lambda n: LOCK + "<<<<<<<\n" * n,
        "wrong days": lambda n: LOCK + "".join(row(i, quarantined="x") for i in range(n)),
        "no UTF-8": lambda n: LOCK + "\udc80" * n + "\n",
        "wrong blocks": lambda n: LOCK + "".join(row(i, block="::/1:") for i in range(n)),
        "long blocks": lambda n: LOCK + "".join(row(i, block=":" * 1000) for i in range(n // 1000 + 1)),
        "a long block": lambda n: LOCK + row(0, block=":" * n),
        "one line cut off": lambda n: LOCK + "".join(row(i) for i in range(n)) + "x",
        "no newline": lambda n: LOCK[:-1] + " " * n,
    }  # fmt: skip


def _files() -> dict[str, Callable[[int], Files]]:
    """Return shapes of many files."""
    return {
        "files: empty": lambda n: {"pool.yaml": POOL, **{f"{i}.yaml": " " * 1000 for i in range(n // 8)}},
        "files: unknown kinds": lambda n: {"pool.yaml": POOL, **{f"{i}.yaml": INPUT_FLAW + "#" * 1000 for i in range(n // 8)}},
        "files: pools of one name": lambda n: {f"{i}.yaml": POOL + "#" * 1000 for i in range(n // 8)},
        "files: wrong lists and a large one": lambda n: {
            "nodes.json": JSON_HEAD + "[" + ",".join(f'{{"name":"node-{i}"}}' for i in range(n)) + "]}",
            **{f"{i}.yaml": INPUT_FLAW for i in range(n // 64)},
        },
    }  # fmt: skip


def shapes() -> dict[str, Callable[[int], Files]]:
    """Return the shapes by name."""
    return {
        **{f"YAML: {name}": yaml(text) for name, text in _yaml().items()},
        **{f"JSON: {name}": as_json(text) for name, text in _json().items()},
        **{f"lock: {name}": lock(text) for name, text in _lock().items()},
        **_files(),
    }
