"""What is rendered keeps its schema; a wrong template is found by the text that it makes, and nothing is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ipamc.cli import main
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Diagnostic, Span
from ipamc.model.plan import Plan
from ipamc.render.arrange import arrange
from ipamc.render.targets.context import File
from ipamc.render.verify import problems, samples, verify
from ipamc.render.yaml import emit
from ipamc.workspace import disk
from ipamc.workspace.disk import schemas
from tests.support import casefile
from tests.support.builders import TEMPLATES, node, plan, pool, rendered
from tests.support.examples import everything

SCHEMAS = disk.assets("schemas")
SUFFIX = ".emitted.json"
TARGETS = sorted(name.removesuffix(SUFFIX) for name in SCHEMAS if name.endswith(SUFFIX))


def schema_of(target: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(SCHEMAS[target + SUFFIX])
    return schema


# All that is ever rendered.


@cache
def texts() -> dict[str, dict[str, str]]:
    """Return every text that a cluster or a case renders, by target and by place."""
    found: dict[str, dict[str, str]] = {target: {} for target in TARGETS}
    for name, each in everything().items():
        for file in arrange(each.plan) if isinstance(each.plan.scheme, Cluster) else ():
            found[file.template.removesuffix(".yaml.j2")][f"{name}: {file.path}"] = each.files[file.path]
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_every_document_keeps_its_schema(target: str) -> None:
    """All of them and whole, by the validator that is the reference for JSON Schema in Python."""
    validator = Draft202012Validator(schema_of(target))
    documents = [
        (place, each)
        for place, text in texts()[target].items()
        for each in yaml.load_all(text, yaml.CSafeLoader)
    ]
    assert documents
    assert [
        (place, found.message) for place, each in documents for found in validator.iter_errors(each)
    ] == []


@pytest.mark.parametrize("target", TARGETS)
def test_a_sample_stands_where_its_document_stands(target: str) -> None:
    for place, text in texts()[target].items():
        known: list[str] = []
        for sample in samples(text, known):
            lines = dict(enumerate(text.splitlines()))
            assert all(line in {"", lines[number]} for number, line in enumerate(sample.splitlines())), place
            assert list(problems(place, sample, SCHEMAS[target + SUFFIX])) == []
        assert list(samples(text, known)) == []


# The schemas.


def test_every_template_has_a_schema() -> None:
    assert [f"{target}.yaml.j2" for target in TARGETS] == sorted(TEMPLATES)
    with pytest.raises(KeyError):
        list(verify([File("a.yaml", "a.yaml.j2", {})], {"a.yaml": "a: b\n"}, SCHEMAS, "rendered"))


def objects(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every part of a schema that says what an object is, by its path."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield path, schema
        for key, value in schema.items():
            yield from objects(value, f"{path}/{key}")
    elif isinstance(schema, list):
        for each in schema:
            yield from objects(each, path)


@pytest.mark.parametrize("target", TARGETS)
def test_schemas_are_strict(target: str) -> None:
    """An object has the fields that are listed and no other, or fields of the user's own names, all of one type."""
    schema = schema_of(target)
    Draft202012Validator.check_schema(schema)
    assert schema["title"]
    assert schema["description"].endswith(".")
    for path, each in objects(schema):
        assert (
            each.get("additionalProperties") is False
            or isinstance(each.get("additionalProperties"), dict)
            or not each["maxProperties"]
        ), path
        assert set(each.get("required", [])) <= set(each.get("properties", {})), path


def test_what_schemas_share_is_the_same_in_all() -> None:
    shared: dict[str, dict[str, Any]] = {}
    for target in TARGETS:
        for name, definition in schema_of(target).get("$defs", {}).items():
            assert shared.setdefault(name, definition) == definition, (target, name)


