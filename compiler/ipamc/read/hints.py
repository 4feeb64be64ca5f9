"""Guesses what a refused kind, field or value means: typos; habits of Helm, Calico, kubectl and YAML."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ipamc.model.limits import MOST_DIGITS, NAMES_SHOWN, VALUE_SHOWN
from ipamc.model.selector.label_syntax import label_key_problem, label_value_problem
from ipamc.model.wording import listing, near, nearest, suggestion
from ipamc.read.schema import Schema, resolve_reference, types
from ipamc.read.syntax.document import Keys, quoted

_BOTH = {"dualstack", "dual-stack", "dual", "both"}
_SIZES_OF_IPV6 = range(33, 129)
"""Prefix lengths that only IPv6 blocks have."""
_TRUE, _FALSE = {"true", "yes", "y", "on"}, {"false", "no", "n", "off"}
_VALUES = {
    "mode": {
        **dict.fromkeys(("host-scope", "hostscope"), "kubernetes"),
        **dict.fromkeys(("cluster-scope", "clusterpool"), "cluster-pool"),
    },
    "managedBy": {
        **dict.fromkeys(("argo", "argocd"), "helm or kustomize, whichever it renders"),
        "flux": "helm or kustomize, whichever it applies",
    },
    "routingMode": {"vxlan": "tunnel", "geneve": "tunnel", "direct": "native"},
    "bgp": {"bird": "none", "calico": "none"},
}
"""By field: words of other tools, and the word of ipamc."""
_HELM = frozenset(
    {"ipam", "operator", "hubble", "kubeProxyReplacement", "k8sServiceHost", "tunnelProtocol", "bpf", "cni"}
)
_KUSTOMIZE = frozenset({"resources", "patches", "components", "namePrefix", "configMapGenerator", "bases"})
"""Top-level fields of the values of Cilium's chart, and of a kustomization."""

Kinds = Sequence[tuple[str, Sequence[str]]]
"""Names of kinds with their apiVersions; of two kinds with one name, ipamc's own comes first."""


# Kinds


def unnamed(
    value: Mapping[str, Any], names: Mapping[str, Any], kinds: Kinds
) -> Iterator[tuple[str, str, str]]:
    """Yield (field, problem, fix) for each of `names` (apiVersion, kind) that is missing or no text."""
    versions = {name: of[0] for name, of in reversed(kinds)}
    kind, meant, others = names["kind"], kind_of_fields(value), _other_tool(value)
    if names["apiVersion"] is None and kind is None:
        head = f"write apiVersion: {versions[meant]} and kind: {meant}" if meant else _MOVE_OUT
        yield "kind", "the document has no apiVersion and no kind", others or head
        return
    for name, given in names.items():
        if isinstance(given, str):
            continue
        better = others or _MOVE_OUT
        if name == "kind" and meant:
            better = f"write kind: {meant}"
        elif name == "apiVersion" and isinstance(kind, str) and kind in versions:
            better = f"write apiVersion: {versions[kind]}"
        yield name, f"{name} is not text" if given else f"the document has no {name}", better


def _other_tool(value: Mapping[str, Any]) -> str:
    """Return what to do with a file of kustomize or Helm; "" for any other."""
    keys = value.keys()
    if keys & _KUSTOMIZE and not keys & {"spec", "nodes"}:
        head = "apiVersion: kustomize.config.k8s.io/v1beta1 and kind: Kustomization"
        return f"for kustomize, write {head}, and ipamc ignores the file"
    if keys & _HELM and not keys & {"spec", "nodes", "metadata"}:
        ours = "the values of ipamc are in rendered/cilium/helm-values.yaml"
        return f"if these are Helm values, move the file out of the cluster's folder; {ours}"
    return ""


def kind_of_fields(value: Mapping[str, Any]) -> str:
    """Return ipamc's own kind that has the fields of a document; "" if there is none."""
    spec = value.get("spec")
    if isinstance(value.get("nodes"), list):
        return "NodeInventory"
    if isinstance(value.get("tests"), list):
        return "Tests"
    if isinstance(spec, Mapping) and ("cilium" in spec or "ipam" in spec):
        return "Cluster"
    part = spec.get("ipv4", spec.get("ipv6")) if isinstance(spec, Mapping) else None
    if isinstance(part, Mapping) and "prefixLength" in part and "blockSize" not in part:
        return "AddressSpace"
    return "IPPool" if isinstance(spec, Mapping) and ("ipv4" in spec or "ipv6" in spec) else ""


def nearest_kind(kind: str, kinds: Kinds) -> str:
    """Return the kind that was probably meant, or the kind of a list's items; or ""."""
    return nearest(kind.removesuffix("List") or kind, [name for name, _ in kinds])


