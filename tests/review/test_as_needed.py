"""What `show`, `which` and `why` leave unread changes no answer: laws over clusters in files of any arrangement."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ipamc.lock.utilisation import utilisation
from ipamc.model.cidr import parse_block
from ipamc.model.diagnostics import Diagnostic, Refused
from ipamc.model.lock import Line
from ipamc.pipeline import Inputs, load_cluster
from ipamc.read.locate import Texts
from ipamc.report import explanation
from ipamc.review.as_needed import (
    enough_for_addresses,
    enough_for_started,
    enough_for_use,
    load_without_nodes,
    started_with,
)
from ipamc.review.explain_address import explain_address
from ipamc.review.explain_node import (
    ExplainedNode,
    explain_alone,
    explain_among_all,
    explain_node,
    explain_one,
)
from tests.support import dumps, fleet
from tests.test_laws import clusters

Made = tuple[dict[str, bytes], str | None]
"""Files by path, and a lock."""
TODAY = "2026-11-22"
FOLDER = "clusters/fleet"
NAMES = ("a", "ab", "a0", "b", "c", "bc0", "ghost", "note")
"""What is asked about, beside the nodes that there are."""
NOISE = (
    "",
    "ready",
    "it's 5\" wide",
    "\n- kind: Node\n  metadata: {name: ghost}\n",
    "kind: IPPool",
    "kind-worker of this kind",
    "a" * 90 + " - name: a\nnodes:\n- name: b",
    '{"kind":"Node","metadata":{"name":"a"}}',
    "größe \N{LINE SEPARATOR}- name: a",
    "{[ open",
    "& *a",
)
"""Annotations that look like something else."""


class _Indented(yaml.SafeDumper):
    """Writes lists as people do: deeper than their key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - yaml's
        super().increase_indent(flow, indentless=False)