@given(st.sampled_from((4, 6)), st.integers(0, 128), st.integers(0, (1 << 128) - 1))
def test_every_block_is_a_cidr_of_its_family(family: int, length: int, number: int) -> None:
    prefix, bits = (length * 32 // 128, 32) if family == 4 else (length, 128)
    block = Block(family, number >> (128 - prefix) << (bits - prefix), prefix)
    assume(block.first >> 32 != 0xFFFF)  # IPv4-mapped: refused in any input
    definitions = {**schema_of("node")["$defs"], **schema_of("cilium_node")["$defs"]}
    assert {
        kind for kind in definitions if "cidr" in kind and re.search(definitions[kind]["pattern"], str(block))
    } == {
        "cidr",
        f"cidr{family}",
    }
    assert re.search(definitions["address"]["pattern"], str(block).partition("/")[0])


def test_they_are_not_for_editors() -> None:
    assert not any("emitted" in kind for kind in schemas())


# Templates that go wrong.

DUAL = pool("a", "10.0.0.0/16", "fd00::/112", size=28, size6=124, labels={"rack": "y"})
ONE = {"n1": ["10.0.1.0/28", "fd00::10/124"]}
MADE = {
    "kubernetes": plan("kubernetes", [DUAL], ONE, families=(4, 6)),
    "cluster-pool": plan(
        "cluster-pool", [DUAL, pool("b", "10.1.0.0/16")], ONE, families=(4, 6), managed_by="kustomize"
    ),
    "crd": plan("crd", [DUAL], ONE, families=(4, 6)),
    "multi-pool": plan("multi-pool", [DUAL, pool("b", "10.1.0.0/16", nodes="!has(x)")], ONE, families=(4, 6)),
    "auto-create": plan("multi-pool", [DUAL], ONE, families=(4, 6), auto_create=("a",)),
}


class Bug(NamedTuple):
    """A mistake in a template, and what is said about it."""

    made: str
    template: str
    old: str
    new: str
    said: tuple[str, ...]
    """`path:line: problem`, of every finding."""


BUGS = {
    "a comma between CIDRs": Bug(
        *("cluster-pool", "cilium_config", "{{ value }}", '{{ value | replace(" ", ",") }}'),
        (
            "cilium/configmap.yaml:3: data.cluster-pool-ipv4-cidr: '10.0.0.0/16,10.1.0.0/16' is not a valid cluster-pool-ipv4-cidr",
        ),
    ),
    "a truth value in a ConfigMap": Bug(
        *("cluster-pool", "cilium_config", "{{ value }}", '{{ value == "true" or value }}'),
        (
            'cilium/configmap.yaml:7: data.enable-ipv4: true is not one of "true" or "false"',
            'cilium/configmap.yaml:8: data.enable-ipv6: true is not one of "true" or "false"',
        ),
    ),
    "a number in a ConfigMap": Bug(
        *("cluster-pool", "cilium_config", "{{ value }}", "{{ value | int or value }}"),
        (
            'cilium/configmap.yaml:4: data.cluster-pool-ipv4-mask-size: 28 is not of type "string"',
            'cilium/configmap.yaml:6: data.cluster-pool-ipv6-mask-size: 124 is not of type "string"',
        ),
    ),
    "another grammar than the flag's": Bug(
        *("auto-create", "cilium_config", "{{ value }}", '{{ value | replace(";ipv6", " ipv6") }}'),
        (
            "cilium/configmap.yaml:3: data.auto-create-cilium-pod-ip-pools: 'a=ipv4-cidrs:10.0.0.0/16;ipv4-mask-size:28 ipv6-cidrs:fd00::/112 ipv6-mask-size:124' is not a valid auto-create-cilium-pod-ip-pools",
        ),
    ),
    "no prefix length": Bug(
        *("cluster-pool", "cilium_node", "for cidr in cidrs", "for cidr in ('10.0.1.0', 'fd00::10')"),
        (
            "ciliumnodes/000/ciliumnodes.yaml:8: spec.ipam.podCIDRs.0: '10.0.1.0' is not a valid cidr",
            "ciliumnodes/000/ciliumnodes.yaml:9: spec.ipam.podCIDRs.1: 'fd00::10' is not a valid cidr",
            "ciliumnodes/000/ciliumnodes.yaml:9: spec.ipam.podCIDRs.1: 'fd00::10' is not a valid cidr6",
        ),
    ),
    "IPv6 before IPv4": Bug(
        *("cluster-pool", "cilium_node", "for cidr in cidrs", "for cidr in cidrs | reverse"),
        ("ciliumnodes/000/ciliumnodes.yaml:9: spec.ipam.podCIDRs.1: '10.0.1.0/28' is not a valid cidr6",),
    ),
    "IPv6 before IPv4, single addresses": Bug(
        *("crd", "cilium_node", "for cidr in cidrs", "for cidr in cidrs | reverse"),
        ("ciliumnodes/000/ciliumnodes.yaml:9: spec.ipam.podCIDRs.1: '10.0.1.0/28' is not a valid cidr6",),
    ),
    "IPv6 before IPv4, in a seed": Bug(
        *("multi-pool", "cilium_node", "for cidr in blocks", "for cidr in blocks | reverse"),
        ("seeds/000.yaml:11: spec.ipam.pools.allocated.0.cidrs.1: '10.0.1.0/28' is not a valid cidr6",),
    ),
    "a second block of a family": Bug(
        *("cluster-pool", "cilium_node", "for cidr in cidrs", "for cidr in (cidrs[0], '10.0.9.0/28')"),
        ("ciliumnodes/000/ciliumnodes.yaml:9: spec.ipam.podCIDRs.1: '10.0.9.0/28' is not a valid cidr6",),
    ),
    "a misspelt key": Bug(
        *("cluster-pool", "cilium_node", "podCIDRs:", "podCidrs:"),
        (
            "ciliumnodes/000/ciliumnodes.yaml:7: spec.ipam.podCidrs: no such field",
            'ciliumnodes/000/ciliumnodes.yaml:7: spec.ipam: "podCIDRs" is a required property',
        ),
    ),
    "labels on a CiliumNode": Bug(
        *("cluster-pool", "cilium_node", "  name: {{ name }}", "  labels:\n    rack: r1\n  name: {{ name }}"),
        ("ciliumnodes/000/ciliumnodes.yaml:4: metadata.labels: no such field",),
    ),
    "an owner of a CiliumNode": Bug(
        *("cluster-pool", "cilium_node", "  name: {{ name }}", "  name: {{ name }}\n  ownerReferences: []"),
        ("ciliumnodes/000/ciliumnodes.yaml:5: metadata.ownerReferences: no such field",),
    ),
    "a namespace on a CiliumNode": Bug(
        *(
            "cluster-pool",
            "cilium_node",
            "  name: {{ name }}",
            "  name: {{ name }}\n  namespace: kube-system",
        ),
        ("ciliumnodes/000/ciliumnodes.yaml:5: metadata.namespace: no such field",),
    ),
    "a namespace on a CiliumPodIPPool": Bug(
        *("multi-pool", "pod_ip_pool", "  name: {{ name }}", "  name: {{ name }}\n  namespace: kube-system"),
        (
            "cilium/ippools.yaml:7: metadata.namespace: no such field",
            "cilium/ippools.yaml:22: metadata.namespace: no such field",
        ),
    ),
    "a namespace on a Node": Bug(
        *("kubernetes", "node", "  name: {{ name }}", "  name: {{ name }}\n  namespace: kube-system"),
        ("nodes/000/nodes.yaml:8: metadata.namespace: no such field",),
    ),
    "no namespace on a CiliumNodeConfig": Bug(
        *("multi-pool", "node_config", "  namespace: {{ namespace }}\n", ""),
        ('cilium/nodeconfigs.yaml:4: metadata: "namespace" is a required property',),
    ),
    "no value for an address": Bug(
        *("crd", "cilium_node", "{{ address }}: {}", "- {{ address }}"),
        (
            'ciliumnodes/000/ciliumnodes.yaml:11: spec.ipam.pool: ["10.0.1.1","10.0.1.2","fd00::11","fd00::12"] is not of type "object"',
        ),
    ),
    "podCIDRs without podCIDR": Bug(
        *("kubernetes", "node", "  podCIDR: {{ cidrs[0] }}\n", ""),
        ('nodes/000/nodes.yaml:10: spec: "podCIDR" is a required property',),
    ),
    "podCIDR is not the first of podCIDRs": Bug(
        *("kubernetes", "node", "{{ cidrs[0] }}", "{{ cidrs[-1] }}"),
        (
            "nodes/000/nodes.yaml:12: spec.podCIDRs.0: '10.0.1.0/28' is not a valid cidr6",
            "nodes/000/nodes.yaml:13: spec.podCIDRs.1: 'fd00::10/124' is not a valid cidr4",
        ),
    ),
    "a Node without its guard": Bug(
        *("kubernetes", "node", "    kustomize.toolkit.fluxcd.io/prune: disabled\n", ""),
        (
            'nodes/000/nodes.yaml:5: metadata.annotations: "kustomize.toolkit.fluxcd.io/prune" is a required property',
        ),
    ),
    "a key at another depth": Bug(
        *("kubernetes", "node", "  podCIDRs:\n", "podCIDRs:\n"),
        (
            'nodes/000/nodes.yaml:10: spec: "podCIDRs" is a required property',
            "nodes/000/nodes.yaml:11: podCIDRs: no such field",
        ),
    ),
    "a key that stands twice": Bug(
        *("kubernetes", "node", "  podCIDRs:\n", "  podCIDRs: []\n  podCIDRs:\n"),
        ("nodes/000/nodes.yaml:12: the mapping has the key 'podCIDRs' twice",),
    ),
    "no YAML": Bug(
        *("kubernetes", "node", "  podCIDRs:\n", "\tpodCIDRs:\n"),
        ("nodes/000/nodes.yaml:11: a tab in the indentation",),
    ),
    "a document too many": Bug(
        *("kubernetes", "node", "\nspec:\n", "\n---\nspec:\n"),
        (
            'nodes/000/nodes.yaml:5: metadata.annotations: {"argocd.argoproj.io/sync-options":"Prune=false,Delete=false","kustomize.toolkit.fluxcd.io/prune":"disabled"} has less than 3 properties',
            'nodes/000/nodes.yaml:10: the document: "apiVersion" is a required property',
            'nodes/000/nodes.yaml:10: the document: "kind" is a required property',
            'nodes/000/nodes.yaml:10: the document: "metadata" is a required property',
        ),
    ),
    "nothing at all": Bug(
        *("kubernetes", "node", "in nodes", "in ()"),
        ("nodes/000/nodes.yaml:1: 0 documents instead of one",),
    ),
    "kustomize's own order": Bug(
        *("multi-pool", "kustomization", "order: {{ sort }}", "order: legacy"),
        (
            'kustomization.yaml:4: sortOptions.order: "fifo" was expected',
            'cilium/kustomization.yaml:4: sortOptions.order: "fifo" was expected',
        ),
    ),
    "a seed inside the root": Bug(
        *(
            "multi-pool",
            "kustomization",
            "resources:\n",
            "resources:\n{% if resources[0] == 'cilium' %}\n- cilium\n- seeds/000.yaml\n{% endif %}\n",
        ),
        ("kustomization.yaml:7: resources.1: 'seeds/000.yaml' is not a valid resource",),
    ),
    "the operator's flag for somebody else": Bug(
        *("cluster-pool", "kustomization", "kind: {{ each.kind }}", "kind: DaemonSet"),
        ('cilium/component/kustomization.yaml:9: patches.2.target.kind: "Deployment" was expected',),
    ),
    "half a digest": Bug(
        *("cluster-pool", "component", "{{ digest }}", "{{ digest[:8] }}"),
        (
            "cilium/component/cilium-operator.yaml:10: spec.template.metadata.annotations.ipamc/cilium-config-sha256: 'f1add3a9' is not a valid ipamc/cilium-config-sha256",
        ),
    ),
    "a mask in quotes": Bug(
        *("multi-pool", "pod_ip_pool", "{{ mask }}", '{{ mask ~ "" }}'),
        (
            'cilium/ippools.yaml:11: spec.ipv4.maskSize: "28" is not of type "integer"',
            'cilium/ippools.yaml:15: spec.ipv6.maskSize: "124" is not of type "integer"',
            'cilium/ippools.yaml:25: spec.ipv4.maskSize: "26" is not of type "integer"',
        ),
    ),
    "what YAML 1.1 takes for a truth value": Bug(
        *("multi-pool", "pod_ip_pool", "    {{ key }}: {{ value }}", "    {{ key }}: y"),
        ("cilium/ippools.yaml:5: some YAML readers do not read y as text",),
    ),
    "a version that nobody serves": Bug(
        *("multi-pool", "node_config", "{{ api }}", "cilium.io/v3"),
        (
            'cilium/nodeconfigs.yaml:1: apiVersion: "cilium.io/v3" is not one of "cilium.io/v2" or "cilium.io/v2alpha1"',
        ),
    ),
    "values of a chart that was": Bug(
        *("multi-pool", "helm_values", "rollOutPods", "restartPods"),
        (
            "cilium/helm-values.yaml:8: operator.restartPods: no such field",
            'cilium/helm-values.yaml:8: operator: "rollOutPods" is a required property',
        ),
    ),
}


def findings(made: Plan, changed: Mapping[str, tuple[str, str]]) -> list[Diagnostic]:
    """Render with templates in which a piece of text is another, and verify."""
    templates = dict(TEMPLATES)
    for target, (old, new) in changed.items():
        assert TEMPLATES[f"{target}.yaml.j2"].count(old) == 1, old
        templates[f"{target}.yaml.j2"] = TEMPLATES[f"{target}.yaml.j2"].replace(old, new)
    files = arrange(made)
    return list(verify(files, emit(files, templates), SCHEMAS, "clusters/lab/rendered"))


def shown(found: Diagnostic) -> str:
    """Return a finding as `path:line: problem`."""
    assert found.code == "IPC0601"
    assert isinstance(found.at, Span)
    return f"{found.at.path.removeprefix('clusters/lab/rendered/')}:{found.at.line}: {found.message}"


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_the_templates_as_they_are_do_nothing_wrong(made: Plan) -> None:
    assert findings(made, {}) == []


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_template_that_goes_wrong(bug: Bug) -> None:
    assert [shown(each) for each in findings(MADE[bug.made], {bug.template: (bug.old, bug.new)})] == list(
        bug.said
    )


# One document of each shape.

FLEET = {f"n{index:03d}": f"10.{index // 16}.{index % 16 * 16}.0/28" for index in range(300)}


def test_one_document_of_a_shape_is_looked_at() -> None:
    """However many there are, and in however many files."""
    made = plan("cluster-pool", [pool("a", "10.0.0.0/8", size=28)], FLEET, shards=4)
    found = findings(made, {"cilium_node": ("podCIDRs:", "podCidrs:")})
    assert {each.at.path for each in found} == {"clusters/lab/rendered/ciliumnodes/000/ciliumnodes.yaml"}
    assert len(found) == 2


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("planned", '"true"', "true", 'metadata.annotations.cilium.io/do-not-gc: "true" was expected'),
        (
            "3rd",
            "  name: {{ name }}",
            "  name: {{ name if name != '3rd' else 3 }}",
            'metadata.name: 3 is not of type "string"',
        ),
        (
            "n250",
            "in cidrs",
            "in (cidrs if name != 'n250' else (26,))",
            'spec.ipam.podCIDRs.0: 26 is not of type "string"',
        ),
        (
            "n250",
            "in cidrs",
            "in (cidrs if name != 'n250' else (true,))",
            'spec.ipam.podCIDRs.0: true is not of type "string"',
        ),
        (
            "n250",
            "in cidrs",
            "in (cidrs if name != 'n250' else ('10.0.0.1',))",
            "spec.ipam.podCIDRs.0: '10.0.0.1' is not a valid cidr",
        ),
        (
            "n250",
            "in cidrs",
            "in (cidrs if name != 'n250' else (name,))",
            "spec.ipam.podCIDRs.0: 'n250' is not a valid cidr",
        ),
        (
            "n250",
            "in cidrs",
            "in (cidrs if name != 'n250' else ('10.0.0.0/28 ',))",
            "spec.ipam.podCIDRs.0: '10.0.0.0/28 ' is not a valid cidr",
        ),
        (
            "n250",
            "in cidrs",
            "in (cidrs if name != 'n250' else cidrs * 2)",
            "spec.ipam.podCIDRs.1: '10.15.160.0/28' is not a valid cidr6",
        ),
    ],
)
def test_one_that_is_not_like_the_others_is_found(name: str, old: str, new: str, said: str) -> None:
    """A shape is the lines of a document and the kinds of their scalars; the finding is on the line of the file."""
    nodes = [node("planned", planned=True), node("3rd")]
    held = {**FLEET, "planned": "10.200.0.0/28", "3rd": "10.201.0.0/28"}
    made = plan("cluster-pool", [pool("a", "10.0.0.0/8", size=28)], held, nodes=nodes)
    found = next(each for each in findings(made, {"cilium_node": (old, new)}) if each.message == said)
    assert isinstance(found.at, Span)
    lines = rendered(made)["ciliumnodes/000/ciliumnodes.yaml"].splitlines()
    start = max(
        number for number, line in enumerate(lines[: found.at.line]) if line == "apiVersion: cilium.io/v2"
    )
    assert next(line for line in lines[start:] if line.startswith("  name: ")) in {
        f"  name: {name}",
        f'  name: "{name}"',
    }