def unknown_kind(kind: str, version: str, kinds: Kinds) -> str:
    """Return what to write instead of a kind that ipamc does not read."""
    if kind.removesuffix("List") == "CiliumPodIPPool":
        ours = kinds[0][1][0]
        better = f"apiVersion: {ours}, kind: IPPool, and blockSize instead of maskSize"
        return f"write the pool from which ipamc renders it: {better}"
    near = nearest_kind(kind, kinds)
    versions = [version for name, of in kinds if name == near for version in of]
    if near and near == kind.removesuffix("List"):
        if meant := nearest(version, versions):
            return f"did you mean apiVersion: {meant}?"
        return f"the apiVersion of {'an' if near[0] in 'AEIOU' else 'a'} {near} is {listing(versions)}"
    return _MOVE_OUT


_MOVE_OUT = "move it out of this folder; ipamc schema lists the kinds"


# Fields, and values of the wrong type


def unknown(key: str, value: Any, keys: Keys, schema: Schema, root: Schema) -> str:
    """Return what to write instead of an unknown field; "" if only its neighbours can be listed.
    `schema` is that of the mapping at `keys`, which contains the field; `root` is that of the document:
    its `x-instead` has fields of other tools, and what to write; `{value}` is the field's value there.
    """
    if key == "cidr" and "cidrs" in schema.get("properties", {}):
        return f"write cidrs: [{_plain(value)}]"
    if text := root.get("x-instead", {}).get(key, ""):
        opposite = "true" if value is False else "false"
        return str(text).replace("{opposite}", opposite).replace("{value}", _plain(value))
    known = schema.get("properties", {})
    if key == "matchLabels" and "matchFields" in known:
        return "write matchExpressions"
    if places := [where for where in _places(root, root, key) if where != keys]:
        if () in places:
            return "write it at the left margin, like apiVersion and kind"
        return f"write it in {listing('.'.join(map(str, where)) for where in places[:3])}"
    if near := suggestion(key, known):
        return near
    if inner := [name for name in known if isinstance(value, Mapping) and name in value]:
        return f"write {inner[0]} here, without {key}: around it"
    for labels in ("matchLabels", "labels"):
        if labels in known and isinstance(value, str):
            return f"write {labels}: {{{key}: {_plain(value)}}}"
    return ""


def _places(root: Schema, schema: Schema, key: str, keys: Keys = ()) -> Iterator[Keys]:
    """Yield the paths of mappings with a field of this name, except those in lists."""
    if len(keys) > 4:
        return
    properties = resolve_reference(root, schema).get("properties", {})
    if key in properties:
        yield keys
    for name, below in properties.items():
        if name not in {"metadata", "podSelector", "namespaceSelector"}:
            yield from _places(root, below, key, (*keys, name))


def choice(text: str, field: str, allowed: Sequence[str], examples: str) -> str:
    """Return what to write instead of a word that is not allowed."""
    word = _VALUES.get(field, {}).get(text.lower(), "")
    return f"write {field}: {word}" if word else suggestion(text, allowed) or examples


def block_size(value: int, bits: int) -> str:
    """Return the prefix length of a block size that is given as a number of addresses; "" for others."""
    size = bits - (value.bit_length() - 1)
    if size <= 0 or value & (value - 1):
        return ""
    ipv6 = "; write IPv6 blocks under ipv6" if value in _SIZES_OF_IPV6 else ""
    return f"write blockSize: {size} ({value:,} addresses){ipv6}"


def mistyped(name: str, value: Any, wanted: Collection[str], schema: Schema, root: Schema) -> str:
    """Return what to write instead of a value of the wrong type; `name` is its field, or "" for an item."""
    before = f"{name}: " if name else ""
    schema = resolve_reference(root, schema)
    own = schema.get("items", {}).get("properties", {})
    if "string" in wanted and isinstance(value, Mapping) and isinstance(cidr := value.get("cidr"), str):
        return f"write {before}{_plain(cidr)}{'; write its purpose after #' if len(value) > 1 else ''}"
    if isinstance(value, Mapping) and (known := root.get("x-instead", {}).keys() & value.keys() - own.keys()):
        return unknown(key := min(known), value[key], (), {}, root)
    better, text = "", _text(value)
    if value is not None:
        if "object" in wanted:
            better = _mapping(value, schema)
        if not better and "array" in wanted:
            better = _list(value, resolve_reference(root, schema.get("items", {})))
        if not better and isinstance(value, str):
            better = scalar(value, wanted)
        no_number = not (isinstance(value, float) and "integer" in wanted)
        if not better and "string" in wanted and not isinstance(value, list | Mapping) and no_number:
            better = _VALUES.get(name, {}).get(text, "") if "enum" in schema else quoted(text)
    found = re.fullmatch(r"([A-Za-z]+):\s?(\S{1,60})", value) if isinstance(value, str) else None
    if found and found[1] in schema.get("properties", {}):
        return f"write a space after the colon: {found[1]}: {found[2]}"
    line = example(name, schema, root)
    return f"write {before}{better}" if better else line


