"""Reads an inventory of Ansible as kubespray does, YAML or INI: its nodes with their labels.

Nothing is evaluated, and no other file is read. A group's variables give way to those of groups inside it and
to the host's (ansible/inventory/group.py). A node is called as its host, and `node_labels`, if they are a
mapping, are its labels (kubespray, roles/kubernetes/node-label/tasks/main.yml).
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from ipamc.model.diagnostics import At, Diagnostic, Log, Place, Refused, Span
from ipamc.model.limits import MOST_NODES
from ipamc.model.wording import shown
from ipamc.read.locate import Texts, locate
from ipamc.read.node_names import PatternError, names, parse, size
from ipamc.read.rules import unreadable, wrong_shape
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.text import decode
from ipamc.read.syntax.yaml import yaml_documents

_NODES = ("kube_node", "kube_control_plane", "k8s_cluster", "kube-node", "kube-master", "k8s-cluster")
_OTHERS = {"etcd", "bastion", "calico_rr", "calico-rr"}
"""Groups inside k8s_cluster whose hosts are no nodes by that."""
_PARTS, _LABELS = ("hosts", "children", "vars"), "node_labels"
_SECTION = re.compile(r"\s*\[([^:\]\s]+)(?::(\w+))?\]\s*(?:#.*)?").fullmatch
IS_INVENTORY = re.compile(
    rb"^(?P<ini>\[[\w.-]+(:\w+)?\]\s*(#.*)?$)|^(all|k(8s|ube)[_-](cluster|node|master|control_plane)):\s",
    re.MULTILINE,
).search
"""Matches where a file begins that is an inventory."""
Hosts = Mapping[str, tuple[At, Mapping[str, str]]]
"""Hosts by name: their place, and their labels."""
_Entry = tuple[str, str, str, Any, At]
"""A group, its part, a host, group or variable there, the variables of that host or the value, the place."""


def read_inventory(path: str, data: bytes) -> tuple[Hosts, Sequence[Diagnostic]]:
    """Return the hosts that are nodes, and the warnings. Raises Refused for what Ansible would not read."""
    log = Log()
    try:
        text, found = decode(path, data), IS_INVENTORY(data)
        groups = (_groups(each.value, each.at, "") for each in yaml_documents(path, text))
        entries = _ini(path, text) if found and found["ini"] else chain.from_iterable(groups)
        hosts = _nodes(list(entries), log)
    except (Refused, Unreadable) as problem:
        raise Refused(locate(problem.diagnostics, {path: data})) from None
    texts = Texts({path: data}, [at for at, _ in hosts.values()])
    located = {host: (texts.span(at), labels) for host, (at, labels) in hosts.items()}
    return located, locate(log.diagnostics, {path: data})


def _nodes(entries: Iterable[_Entry], log: Log) -> Hosts:
    hosts, inside = defaultdict[str, dict[str, At]](dict), defaultdict[str, set[str]](set)
    of_groups, of_hosts = dict[str, dict[str, str]](), dict[str, dict[str, str]]()
    for group, part, name, value, at in entries:
        inside["all"] |= {group} - {"all"}
        if part == "children":
            inside[group].add(name)
        elif part == "hosts":
            hosts[group] |= (every := dict.fromkeys(_expanded(name, at), at))
            if _LABELS in value:
                of_hosts |= dict.fromkeys(every, _labels(value[_LABELS], at / _LABELS, log))
        elif name == _LABELS:
            of_groups[group] = _labels(value, at, log)
    depth, level = dict[str, int](), {"all"}
    for number in range(len(inside["all"]) + 1):
        depth |= dict.fromkeys(level, number)
        level = {child for group in level for child in inside[group]}
    log.add(
        wrong_shape(at, f"group {shown(name)} {'is inside itself' if name in level else 'has no section'}")
        for _, part, name, _, at in entries
        if part == "children" and (name in level or name not in inside["all"])
    )

    below = dict[str, dict[str, At]]()
    """The hosts of a group and of the groups inside it."""
    for group in sorted(depth, key=lambda name: (-depth[name], name)):
        below[group] = dict(hosts[group])
        for name in sorted(inside[group] - (_OTHERS if group.startswith("k8s") else set())):
            below[group] |= below[name]
    labels = dict[str, dict[str, str]]()
    for group in sorted(of_groups, key=lambda name: (depth[name], name)):
        labels |= dict.fromkeys(below[group], of_groups[group])
    labels |= of_hosts
    nodes = {host: at for group in _NODES for host, at in below.get(group, {}).items()}
    return {host: (at, labels.get(host, {})) for host, at in nodes.items()}


def _ini(path: str, text: str) -> Iterator[_Entry]:
    group, part = "ungrouped", "hosts"
    for number, source in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        line, at = source.strip(), Span(path, number, 1, len(source) + 1, source)
        if not line or line[0] in "#;":
            continue
        if section := _SECTION(line):
            group, part = section[1], section[2] or "hosts"
            yield group, "", "", None, at
            continue
        try:
            name, *words = line.split("=", 1) if part == "vars" else shlex.split(line, comments=True)
            value = words[0].strip() if part == "vars" else dict(word.split("=", 1) for word in words)
        except (ValueError, IndexError):
            part = ""
        if part not in _PARTS or (part == "children" and value):
            raise Unreadable(wrong_shape(at, f"the line does not fit its section of {group}"))
        yield group, part, name.strip(), value, at


def _groups(value: Any, at: Place, parent: str) -> Iterator[_Entry]:
    for name, group in _members(value, at):
        yield name, "", "", None, at
        yield from [(parent, "children", name, None, at / name)] if parent else ()
        for part, members in _members(group, at / name):
            here = at / name / part
            if part == "children":
                yield from _groups(members, here, name)
            elif part not in _PARTS:
                raise Unreadable(wrong_shape(here, f"a group has {', '.join(_PARTS)}, not {part}"))
            else:
                for each, given in _members(members, here):
                    known = given if part == "vars" else dict(_members(given, here / each))
                    yield name, part, each, known, here / each


def _members(value: Any, at: Place) -> Iterable[tuple[str, Any]]:
    if value is not None and not isinstance(value, dict):
        raise Unreadable(wrong_shape(at, "the value is not a mapping"))
    return (value or {}).items()


def _expanded(pattern: str, at: At) -> list[str]:
    """Return the hosts of `node[01:10]:22`."""
    pattern = re.sub(r":\d+$", "", pattern)
    if "[" not in pattern:
        return [pattern]
    with suppress(PatternError):
        parts = parse(re.sub(r"\[(\w+):(\w+)\]", r"{\1..\2}", pattern))
        if size(parts) <= MOST_NODES:
            return names(parts)
    fix = "write a range as [01:10] or [a:f], or list the hosts"
    raise Unreadable(wrong_shape(at, f"{shown(pattern)} is not a supported range of hosts", fix))


def _labels(value: Any, at: At, log: Log) -> dict[str, str]:
    """Return the labels of `node_labels` that are texts or numbers; add the others to `log`."""
    if isinstance(value, str) and isinstance(at, Span):  # INI
        with suppress(Unreadable):
            value = next((each.value for each in yaml_documents(at.path, value.strip("\"'"))), None)
    found = {}
    for key, each in value.items() if isinstance(value, dict) else [("", value)]:
        if key and type(each) in {str, int} and "{{" not in str(each):
            found[key] = str(each)
            continue
        odd = (
            f"{key} {shown(str(each))}, which is {'a template' if '{{' in str(each) else 'not text'}".strip()
        )
        fix = "write the label into machines.yaml, because ipamc does not evaluate Ansible"
        log.add([unreadable(at / key if key else at, _LABELS, [odd], fix)])
    return found