def test_of_lines_that_say_the_same_two_are_enough() -> None:
    text = "spec:\n" + "".join(f"- 10.0.0.{each}\n" for each in range(9)) + '- "fd00::1"\n'
    assert list(samples(text, [])) == ['spec:\n- 10.0.0.0\n- 10.0.0.1\n\n\n\n\n\n\n\n- "fd00::1"\n']


# What the user sees.


def test_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "clusters" / "case"
    folder.mkdir(parents=True)
    for name, text in casefile.load("lock/first-compile").files.items():
        if name.endswith(".yaml") and "/" not in name:
            (folder / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    broken = {
        **TEMPLATES,
        "cilium_node.yaml.j2": TEMPLATES["cilium_node.yaml.j2"].replace("podCIDRs", "podCidrs"),
    }
    monkeypatch.setattr(disk, "assets", lambda kind: broken if kind == "templates" else SCHEMAS)
    before = sorted(folder.iterdir())
    assert main(["compile"]) == 1
    said = capsys.readouterr().err
    assert (
        "error[IPC0601]: spec.ipam.podCidrs: no such field\n --> clusters/case/rendered/ciliumnodes/000/ciliumnodes.yaml:7:5\n"
        in said
    )
    assert (
        "help: report this bug of ipamc with the lines above; your input is not wrong, nothing was written\n"
        in said
    )
    assert sorted(folder.iterdir()) == before
