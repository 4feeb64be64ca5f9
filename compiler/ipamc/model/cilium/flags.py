"""Flags of Cilium and of kube-controller-manager: their texts as Go reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ipamc.model.cidr import BITS, Block, Odd, read_blocks
from ipamc.model.wording import listing, shown

_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_OF_OPERATOR = ("cluster-pool-", "auto-create-cilium-pod-ip-pools")
"""How keys of cilium-config begin that only the operator reads."""
_OF_CIDRS = re.compile(
    r"(?:cluster-pool-ipv[46]|ipv[46]-native-routing|cluster)-cidr|ipv[46]-cidrs|service-cluster-ip-range"
).fullmatch
_OF_POOLS = re.compile(r"(ipv[46]-(?:cidrs|mask-size)):(.*?)(?=;|$|,[^,;=]*=)").findall
"""Ranges and sizes in `name=ipv4-cidrs:CIDR,CIDR;ipv4-mask-size:24,name=…`, which creates pools."""
_FROM_ENVIRONMENT = re.compile(r"CILIUM_(\w+)=(.+)").fullmatch
_LIKE_CIDRS = re.compile(r"[0-9a-fA-F.:/,]+").fullmatch
_SWITCHES = (
    "enable-ipv4 enable-ipv6 enable-ipv4-masquerade enable-ipv6-masquerade enable-bpf-masquerade "
    "annotate-k8s-node auto-direct-node-routes enable-bgp-control-plane bgp-announce-pod-cidr "
    "disable-endpoint-crd allocate-node-cidrs k8s-require-ipv4-pod-cidr k8s-require-ipv6-pod-cidr"
)
HYBRID = "hybrid"
"""The `routing-mode` that Cilium has (cilium/cilium#45001, pkg/option/config.go), and a Cluster has not."""
_WORDS: Mapping[str, Iterable[str]] = {
    "routing-mode": ("native", "tunnel", HYBRID),
    "tunnel": ("disabled", "geneve", "vxlan"),
    **dict.fromkeys(_SWITCHES.split(), _BOOLEANS),
}
"""The values of flags that ipamc reads and that have few."""


def parse_bool(text: str) -> bool | None:
    """Return a boolean as Go's strconv.ParseBool reads it; None for others, which viper takes for false."""
    return _BOOLEANS.get(text)


def is_true(flags: Mapping[str, str], name: str) -> bool:
    """Return whether a flag is set and true. A dump may have only part of cilium-config."""
    return parse_bool(flags.get(name, "")) is True


def parse_size(text: str, family: int) -> int | None:
    """Return a prefix length of 1 to 32 or 128; None for other texts: with a zero first, Go reads octal."""
    found = re.fullmatch(r"[1-9]\d{0,2}", text, re.ASCII)
    return int(text) if found and int(text) <= BITS[family] else None


def parse_cidrs(text: str) -> tuple[list[Block], list[Odd]]:
    """Return the CIDRs of a list and its odd texts (`read_blocks`). Operators split at blanks (viper's
    GetStringSlice); from 1.20 on and in arguments at commas (hive's cell/config.go, pflag's StringSlice).
    """
    return read_blocks(part for part in re.split(r"[\s,]+", text) if part)


def same_value(one: str, other: str) -> bool:
    """Return whether two values are equal; lists of CIDRs are compared in any order."""
    items, others = (sorted(re.split(r"[\s,]+", text.strip())) for text in (one, other))
    return items == others or parse_bool(one) == parse_bool(other) is not None


def odd_values(flags: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the flags whose texts are not what Go reads, each with the text and what is wrong with it."""
    for name, text in sorted(flags.items()):
        family = 6 if "ipv6" in name else 4
        if name == _OF_OPERATOR[1]:
            found = (odd for key, value in _OF_POOLS(text) for odd in odd_values({key: value}))
            yield from ((name, f"{key}: {problem}") for key, problem in found)
        elif name in _WORDS and text and text not in _WORDS[name]:
            yield name, f"{shown(text)}, which is not {listing(_WORDS[name])}"
        elif "mask-size" in name and parse_size(text, 6 if name == "node-cidr-mask-size" else family) is None:
            yield name, f"{shown(text)}, which is not a prefix length"
        elif _OF_CIDRS(name):
            good, odd = parse_cidrs(text)
            others = [block for block in good if block.family != family] if "ipv" in name else ()
            yield from ((name, str(one)) for one in odd)
            yield from ((name, f"{block}, which is not IPv{family}") for block in others)


def arguments(words: Iterable[str]) -> dict[str, str]:
    """Return the flags of a command line without dashes as pflag reads them: `--name=value`, `--name value`;
    a name alone is "true". Of a flag that is repeated the last one counts; lists of CIDRs grow (StringSlice).
    A flag that is not given is read from `CILIUM_NAME=value` (viper's BindEnv), see `environment`.
    """
    given: list[tuple[str, list[str]]] = []
    outer: dict[str, str] = {}
    for word in words:
        if variable := _FROM_ENVIRONMENT(word):
            outer[variable[1].lower().replace("_", "-")] = variable[2]
        elif word.startswith("-"):
            name, sign, value = word.lstrip("-").partition("=")
            given.append((name, [value] if sign else []))
        elif given:
            given[-1][1].append(word)
    found: dict[str, str] = {}
    for name, values in given:
        first, *others = values or ["true"]
        every = (found.get(name, ""), first, *filter(_LIKE_CIDRS, others))
        found[name] = ",".join(every) if _OF_CIDRS(name) else first
    return outer | found


def environment(entries: object) -> Iterator[str]:
    """Yield the variables of a container that set flags of Cilium, each as one word for `arguments`.
    What is taken from another object than cilium-config is not known: no flag has the text valueFrom.
    """
    for entry in entries if isinstance(entries, list) else ():
        variable = entry if isinstance(entry, dict) else {}
        name, value, source = (variable.get(key) or "" for key in ("name", "value", "valueFrom"))
        if str(name).startswith("CILIUM_") and "cilium-config" not in str(source):
            yield f"{name}={','.join(str(value or (source and 'valueFrom')).split())}"


def operator_keys(words: Iterable[str]) -> dict[str, str]:
    """Return the arguments that override keys of cilium-config that nobody but the operator reads."""
    return {key: value for key, value in arguments(words).items() if key.startswith(_OF_OPERATOR)}