class _Plain(yaml.SafeDumper):
    """Writes no aliases, as kubectl."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - yaml's
        return True


def _yaml(documents: list[Any], **style: Any) -> str:
    return str(yaml.dump_all(documents, **{"Dumper": _Plain, "sort_keys": False, **style}))


STYLES: Mapping[str, Callable[[list[Any]], str]] = {
    "kubectl": lambda documents: _yaml(documents, sort_keys=True),
    "people": lambda documents: _yaml(documents, Dumper=_Indented, width=1000),
    "flow": lambda documents: _yaml(documents, default_flow_style=True),
    "mixed": lambda documents: _yaml(documents, default_flow_style=None),
    "quoted": lambda documents: _yaml(documents, default_style='"', width=30),
    "unicode": lambda documents: _yaml(documents, allow_unicode=True, explicit_start=True),
    "aliases": lambda documents: _yaml(documents, Dumper=yaml.SafeDumper),
    "crlf": lambda documents: _yaml(documents, line_break="\r\n"),
    "comments": lambda documents: (
        "# nodes:\n" + _yaml(documents, width=40).replace("\n- ", "\n# - name: a\n- ")
    ),
}
JSON_STYLES: Mapping[str, Callable[[Any], str]] = {
    "minified": lambda document: json.dumps(document, separators=(",", ":")),
    "indented": lambda document: json.dumps(document, indent=4, ensure_ascii=False) + "\n",
    "escaped": lambda document: json.dumps(document).replace("a", "\\u0061").replace("I", "\\u0049"),
}


def node_object(entry: Mapping[str, Any], noise: str) -> dict[str, Any]:
    """Turn an entry of a NodeInventory into a v1 Node."""
    labels = dict(entry["labels"])
    annotations = {"note": noise} if noise else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "annotations": annotations,
            "labels": labels,
            "name": entry["name"],
            "uid": f"u-{entry['name']}",
        },
        "spec": {"podCIDRs": entry["podCIDRs"]} if entry.get("podCIDRs") else {},
        "status": {"conditions": [{"type": "Ready", "status": "True", "message": noise}]},
    }


def cilium_node(name: str, mode: str, lines: Iterable[Line]) -> dict[str, Any]:
    """Make a CiliumNode that shows the blocks of some lines."""
    allocated = [{"pool": line.pool, "cidrs": [str(line.block)]} for line in lines]
    multi = {"pools": {"allocated": allocated}}
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNode",
        "metadata": {"name": name},
        "spec": {
            "ipam": multi if mode == "multi-pool" else {"podCIDRs": [str(line.block) for line in lines]}
        },
    }


@st.composite
def arranged(draw: st.DrawFn, documents: list[Any]) -> dict[str, bytes]:
    """Put documents into files: alone, in streams, in lists, with nodes in any dialect, in any style."""
    *others, inventory = documents
    entries, objects = [], []
    for entry in inventory["nodes"]:
        if draw(st.booleans()):
            entries.append(entry)
        else:
            objects.append(node_object(entry, draw(st.sampled_from(NOISE))))
    every = draw(st.permutations([*others, *objects, *([fleet.inventory(entries)] if entries else [])]))
    files: dict[str, bytes] = {}
    while every:
        size = draw(st.integers(1, len(every)))
        some, every = list(every[:size]), every[size:]
        if len(some) > 1 and draw(st.booleans()):
            some = [{"apiVersion": "v1", "items": some, "kind": "List", "metadata": {"resourceVersion": ""}}]
        if len(some) == 1 and draw(st.booleans()):
            text = JSON_STYLES[draw(st.sampled_from(sorted(JSON_STYLES)))](some[0])
            files[f"{FOLDER}/{len(files)}.json"] = text.encode()
        else:
            files[f"{FOLDER}/{len(files)}.yaml"] = STYLES[draw(st.sampled_from(sorted(STYLES)))](
                some
            ).encode()
    return files


@st.composite
def files(draw: st.DrawFn) -> Made:
    """Make a cluster with a lock that is up to date, or of other nodes; some nodes show blocks, or are there twice."""
    documents = draw(clusters())
    *others, inventory = documents
    nodes = inventory["nodes"]
    now = [node for node in nodes if draw(st.integers(0, 7))]
    try:
        compiled = fleet.compiled(fleet.as_json(documents))
        if draw(st.booleans()):
            then = [node for node in nodes if draw(st.integers(0, 7))]
            first = fleet.compiled(fleet.as_json([*others, fleet.inventory(then)]))
            compiled = fleet.compiled(fleet.as_json(documents), first.lock)
            now = nodes if draw(st.booleans()) else now
    except Refused:
        assume(False)
    mode = documents[0]["spec"]["ipam"]["mode"]
    names = sorted(compiled.plan.held)
    seen = [
        cilium_node(name, mode, compiled.plan.held[draw(st.sampled_from([name, name, name, *names]))])
        for name in names
        if draw(st.booleans())
    ]
    if now and draw(st.integers(0, 9)) == 0:
        now = [*now, draw(st.sampled_from(now))]
    sources = draw(arranged([*others, *seen, fleet.inventory(now)]))
    lock = compiled.lock if draw(st.integers(0, 9)) else None
    return sources, lock


def inputs(made: Made) -> Inputs:
    """Return the inputs of a cluster that was made up."""
    sources, lock = made
    return Inputs(
        name="fleet",
        folder=FOLDER,
        sources=sources,
        lock_path=f"{FOLDER}/ipam.lock",
        lock=lock.encode() if lock is not None else None,
        schemas=fleet.SCHEMAS,
        today=TODAY,
    )


def told(found: ExplainedNode, sources: Mapping[str, bytes]) -> tuple[str, Any]:
    """Return what `ipamc why` prints, with all places."""
    places = [
        *(pool.pool.selector_at for pool in found.pools),
        *(pool.size.at / "nodeSelector" for pool in found.pools if pool.size),
        *(at for at in (found.at, *(block.at for block in found.blocks)) if at),
    ]
    span = Texts(sources, places).span
    return explanation.text(found, "ipam.lock", span), explanation.record(found, "ipam.lock", span)


@pytest.mark.deep
@given(files())
def test_why_answers_as_if_it_had_read_all_nodes(made: Made) -> None:
    given = inputs(made)
    refused = _refusal(lambda: load_cluster(given))
    if refused:
        for name in NAMES:
            found = _refusal(partial(explain_one, given, name, TODAY))
            # It is refused as a whole, or other nodes are in error.
            assert found == refused or not (found or any(name in _words(finding) for finding in refused))
        return
    cluster, lock = load_cluster(given)
    for name in sorted({*NAMES, *(node.name for node in cluster.nodes)}):
        every, alone = explain_node(cluster, lock, name, TODAY), explain_one(given, name, TODAY)
        assert (told(every, given.sources) if every else None) == (told(*alone) if alone else None)


def _refusal(read: Callable[[], object]) -> tuple[Diagnostic, ...]:
    try:
        read()
    except Refused as refused:
        return refused.diagnostics
    return ()


def _words(finding: Diagnostic) -> set[str]:
    return set(re.split("[^a-z0-9.-]+", finding.message))


@pytest.mark.deep
@given(files())
def test_a_node_alone_is_explained_as_among_all(made: Made) -> None:
    given = inputs(made)
    try:
        cluster, lock = load_cluster(given)
    except Refused:
        return
    for node in cluster.nodes:
        alone = explain_alone(cluster, lock, node.name, TODAY)
        every = explain_among_all(cluster, lock, node.name, TODAY)
        assert every
        if alone and not any("next compile is refused" in note for note in every.notes):
            newcomers = {node.name for node in cluster.nodes} - {line.node for line in lock.lines}
            if newcomers:  # which may fill a pool
                alone, every = _without_room(alone), _without_room(every)
            assert alone == every


def _without_room(found: ExplainedNode) -> ExplainedNode:
    return replace(
        found, pools=tuple(replace(pool, why=pool.why.split("; is full")[0]) for pool in found.pools)
    )


@pytest.mark.deep
@given(files(), st.sampled_from(["10.0.0.0/8", "10.3.0.0/25", "fd00::/16", "10.0.63.0/26", "10.1.0.64/26"]))
def test_show_and_which_answer_as_if_they_had_read_the_nodes(made: Made, asked: str) -> None:
    given = inputs(made)
    try:
        cluster, lock = load_cluster(given)
    except Refused:
        return
    used = load_without_nodes(given, enough_for_use)
    assert _uses(used.cluster, used.lock) == _uses(cluster, lock)
    assert used.lock.lines == lock.lines
    started = load_without_nodes(given, enough_for_started)
    assert started_with(started.cluster, started.lock) == started_with(cluster, lock)
    block = parse_block(asked, pods=False)
    over = load_without_nodes(given, enough_for_addresses)
    assert _unheld(over.cluster, over.lock, block, over.sources) == _unheld(
        cluster, lock, block, given.sources
    )


def test_a_seed_that_an_agent_gave_back_is_what_its_node_started_with() -> None:
    """With `pinning: node` the CiliumNode shows the block of its own pool, and none of a shared one."""
    documents = [
        fleet.cluster("multi-pool", ipam={"pinning": "node"}),
        fleet.pool("own", ipv4={"cidrs": ["10.1.0.0/24"], "blockSize": 26}),
        fleet.pool("shared", ipv4={"cidrs": ["10.5.0.0/24"], "blockSize": 26}),
        fleet.inventory([{"name": "a"}, {"name": "b"}]),
        dumps.cilium_node("a", allocated={"own.a": ["10.1.0.0/26"]}),
        dumps.cilium_node("b", allocated={"own.b": ["10.1.0.64/26"], "shared": ["10.5.0.64/26"]}),
    ]
    given = Inputs(
        name="fleet",
        folder=FOLDER,
        sources=fleet.as_json(documents),
        lock_path=f"{FOLDER}/ipam.lock",
        lock=fleet.compiled(fleet.as_json(documents[:-2])).lock.encode(),
        schemas=fleet.SCHEMAS,
        templates=fleet.TEMPLATES,
    )
    for cluster, lock, _ in (load_without_nodes(given, enough_for_started), (*load_cluster(given), ())):
        assert started_with(cluster, lock) == {parse_block("10.5.0.0/26")}


def _uses(cluster: Any, lock: Any) -> Any:
    uses = [
        (use.pool.name, use.family.family, use.use, [part.use for part in use.ranges])
        for use in utilisation(cluster, lock)
    ]
    return uses, started_with(cluster, lock)


def _unheld(cluster: Any, lock: Any, block: Any, sources: Mapping[str, bytes]) -> Any:
    some = explain_address(cluster, lock, block)
    span = Texts(sources, [unheld.at for unheld in some]).span
    return [(unheld[:4], span(unheld.at)) for unheld in some]
