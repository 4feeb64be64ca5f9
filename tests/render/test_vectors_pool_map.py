"""The value of `auto-create-cilium-pod-ip-pools`: read back by a reader of its grammar, it is the pools that were written.

The grammar is Cilium's (pkg/command/map_string.go and operator/pkg/ipam/allocator/multipool/pool_handler.go, 1.20.2). The reader here is stricter than
the operator's where the operator would silently ignore something: a field that it does not know, or a mask without CIDRs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.cidr import Block, parse_block
from tests.support import fleet

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "pool-map-string.json").read_text(encoding="utf-8")
)
SPECS = [vector for vector in VECTORS if "cidrs" in vector["in"]]

_PAIR_START = re.compile(r",(?=[^,=]*=)")
_PAIR = re.compile(r"([\w:;./@-]+)=([\w:;,./@-](?:[\w:;,./@ -]*[\w:;./@-])?)", re.ASCII)
_FIELD = re.compile(r"ipv([46])-(cidrs|mask-size):(.+)", re.ASCII)


class Part(NamedTuple):
    """One family of a pool."""

    cidrs: tuple[Block, ...]
    mask: int


Pools = dict[str, dict[int, Part]]


def read_map(text: str) -> dict[str, str]:
    """Read the outer map: `k=v,k=v`, where a comma belongs to the value unless a `=` follows before the next one; or a JSON object."""
    if text.startswith("{"):
        return {str(key): str(value) for key, value in json.loads(text).items()}
    found: dict[str, str] = {}
    for pair in _PAIR_START.split(text):
        match = _PAIR.fullmatch(pair)
        if not match or match[1] in found:
            raise ValueError(f"{text!r} is not formatted as key=value,key1=value1")
        found[match[1]] = match[2]
    return found


def read_spec(text: str) -> dict[int, Part]:
    """Read one pool: fields between semicolons, each once, CIDRs between commas."""
    fields: dict[tuple[int, str], str] = {}
    for field in text.replace(" ", "").split(";"):
        match = _FIELD.fullmatch(field)
        if not match or (int(match[1]), match[2]) in fields:
            raise ValueError(f"{field!r} is no field of a pool")
        fields[int(match[1]), match[2]] = match[3]
    if {family for family, key in fields if key == "cidrs"} != {
        family for family, key in fields if key == "mask-size"
    }:
        raise ValueError(f"{text!r} has CIDRs without a mask, or a mask without CIDRs")
    parts = {
        family: Part(tuple(map(parse_block, cidrs.split(","))), int(fields[family, "mask-size"]))
        for (family, key), cidrs in fields.items()
        if key == "cidrs"
    }
    assert all(block.family == family for family, part in parts.items() for block in part.cidrs)
    return parts


def read_pools(text: str) -> Pools:
    return {name: read_spec(spec) for name, spec in read_map(text).items()}


def documents(pools: Pools, reserved: Mapping[str, list[str]]) -> list[fleet.Document]:
    """Make a cluster whose pools are all created by the flag; they come in reverse."""
    families = [f"IPv{family}" for family in (4, 6) if any(family in parts for parts in pools.values())]
    made = [
        fleet.cluster(
            "multi-pool",
            ipFamilies=families,
            ipam={"pinning": "pool", "autoCreate": sorted(pools, reverse=True)},
        )
    ]
    for name in reversed(pools):
        parts = {
            f"ipv{family}": {"cidrs": [str(each) for each in part.cidrs], "blockSize": part.mask}
            for family, part in pools[name].items()
        }
        made.append(fleet.pool(name, **parts, reserved=reserved.get(name, [])))
    return made


def emitted(pools: Pools, reserved: Mapping[str, list[str]] | None = None) -> str:
    """Compile, and give the flag's value out of the rendered ConfigMap; Helm's values must say the same."""
    files = fleet.compiled(fleet.as_json(documents(pools, reserved or {}))).files
    assert "cilium/ippools.yaml" not in files
    text = str(yaml.safe_load(files["cilium/configmap.yaml"])["data"]["auto-create-cilium-pod-ip-pools"])
    values = yaml.safe_load(files["cilium/helm-values.yaml"])["ipam"]["operator"][
        "autoCreateCiliumPodIPPools"
    ]
    assert read_pools(text) == {
        name: {
            int(key[-1]): Part(tuple(map(parse_block, part["cidrs"])), part["maskSize"])
            for key, part in parts.items()
        }
        for name, parts in values.items()
    }
    return text


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["in"]))
def test_the_reader(vector: dict[str, Any]) -> None:
    if "err" in vector:
        with pytest.raises(ValueError, match=vector["err"]):
            read_map(vector["in"])
    else:
        assert read_map(vector["in"]) == vector["out"]
        assert read_map(json.dumps(vector["out"])) == vector["out"]


@pytest.mark.parametrize("text", ["", "a=1,", ",a=1", "a", "a=", "=1", "a=1 ,b=2", "a=1,a=2", "a=b=c"])
def test_what_the_reader_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="not formatted"):
        read_map(text)


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "ipv4-cidrs",
        "ipv4-cidrs:",
        "ipv4-cidrs:10.0.0.0/16",
        "ipv4-mask-size:24",
        "ipv4-cidr:10.0.0.0/16;ipv4-mask-size:24",
        "ipv4-cidrs:10.0.0.0/16;ipv4-mask-size:24;",
        "ipv4-cidrs:10.0.0.0/16;ipv4-mask-size:a",
        "ipv4-cidrs:10.0.0.0/16,;ipv4-mask-size:24",
        "ipv4-cidrs:10.0.0.0/16;ipv4-cidrs:10.1.0.0/16;ipv4-mask-size:24",
    ],
)
def test_what_is_no_pool(spec: str) -> None:
    with pytest.raises(ValueError, match=r"no field|without|invalid literal|is not a CIDR"):
        read_spec(spec)


@pytest.mark.parametrize("vector", SPECS, ids=lambda vector: str(vector["in"]))
def test_the_pools_of_a_vector_are_written_as_there(vector: dict[str, Any]) -> None:
    assert emitted(read_pools(vector["in"])) == vector["in"]


def test_what_is_reserved_is_left_out() -> None:
    pools = read_pools("a=ipv4-cidrs:10.0.0.0/24,10.0.1.0/24;ipv4-mask-size:26")
    assert (
        emitted(pools, {"a": ["10.0.0.0/26", "10.0.1.16/28"]})
        == "a=ipv4-cidrs:10.0.0.64/26,10.0.0.128/25,10.0.1.64/26,10.0.1.128/25;ipv4-mask-size:26"
    )


@st.composite
def some_pools(draw: st.DrawFn) -> Pools:
    names = draw(
        st.lists(
            st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,6}[a-z0-9])?", fullmatch=True).filter(valid),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    pools: Pools = {}
    for index, name in enumerate(names):
        cidrs = draw(st.lists(st.integers(0, 15), min_size=1, max_size=3, unique=True))
        both = {
            4: Part(
                tuple(parse_block(f"10.{index}.{16 * each}.0/20") for each in cidrs),
                draw(st.integers(20, 30)),
            ),
            6: Part(
                tuple(parse_block(f"fd00:{index}:{each:x}::/64") for each in cidrs), draw(st.integers(64, 80))
            ),
        }
        families = draw(st.sampled_from([(4,), (6,), (4, 6)]))
        pools[name] = {family: both[family] for family in families}
    return pools


def valid(name: str) -> bool:
    return ".." not in name and ".-" not in name and "-." not in name


@given(some_pools())
def test_what_is_written_reads_back_as_the_same_pools(pools: Pools) -> None:
    text = emitted(pools)
    assert read_pools(text) == pools
    assert list(read_map(text)) == sorted(pools)
