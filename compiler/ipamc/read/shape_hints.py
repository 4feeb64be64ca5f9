"""What to write in place of a field, a word or a value that a schema refuses: habits of Helm, Calico, kubectl and YAML."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ipamc.model.selector.label_syntax import label_key_problem, label_value_problem
from ipamc.model.wording import listing, near, nearest
from ipamc.read.schema import Schema, resolve_reference, types
from ipamc.read.syntax.document import Keys
from ipamc.read.syntax.yaml_scalars import meant, quoted

_SHOWN = 60
_POOL = "ranges are in pools: in ippools.yaml write ipv4: {cidrs: [10.244.0.0/16], blockSize: 24}"
_CALICO = "remove it: it tells Calico how to route, and Cilium has its own settings for that"
_HELM = "leave it in the values of Cilium: only what decides addresses stands here"
_FIELDS = {
    "IPPool": {
        "maskSize": "write blockSize, which is rendered as Cilium's maskSize",
        "cidr": "write ipv4: {cidrs: [{value}], blockSize: 24}; or make it a pool of Calico: apiVersion: projectcalico.org/v3",
        "selector": "did you mean 'nodeSelector'?",
        "blocks": "ranges of pods are in ipv4 and ipv6: write ipv4: {cidrs: [10.244.0.0/16], blockSize: 24}",
        "weight": "write priority: {value}",
        "nodes": "write nodeSelector, or reserve blocks for single nodes by pins: ipamc explain IPPool.spec.pins",
        "allowedUses": "remove it: a pool here is for pods alone",
        "enabled": "write disabled: {opposite}",
        **dict.fromkeys(
            ("natOutgoing", "vxlanMode", "ipipMode", "disableBGPExport", "assignmentMode"), _CALICO
        ),
    },
    "Cluster": {
        **dict.fromkeys(("serviceCIDR", "serviceCidr", "serviceSubnet"), "write excludedCIDRs: [{value}]"),
        **dict.fromkeys(
            ("podCIDR", "podSubnet", "clusterCIDR", "cidrs", "pools", "cluster-pool-ipv4-cidr"), _POOL
        ),
        **dict.fromkeys(("clusterPoolIPv4PodCIDRList", "clusterPoolIPv4MaskSize"), _POOL),
        "tunnel": "write routingMode: tunnel",
        "tunnelProtocol": "write routingMode: tunnel",
        "ipv4NativeRoutingCIDR": "write nativeRoutingCIDR: {value}",
        **dict.fromkeys(("autoDirectNodeRoutes", "kubeProxyReplacement", "hubble", "bpf"), _HELM),
    },
    "NodeInventory": {"role": "write it as a label: labels: {role: {value}}"},
}
"""By kind and field: what ipamc's own kinds have in its place. `{value}` is the field's value."""
_WORDS = {
    "mode": {
        "host-scope": "kubernetes",
        "hostscope": "kubernetes",
        "cluster-scope": "cluster-pool",
        "clusterpool": "cluster-pool",
    },
    "managedBy": {
        "argocd": "helm or kustomize, whichever it renders",
        "argo": "helm or kustomize, whichever it renders",
        "flux": "helm or kustomize, whichever it applies",
    },
    "routingMode": {"vxlan": "tunnel", "geneve": "tunnel", "direct": "native"},
    "bgp": {"bird": "none", "calico": "none"},
}
"""By field and word: what others say, and the word of ipamc."""
_BOTH = {"dualstack", "dual-stack", "dual", "both"}


def unknown(key: str, value: Any, kind: str, keys: Keys, schema: Schema, root: Schema) -> str:
    """Return what to write in place of an unknown field; "" where its neighbours are all that can be told.

    `schema` is that of the mapping at `keys`, which has the field; `root` is that of the document.
    """
    if key == "cidr" and "cidrs" in schema.get("properties", {}):
        return f"write cidrs: [{_plain(value)}]"
    if text := _FIELDS.get(kind, {}).get(key, ""):
        opposite = "true" if value is False else "false"
        return text.replace("{opposite}", opposite).replace("{value}", _plain(value))
    known = schema.get("properties", {})
    if places := [where for where in _places(root, root, key) if where != keys]:
        if () in places:
            return "write it at the left margin, as apiVersion and kind"
        return f"write it in {listing('.'.join(map(str, where)) for where in places[:3])}"
    if near := nearest(key, known):
        return f"did you mean {near!r}?"
    if inner := [name for name in known if isinstance(value, Mapping) and name in value]:
        return f"write {inner[0]} here, without {key}: above it"
    for labels in ("matchLabels", "labels"):
        if labels in known and isinstance(value, str):
            return f"write {labels}: {{{key}: {_plain(value)}}}"
    return ""


def _places(root: Schema, schema: Schema, key: str, keys: Keys = ()) -> Iterator[Keys]:
    """Yield the paths of the mappings that have a field of this name, but for those in lists."""
    if len(keys) > 4:
        return
    properties = resolve_reference(root, schema).get("properties", {})
    if key in properties:
        yield keys
    for name, below in properties.items():
        if name not in {"metadata", "podSelector", "namespaceSelector"}:
            yield from _places(root, below, key, (*keys, name))


def choice(text: str, field: str, allowed: Sequence[str], examples: str) -> str:
    """Return what to write in place of a word that is none of those allowed."""
    if word := _WORDS.get(field, {}).get(text.lower(), ""):
        return f"write {field}: {word}"
    near = nearest(text, allowed)
    return f"did you mean {near!r}?" if near else examples


def mistyped(name: str, value: Any, wanted: Collection[str], schema: Schema, root: Schema) -> str:
    """Return what to write in place of a value of the wrong type; `name` is its field, or "" for an item."""
    before = f"{name}: " if name else ""
    schema = resolve_reference(root, schema)
    own = schema.get("items", {}).get("properties", {})
    if "string" in wanted and isinstance(value, Mapping) and isinstance(cidr := value.get("cidr"), str):
        return f"write {before}{_plain(cidr)}{'; what it is for stands behind #' if len(value) > 1 else ''}"
    if isinstance(value, Mapping) and (
        known := _FIELDS.get(str(root.get("title")), {}).keys() & value.keys() - own.keys()
    ):
        key = min(known)
        return unknown(key, value[key], str(root.get("title")), (), {}, root)
    better = ""
    if value is not None:
        if "object" in wanted:
            better = _mapping(value, schema)
        if not better and "array" in wanted:
            better = _list(value, resolve_reference(root, schema.get("items", {})))
        if not better and isinstance(value, str):
            better = meant(_number(value), {"integer": int, "boolean": bool}.keys() & set(wanted))
        no_number = not (isinstance(value, float) and "integer" in wanted)
        if not better and "string" in wanted and not isinstance(value, list | Mapping) and no_number:
            better = _word(str(value).lower() if isinstance(value, bool) else str(value), name, schema)
    found = re.fullmatch(r"([A-Za-z]+):\s?(\S{1,60})", value) if isinstance(value, str) else None
    if found and found[1] in schema.get("properties", {}):
        return f"write a blank after the colon: {found[1]}: {found[2]}"
    line = example(name, schema, root)
    if value is None and "object" in wanted and (choices := _choices(schema, root)):
        return f"write {before}{{{choices}}}"
    if value is None and "default" in schema:
        return f"leave the field out, or {line}" if line else "leave the field out, or give it a value"
    return f"write {before}{better}" if better else line


def _choices(schema: Schema, root: Schema) -> str:
    """Return the one field that a mapping must have, with the words that it may be; "" for other mappings."""
    match schema.get("required", []):
        case [str(only)]:
            words = resolve_reference(root, schema["properties"][only]).get("enum", [])
            return f"{only}: {listing(words)}" if words else ""
    return ""


def example(name: str, schema: Schema, root: Schema) -> str:
    """Return a line to type, from the schema's choices, example or default; "" if it has none."""
    before = f"{name}: " if name else ""
    if choices := schema.get("enum", []):
        return f"write {before}{listing(choices)}"
    value = _example(schema, root)
    return "" if value is None else f"write for example {before}{typed(value)}"


