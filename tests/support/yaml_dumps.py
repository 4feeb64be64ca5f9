"""Nodes as `kubectl get nodes -o yaml` prints them, with all that nobody reads, and other lines to put between."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

Object = dict[str, Any]
_SAFE = re.compile(r"[A-Za-z][A-Za-z0-9 ._/@:=,()-]*[A-Za-z0-9]|[A-Za-z.]").fullmatch


def node(number: int, **changes: Any) -> Object:
    """Return a full Node. `changes` are `labels`, `annotations`, `managed`, `message`, `kind` and so on."""
    name = f"node-{number}"
    labels = {"kubernetes.io/hostname": name, "rack": f"r{number % 2}", **changes.get("labels", {})}
    types = ("MemoryPressure", "Ready")
    managed = [
        {
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, **{f"f:{key}": {} for key in labels}}},
                "f:spec": {"f:podCIDR": {}, "f:podCIDRs": {".": {}, f'v:"10.0.{number}.0/24"': {}}},
                "f:status": {
                    "f:conditions": {f'k:{{"type":"{name}"}}': {".": {}, "f:reason": {}} for name in types}
                },
            },
            "manager": manager,
            "operation": "Update",
            "time": f"2026-11-22T12:00:{number:02d}Z",
        }
        for manager in ("kubelet", "kube-controller-manager")
    ]
    return {
        "apiVersion": "v1",
        "kind": changes.get("kind", "Node"),
        "metadata": {
            "annotations": {"node.alpha.kubernetes.io/ttl": "0", **changes.get("annotations", {})},
            "labels": labels,
            "managedFields": changes.get("managed", managed),
            "name": name,
            "ownerReferences": [{"kind": "NodeClaim", "uid": f"8ff9-{number}"}],
            "uid": f"uid-{number}",
        },
        "spec": {"podCIDRs": [f"10.0.{number}.0/24"]},
        "status": {
            "addresses": [{"address": f"192.168.0.{number}", "type": "InternalIP"}],
            "allocatable": {"cpu": "4", "memory": f"{number}9Ki", "pods": str(changes.get("pods", 110))},
            "capacity": {"cpu": "4", "memory": f"{number}8Ki", "pods": "110"},
            "conditions": [
                {
                    "lastHeartbeatTime": f"2026-11-22T12:00:{number:02d}Z",
                    "message": changes.get("message", "kubelet is posting ready status"),
                    "reason": changes.get("reason", f"Kubelet{name}"),
                    "status": "True" if name == "Ready" else "False",
                    "type": name,
                }
                for name in types
            ],
            "images": [
                {
                    "names": [f"registry.k8s.io/pause@sha256:{number}f", "pause:3.10"],
                    "sizeBytes": 320 + number,
                }
            ],
            "nodeInfo": {
                "bootID": f"{number}a-b",
                "kernelVersion": "6.1",
                "osImage": "Debian GNU/Linux 12 (bookworm)",
            },
            "volumesInUse": [f"kubernetes.io/csi/x^vol-{number}"],
        },
    }


def text(value: Any, *, deeper: bool = False, indent: int = 0) -> str:
    """Return a value in block style; with `deeper`, lists are indented below their key."""
    return "".join(line + "\n" for line in _lines(value, indent, deeper))


def _lines(value: Any, indent: int, deeper: bool) -> Iterator[str]:  # noqa: FBT001 - it is not for callers
    blanks = " " * indent
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _member(f"{blanks}{_scalar(key, 200)[0]}:", member, indent, deeper)
    else:
        for member in value:
            if isinstance(member, dict | list) and member:
                first, *rest = _lines(member, indent + 2, deeper)
                yield f"{blanks}- {first[indent + 2 :]}"
                yield from rest
            else:
                yield from _member(f"{blanks}-", member, indent, deeper)


def _member(before: str, member: Any, indent: int, deeper: bool) -> Iterator[str]:  # noqa: FBT001 - the same
    if isinstance(member, dict | list) and member:
        yield before
        below = indent if isinstance(member, list) and not deeper else indent + 2
        yield from _lines(member, below, deeper)
    else:
        first, *rest = _scalar(member, 80 - len(before))
        yield f"{before} {first}"
        yield from (f"{' ' * (indent + 2)}{line}" for line in rest)


def _scalar(value: Any, width: int) -> list[str]:
    """Return the lines of a scalar: plain ones are folded, as go-yaml does."""
    if isinstance(value, dict | list):
        return ["{}" if isinstance(value, dict) else "[]"]
    if not isinstance(value, str):
        return ["null" if value is None else str(value).lower()]
    if value.startswith(("v:", "k:")):
        return [value]
    if _SAFE(value) and ": " not in value and value not in {"True", "False"}:
        lines = [""]
        for word in value.split(" "):
            if lines[-1] and len(lines[-1]) > width:
                lines.append("")
            lines[-1] += (" " if lines[-1] else "") + word
        return lines
    if value[:1].isdigit() or value in {"", "True", "False"}:
        return [f'"{value}"']
    return ["'" + value.replace("'", "''") + "'"]


INVENTORY = {
    "apiVersion": "ipamc/v1alpha1",
    "kind": "NodeInventory",
    "nodes": [{"name": "own", "labels": {"rack": "r1", "images": "x"}}],
}
CALICO = {
    "apiVersion": "projectcalico.org/v3",
    "kind": "IPPool",
    "metadata": {"managedFields": [{"manager": "kubectl"}], "name": "pool"},
    "spec": {"cidr": "10.8.0.0/16"},
}
CILIUM = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumNode",
    "metadata": {"managedFields": [{"manager": "cilium"}], "name": "node-1"},
    "spec": {"ipam": {"podCIDRs": ["10.0.1.0/24"]}},
    "status": {"images": [{"names": ["a"], "sizeBytes": 1}]},
}
LONG = "a message that go-yaml folds because it is longer than eighty characters on a line in total, at some space"
_CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.sampled_from(
            ({"managedFields": "x"}, {"images": ""}, {"status": "y"}, {"conditions": "é"})
        ),
        "annotations": st.sampled_from(
            (
                {"network.cilium.io/x": "y"},
                {"managedFields": "- a: b"},
                {"json": '{"a":"b","c":[1]}'},
                {"text": LONG},
                {"odd": None},
            )
        ),
        "message": st.sampled_from(
            (LONG, "", "it's", 'a "quote": here', "# no comment", "é", "110%", "2026-11-22")
        ),
        "reason": st.sampled_from(("CiliumIsUp", "y", "", "1e3")),
        "pods": st.sampled_from((110, 14, "1k", "")),
        "managed": st.sampled_from(
            (
                [],
                {},
                [{}],
                ["x"],
                [{"a": [{"b": []}, "c"]}],
                [{"manager": LONG}],
                {"a": {"b": "c"}},
                "text",
                None,
            )
        ),
        "kind": st.sampled_from(("CiliumNode", "Pod", "NodeList", "IPPool")),
    },
)


@st.composite
def dumps(draw: st.DrawFn) -> str:
    """Draw a List as kubectl prints it, or documents one after another, of nodes and some other objects."""
    objects: list[Mapping[str, Any]] = [
        node(draw(st.integers(0, 9)), **draw(st.one_of(st.just({}), _CHANGES)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    objects += draw(st.lists(st.sampled_from((CALICO, CILIUM, INVENTORY)), max_size=1))
    deeper = draw(st.booleans())
    if draw(st.integers(0, 3)):
        kind = draw(st.sampled_from(("List", "List", "List", "NodeList", "NodeInventory")))
        version = draw(st.sampled_from(("v1", "v1", "v1", "ipamc/v1alpha1")))
        return text({"apiVersion": version, "items": objects, "kind": kind, "metadata": {}}, deeper=deeper)
    return "---\n".join(text(each, deeper=deeper) for each in objects)


PIECES = (
    "# comment", "- x", "-", "-x: y", "a: b", "name: other", "managedFields:", "images:", "conditions:", "? a", ": b", "<<: {}", "<<: *a",
    "a: &a b", "a: *a", "*a : b", "&a b: c", "!!str a: b", "a: !x b", "a: !!map", "a: |", "a: >-", "text: 'open", 'text: "open', "'", '"',
    "a: {", "a: [", "}", "]", "{a: b}", "[a, b]", "time: {a: b}", "---", "...", "--- a", "%TAG ! a", "%YAML 1.1", "\tx: y", "a:\tb", "a: b\r", "\r",
    "a:", "a: b: c", "a: b # c", "a: 'x' y", "'a': b", '"time": x', 'v:"1": {}', '"v:\\"10.0.1.0/24\\"": {}', "'v:\"10.0.1.0/24\"': {}",
    'v:"10.0.1.0/24": {}', "pods: 3", '"pods": "3"', "pods : 3", '"p\\x6fds": "3"', "? pods", "type: Ready", "'reason': 'CiliumIsUp'",
    "", "  ", "é: é", "\ufeff", "\u2028", "\x85", "\x00", "x" * 90,
)  # fmt: skip


@st.composite
def hostile(draw: st.DrawFn, given: str) -> str:
    """Draw a dump with some lines put in, ended otherwise, taken out, doubled, moved or moved in."""
    lines = given.split("\n")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        blanks = " " * (
            len(lines[at]) - len(lines[at].lstrip(" ")) + draw(st.sampled_from((0, 0, 0, 2, -2, 1, -1, -9)))
        )
        piece = draw(st.sampled_from(PIECES))
        match draw(st.integers(0, 8)):
            case 0 | 1:
                lines.insert(at, blanks + piece)
            case 2:
                lines.insert(at, blanks + "- " + piece)
            case 3:
                lines[at] += piece
            case 4:
                lines[at] = lines[at].partition(":")[0] + ": " + piece
            case 5:
                to = draw(st.integers(0, len(lines)))
                lines.insert(to, lines[at])
            case 6:
                lines[at] = blanks + lines[at].lstrip(" ")
            case 7:
                size = draw(st.integers(1, 12))
                lines[at:at] = lines[at : at + size]
            case _:
                del lines[at : at + draw(st.integers(1, 9))]
    return "\n".join(lines)


@st.composite
def damaged(draw: st.DrawFn, given: bytes) -> bytes:
    """Draw a dump with some bytes changed, put in or taken out."""
    data = bytearray(given)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        new = draw(
            st.sampled_from([b"", *(bytes([each]) for each in b"\n\r\t -:#&*!|>'\"%@`{}[],?x0~.\xc3\x85")])
        )
        data[at : at + draw(st.integers(0, 2))] = new
    return bytes(data)
