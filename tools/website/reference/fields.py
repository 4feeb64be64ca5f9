"""A page for each kind of document that ipamc reads, with each of its fields."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ipamc.model.cilium.support import FIRST, LAST, Capability
from ipamc.model.cilium.versions import since, text, until
from ipamc.read.kinds import KINDS, OURS, Kind
from ipamc.workspace.disk import assets
from tools.website.reference.markdown import anchor, code, fence, page, prose, table
from tools.website.reference.schema import Field, Schema, example, fields, in_place, plain, type_of

SELECTORS = frozenset({"selector", "labelSelector"})
"""What has a page of its own."""
FOLDER = "fields/"
CODES = "../codes/"

NEEDS = {
    ("cluster", "spec.ipam.mode: multi-pool"): Capability.MULTI_POOL,
    ("cluster", "spec.ipam.pinning: pool"): Capability.DEFAULT_IP_POOL,
    ("cluster", "spec.ipam.pinning: node"): Capability.DEFAULT_IP_POOL,
    ("cluster", "spec.ipam.autoCreate"): Capability.MULTI_POOL,
    ("cluster", "spec.bgp: metallb"): Capability.METALLB,
    ("cluster", "spec.bgp: control-plane"): Capability.BGP_CONTROL_PLANE,
    ("cluster", "spec.bgpAdvertisements"): Capability.BGP_ADVERTISEMENT,
    ("cluster", "spec.cilium.masquerade.masqLinkLocalIPv6"): Capability.IP_MASQ_AGENT_IPV6,
    ("cluster", "spec.cilium.masquerade.onlyMasqueradeDefaultPool"): Capability.SKIP_MASQUERADE,
    ("ippool", "spec.skipMasquerade"): Capability.SKIP_MASQUERADE,
    ("ippool", "spec.podSelector"): Capability.POD_SELECTORS,
    ("ippool", "spec.namespaceSelector"): Capability.POD_SELECTORS,
    ("ippool", "spec.allowFirstIP"): Capability.ALLOW_ENDS,
    ("ippool", "spec.allowLastIP"): Capability.ALLOW_ENDS,
    ("calico-ippool", "spec.namespaceSelector"): Capability.POD_SELECTORS,
}
"""Fields, and values of fields, that not every minor of Cilium knows."""

USES = {
    "cluster": "",
    "ippool": "A cluster has one or more, in any of its files.",
    "addressspace": "[Address spaces](../../concepts/address-space.md#ranges-for-clusters) explains it.",
    "nodeinventory": "Nodes in short form; `ipamc import` writes it.",
    "tests": "[Rules as tests](../../tests.md) explains it.",
    "calico-ippool": "Calico's own object, as its API server and its CRD have it.",
    "clustercidr": "The object of node-ipam-controller and of KEP-2593.",
    "node": "As `kubectl get nodes -o yaml` prints it: what ipamc does not read may be there.",
    "ciliumnode": "As `kubectl get ciliumnodes -o yaml` prints it: evidence of the blocks that a node has.",
    **dict.fromkeys(
        (
            "ciliumbgpadvertisement",
            "ciliumbgppeerconfig",
            "ciliumbgpclusterconfig",
            "ciliumbgpnodeconfigoverride",
            "ciliumbgppeeringpolicy",
        ),
        "It is only read: [Masquerading and BGP](../../how-to/routes.md#peers-are-checked) says what is checked.",
    ),
}


def pages() -> dict[str, str]:
    """Return the pages by path."""
    kinds = {stem(kind): kind for kind in KINDS}
    made = {f"{FOLDER}{name}.md": page(*_kind(name, kind)) for name, kind in kinds.items()}
    rows = [
        [
            f"[{_title(kind)}]({name}.md)",
            ", ".join(map(code, kind.api_versions)),
            prose(schema(name)["description"]),
            str(len(list(fields(schema(name), SELECTORS)))),
        ]
        for name, kind in kinds.items()
    ]
    index = page(
        "# Fields",
        "Every document that ipamc reads, and every field of it: type, default, meaning, an example, and from which Cilium on it has an effect.",
        table(["kind", "apiVersion", "what it is", "fields"], rows),
        "Selectors of nodes and pods are on [a page of their own](selectors.md). A file below a cluster's folder may hold any of these documents, "
        "several of them, and Lists. An unknown field of ipamc's own kinds is refused; the kinds of others are read as far as these pages say.",
        "`ipamc schema KIND` prints the JSON Schema behind a page, for [editors](../verbs/schema.md).",
    )
    return {**made, f"{FOLDER}selectors.md": page(*_selectors()), f"{FOLDER}README.md": index}


def stem(kind: Kind) -> str:
    """Return the name of a kind's schema and page."""
    return kind.schema.removesuffix(".schema.json")