def typed(value: Any) -> str:
    """Return an example as a user types it."""
    if isinstance(value, list):
        return f"[{', '.join(map(typed, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {typed(member)}" for key, member in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if not isinstance(value, str) or value.replace("-", "").isalpha() else quoted(value)


def _example(schema: Schema, root: Schema) -> Any:
    schema = resolve_reference(root, schema)
    if "examples" in schema:
        return schema["examples"][0]
    if schema.get("default", "") not in ("", [], {}):
        return schema["default"]
    for name, below in schema.get("properties", {}).items():
        inner = _example(below, root)
        return None if inner is None else {name: inner}
    if "string" in types(schema.get("additionalProperties") or {}):
        return {"key": "value"}
    return None


def _mapping(value: Any, schema: Schema) -> str:
    """Return the mapping that a text or a list was meant to be."""
    if isinstance(value, str) and schema.get("required") == ["name"]:
        return f"{{name: {_plain(value)}}}"
    if isinstance(value, list) and "string" in types(schema.get("additionalProperties") or {}):
        pairs = [
            re.fullmatch(r"([^=:\s]{1,99})[=:]\s*(\S{0,99})", item) for item in value if isinstance(item, str)
        ]
        if pairs and all(pairs) and len(pairs) == len(value):
            return "{" + ", ".join(f"{pair[1]}: {_plain(pair[2])}" for pair in pairs if pair) + "}"
    return ""