def scalar(text: str, wanted: Collection[str]) -> str:
    """Return the integer (also `/24`, `5%`, `7d`) or boolean that a text probably means; or ""."""
    if "boolean" in wanted and text.lower() in _TRUE | _FALSE:
        return "true" if text.lower() in _TRUE else "false"
    number = re.fullmatch(r"/?\s*(\d{1,9})\s*(?:%|d|days?)?", text, re.ASCII)
    digits = (number[1] if number else text).replace("_", "")
    digits = digits.lstrip("0") or digits[:1]
    whole = digits.isdecimal() and digits.isascii() and len(digits) <= MOST_DIGITS
    return digits if "integer" in wanted and whole else ""


def example(name: str, schema: Schema, root: Schema) -> str:
    """Return a line to type, from the schema's choices, example or default; "" if it has none."""
    before = f"{name}: " if name else ""
    if choices := schema.get("enum", []):
        return f"write {before}{listing(choices)}"
    value = _example(schema, root)
    return "" if value is None else f"write, for example, {before}{typed(value)}"


def typed(value: Any) -> str:
    """Return an example in the form that a user types."""
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
    return {"key": "value"} if "string" in types(schema.get("additionalProperties") or {}) else None


def _mapping(value: Any, schema: Schema) -> str:
    """Return the mapping that a text probably means."""
    needs = [schema, *schema.get("anyOf", [])[:1]]
    if isinstance(value, str) and ["name"] in [each.get("required") for each in needs]:
        return f"{{name: {_plain(value)}}}"
    return ""


def _list(value: Any, items: Schema) -> str:
    """Return the list that a value probably means."""
    if isinstance(value, Mapping):
        if items.get("required") == ["cidr"]:
            given = [{"cidr": key, "reason": why} for key, why in value.items()]
            rows = [{"reason": "why", **pair} for pair in ([value] if "cidr" in value else given[:2])]
            fields = ("cidr", "reason")
            texts = (", ".join(f"{key}: {_plain(row.get(key) or key)}" for key in fields) for row in rows)
            return f"[{', '.join(f'{{{text}}}' for text in texts)}]"
        named = [(key, inner) for key, inner in value.items() if isinstance(inner, Mapping | None)]
        if named and "name" in items.get("properties", {}):
            inner = "".join(f", {key}: {typed(member)}" for key, member in (named[0][1] or {}).items())
            return f"[{{name: {_plain(named[0][0])}{inner}}}, …]"[: 2 * VALUE_SHOWN]
        return ""
    if not isinstance(value, str):
        return ""
    allowed = items.get("enum", [])
    if allowed and value.lower() in _BOTH:
        return f"[{', '.join(allowed)}]"
    if allowed:
        near = nearest(value, allowed)
        return f"[{near}]" if near else ""
    return f"[{value[:VALUE_SHOWN]}]"


def _plain(value: Any) -> str:
    """Return a value of the input in typed form, cut."""
    if isinstance(value, list):
        return ", ".join(map(_plain, value[:4]))
    text = str(value)[:VALUE_SHOWN]
    return text if re.fullmatch(r"[A-Za-z0-9][-A-Za-z0-9_./]*", text) else quoted(text)


# Selectors

_OF_SELECTORS = frozenset({"matchLabels", "matchExpressions"})


def as_selector(value: Mapping[str, Any], known: Collection[str], field: str) -> str:
    """Return how to write a selector that has labels directly in it; "" if it has other mistakes."""
    if not _OF_SELECTORS.issubset(known):
        return ""
    labels = {key: label for key, label in value.items() if key not in known}
    there = value.get("matchLabels", {})
    if not 0 < len(labels) <= NAMES_SHOWN or not isinstance(there, Mapping) or len(there) > NAMES_SHOWN:
        return ""
    if any(near(key, known, 1) or label_key_problem(key) for key in labels):
        return ""
    labels = {**there, **labels}
    if not all(map(_is_value, labels.values())):
        return ""
    pairs = ", ".join(f"{key}: {_as_label(label)}" for key, label in labels.items())
    return f"write {field}: {{matchLabels: {{{pairs}}}}}"


def _is_value(value: object) -> bool:
    return isinstance(value, str | bool | int | float) and not label_value_problem(_text(value))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_label(value: object) -> str:
    plain = isinstance(value, str) and value.replace("-", "").isalpha()
    return _text(value) if plain else quoted(_text(value))
