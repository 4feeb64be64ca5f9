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
    "addressspace": "See [Address spaces](../../concepts/address-space.md#ranges-for-clusters).",
    "nodeinventory": "`ipamc import` writes this document.",
    "tests": "See [Rules as tests](../../tests.md).",
    "calico-ippool": "This is Calico's own object, from its API server or its CRD.",
    "clustercidr": "This is the object of node-ipam-controller and of KEP-2593.",
    "node": "Use the output of `kubectl get nodes -o yaml`; ipamc ignores the other fields.",
    "ciliumnode": "Use the output of `kubectl get ciliumnodes -o yaml`; it shows which blocks a node has.",
    **dict.fromkeys(
        (
            "ciliumbgpadvertisement",
            "ciliumbgppeerconfig",
            "ciliumbgpclusterconfig",
            "ciliumbgpnodeconfigoverride",
            "ciliumbgppeeringpolicy",
        ),
        "ipamc does not change this object; [Masquerading and BGP](../../how-to/routes.md#peers-are-checked) lists what it checks.",
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
        "The documents that ipamc reads, and their fields: type, default, meaning, example, and the first Cilium minor in which a field has an effect.",
        table(["kind", "apiVersion", "what it is", "fields"], rows),
        "[Selectors](selectors.md) of nodes and pods have their own page. A file below a cluster's folder may contain one or more of these documents, "
        "or Kubernetes Lists of them. ipamc refuses unknown fields in its own kinds. In the kinds of other projects, it reads only the fields on these pages.",
        "`ipamc schema KIND` prints the JSON Schema of a kind, for [editors](../verbs/schema.md).",
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
    yield f"{prose(given['description'])} {USES[name]}".rstrip()
    yield f"`apiVersion` is {' or '.join(map(code, kind.api_versions))}; `kind` is {code(kind.name)}."
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
    facts = [f"- Type: {_type(field)}", _presence(field, default)]
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
        return f"one of {', '.join(map(code, field.choice))} is required"
    return "none" if kind.api_versions == (OURS,) else "optional"


def _presence(field: Field, default: str) -> str:
    if field.choice and "default" not in field.schema and not field.required:
        return f"- Required: one of {', '.join(map(code, field.choice))}"
    return f"- {default.capitalize()}" if default in {"required", "optional"} else f"- Default: {default}"


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
        "A selector of nodes is text in Calico's selector language, a Kubernetes LabelSelector, or a Kubernetes NodeSelector. "
        "A selector of pods or namespaces is a LabelSelector."
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
        "ipamc reads text exactly as Calico does. Operators on labels: `==`, `!=`, `in {…}`, `not in {…}`, `contains`, "
        "`starts with`, `ends with`, `has(…)`, `!has(…)`. `all()` and `global()` select everything. `&&`, `||`, `!` and parentheses combine "
        "conditions. Put values in quotes."
    )
    yield fence('nodeSelector: topology.kubernetes.io/zone in {"a", "b"} && !has(gpu)', "yaml")