def _list(value: Any, items: Schema) -> str:
    """Return the list that a value was meant to be."""
    if isinstance(value, Mapping):
        if items.get("required") == ["cidr"]:
            pairs = (
                [value] if "cidr" in value else [{"cidr": key, "reason": why} for key, why in value.items()]
            )
            return _rows({"reason": "why", **pair} for pair in pairs[:2])
        named = next(
            ((key, inner) for key, inner in value.items() if isinstance(inner, Mapping | None)), None
        )
        if named and "name" in items.get("properties", {}):
            inner = "".join(f", {key}: {typed(member)}" for key, member in (named[1] or {}).items())
            return f"[{{name: {_plain(named[0])}{inner}}}, …]"[: 2 * _SHOWN]
        return ""
    if not isinstance(value, str):
        return ""
    allowed = items.get("enum", [])
    if allowed and value.lower() in _BOTH:
        return f"[{', '.join(allowed)}]"
    if allowed:
        near = nearest(value, allowed)
        return f"[{near}]" if near else ""
    return f"[{value[:_SHOWN]}]"


def _rows(pairs: Iterable[Mapping[str, Any]]) -> str:
    """Return reserved CIDRs as a list of mappings, cut."""
    fields = ("cidr", "reason")
    rows = (", ".join(f"{field}: {_plain(pair.get(field) or field)}" for field in fields) for pair in pairs)
    return f"[{', '.join(f'{{{row}}}' for row in rows)}]"


def _word(value: str, name: str, schema: Schema) -> str:
    if "enum" in schema:
        return _WORDS.get(name, {}).get(value, "")
    return quoted(value)


def _number(text: str) -> str:
    """Return the number in `/24`, `5%` and `7d`; other texts as they are."""
    found = re.fullmatch(r"/?\s*(\d{1,9})\s*(?:%|d|days?)?", text, re.ASCII)
    return found[1] if found else text


def _plain(value: Any) -> str:
    """Return a value of the input as it is typed, cut."""
    if isinstance(value, list):
        return ", ".join(map(_plain, value[:4]))
    text = str(value)[:_SHOWN]
    return text if re.fullmatch(r"[A-Za-z0-9][-A-Za-z0-9_./]*", text) else quoted(text)


_OF_SELECTORS = frozenset({"matchLabels", "matchExpressions"})
_MOST = 20
"""Labels that are written out."""
EXAMPLE = 'rack == "a", or {matchLabels: {rack: a}}'


def is_selector(known: Collection[str]) -> bool:
    """Tell whether these are the fields of a selector object."""
    return _OF_SELECTORS.issubset(known)


def as_selector(value: Mapping[str, Any], known: Collection[str], field: str) -> str:
    """Return how labels that stand right in a selector are written; "" where they are not only that."""
    labels = {key: label for key, label in value.items() if key not in known}
    there = value.get("matchLabels", {})
    if not 0 < len(labels) <= _MOST or not isinstance(there, Mapping) or len(there) > _MOST:
        return ""
    if any(near(key, known, 1) or label_key_problem(key) for key in labels):
        return ""
    single = {**there, **{key: label for key, label in labels.items() if not isinstance(label, list)}}
    many = {key: label for key, label in labels.items() if isinstance(label, list)}
    if not all(map(_is_value, single.values())) or not all(
        map(_is_value, chain.from_iterable(many.values()))
    ):
        return ""
    parts = []
    if single:
        parts.append(
            f"matchLabels: {{{', '.join(f'{key}: {_typed(label)}' for key, label in single.items())}}}"
        )
    if many:
        parts.append(f"matchExpressions: [{', '.join(_expression(key, some) for key, some in many.items())}]")
    return f"write {field}: {{{', '.join(parts)}}}"


def of_a_term(value: Mapping[str, Any]) -> str:
    """Return how `matchLabels` is written in a term of a NodeSelector, which has none."""
    labels = value.get("matchLabels")
    if (
        not isinstance(labels, Mapping)
        or not 0 < len(labels) <= _MOST
        or not all(map(_is_value, labels.values()))
    ):
        return "write matchExpressions"
    return (
        f"write matchExpressions: [{', '.join(_expression(key, [label]) for key, label in labels.items())}]"
    )


def other_shape(keys: Keys, value: object) -> str:
    """Return how a selector or a part of it is written that is of another type; "" for any other field."""
    match keys[-1:]:
        case (str(field),) if field.endswith("elector"):
            if isinstance(value, bool | int | float):
                return f"leave it out for every node, or write for example {field}: {EXAMPLE}"
            return f"write for example {field}: {EXAMPLE}"
        case ("matchLabels",):
            return "write for example matchLabels: {rack: a}"
        case ("matchExpressions",):
            return "write a list, for example matchExpressions: [{key: rack, operator: In, values: [a]}]"
    return ""


def _is_value(value: object) -> bool:
    return isinstance(value, str | bool | int | float) and not label_value_problem(_text(value))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _typed(value: object) -> str:
    return (
        _text(value) if isinstance(value, str) and value.replace("-", "").isalpha() else quoted(_text(value))
    )


def _expression(key: str, values: Collection[object]) -> str:
    return f"{{key: {key}, operator: In, values: [{', '.join(map(_typed, values))}]}}"