def schema(name: str) -> Schema:
    """Return the JSON Schema of a kind."""
    found: Schema = json.loads(assets("schemas")[f"{name}.schema.json"])
    return found


def _title(kind: Kind) -> str:
    return (
        kind.name
        if kind.api_versions != ("projectcalico.org/v3", "crd.projectcalico.org/v1")
        else "Calico IPPool"
    )


def _kind(name: str, kind: Kind) -> Iterator[str]:
    given = schema(name)
    listed = list(fields(given, SELECTORS))
    yield f"# Fields of {_title(kind)}"
    yield f"{prose(given['description'])} {USES[name]}"
    yield f"Its `apiVersion` is {' or '.join(map(code, kind.api_versions))}, its `kind` {code(kind.name)}."
    yield table(
        ["field", "default", "Cilium"],
        [
            [
                f"[{code(each.path)}](#{anchor(each.path)})",
                _default(each, kind),
                versions(name, each.path) or "all",
            ]
            for each in listed
        ],
    )
    for each in listed:
        yield from _field(name, kind, each)


def _field(name: str, kind: Kind, field: Field) -> Iterator[str]:
    yield f"## `{field.path}`"
    yield prose(field.description, CODES)
    default = _default(field, kind)
    facts = [f"- Type: {_type(field)}", "- Required" if field.required else f"- Default: {default}"]
    if said := versions(name, field.path):
        facts.append(f"- Cilium: {said}")
    for (of, value), capability in NEEDS.items():
        if of == name and value.startswith(f"{field.path}: "):
            facts.append(f"- {code(value.partition(': ')[2])}: Cilium {_range(capability)}")
    yield "\n".join(facts)
    if (value := example(field)) is not None and not field.schema.get("properties"):
        yield fence(in_place(field.path, value), "yaml")


def _type(field: Field) -> str:
    if "nodeSelectorTerms" in field.schema.get("properties", {}):
        return "[a selector](selectors.md#selectors-of-nodes)"
    if field.schema.get("title") == "a LabelSelector":
        return "[a LabelSelector](selectors.md#labelselectors-of-pods-and-namespaces)"
    return type_of(field.schema)


def _default(field: Field, kind: Kind) -> str:
    if field.required:
        return "required"
    if "default" in field.schema:
        return code(plain(field.schema["default"]))
    if field.choice:
        return "one of several is required"
    return "none" if kind.api_versions == (OURS,) else "not needed"


def versions(name: str, path: str) -> str:
    """Return the Cilium minors in which a field has an effect; "" for all."""
    capability = NEEDS.get((name, path))
    return _range(capability) if capability else ""


def _range(capability: Capability) -> str:
    first, last = since(capability), until(capability)
    if last == LAST:
        return f"from {text(first)} on"
    return f"up to {text(last)}" if first == FIRST else f"{text(first)} to {text(last)}"


def _selectors() -> Iterator[str]:
    pool = schema("ippool")
    defs = pool["$defs"]
    yield "# Selectors"
    yield (
        "Three notations select nodes: Calico's selector language, a Kubernetes LabelSelector and a Kubernetes NodeSelector. "
        "Pods and namespaces are selected by a LabelSelector."
    )
    for heading, name in (
        ("Selectors of nodes", "selector"),
        ("LabelSelectors of pods and namespaces", "labelSelector"),
    ):
        each = defs[name]
        yield f"## {heading}"
        yield prose(
            each.get(
                "description", "A LabelSelector: all of its conditions must hold. `{}` selects everything."
            )
        )
        yield from (
            fence(in_place("nodeSelector" if name == "selector" else "podSelector", value), "yaml")
            for value in each["examples"]
        )
        yield table(
            ["field", "type", "meaning"],
            [
                [code(field.path), type_of(field.schema), prose(field.description)]
                for field in fields({**each, "$defs": defs})
            ],
        )
    yield "## Calico's selector language"
    yield (
        "Text is read exactly as Calico reads it. Operators that look at a label: `==`, `!=`, `in {…}`, `not in {…}`, `contains`, "
        "`starts with`, `ends with`, `has(…)`, `!has(…)`; `all()` and `global()` select everything; `&&`, `||`, `!` and parentheses combine. "
        "A value stands in quotes."
    )
    yield fence('nodeSelector: topology.kubernetes.io/zone in {"a", "b"} && !has(gpu)', "yaml")
