"""Texts as Go reads them: booleans, lists of CIDRs, prefix lengths, command lines."""

from __future__ import annotations

import pytest

from ipamc.model.cidr import parse_address, read_blocks
from ipamc.model.cilium.flags import (
    arguments,
    odd_values,
    operator_keys,
    parse_bool,
    parse_cidrs,
    parse_size,
    same_value,
)

TRUE, FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, True) for text in TRUE),
        *((text, False) for text in FALSE),
        *((text, None) for text in ("", "tRUE", "yes", "on", " true", "true\n", "01", "\uff11")),
    ],
)
def test_a_boolean_is_what_parse_bool_accepts(text: str, value: bool | None) -> None:  # noqa: FBT001 - a row
    assert parse_bool(text) is value


@pytest.mark.parametrize(
    ("text", "blocks", "odd"),
    [
        ("", [], {}),
        ("10.1.0.0/16 10.2.0.5/16", ["10.1.0.0/16", "10.2.0.0/16"], {"10.2.0.5/16": "10.2.0.0/16"}),
        ("10.1.0.0/16,10.2.0.0/16,", ["10.1.0.0/16", "10.2.0.0/16"], {}),
        (" 10.1.0.0/16 ,\n fd00::/104\t", ["10.1.0.0/16", "fd00::/104"], {}),
        ("::ffff:10.1.0.0/122", ["10.1.0.0/26"], {"::ffff:10.1.0.0/122": "10.1.0.0/26"}),
        ("::ffff:10.1.0.5/122", ["10.1.0.0/26"], {"::ffff:10.1.0.5/122": "10.1.0.0/26"}),
        ("fd00::5/64", ["fd00::/64"], {"fd00::5/64": "fd00::/64"}),
        ("FD00:0::/64", ["fd00::/64"], {}),
        ("::ffff:10.1.0.0/90", [], {"::ffff:10.1.0.0/90": "None"}),
        ("010.1.0.0/16", [], {"010.1.0.0/16": "None"}),
        ("10.1.0.0", [], {"10.1.0.0": "None"}),
        ("10.1.0.0/33", [], {"10.1.0.0/33": "None"}),
        ("fe80::1%eth0/64", [], {"fe80::1%eth0/64": "None"}),
        ("[10.1.0.0/16]", [], {"[10.1.0.0/16]": "None"}),
    ],
)
def test_a_list_of_cidrs(text: str, blocks: list[str], odd: dict[str, str]) -> None:
    good, bad = parse_cidrs(text)
    assert list(map(str, good)) == blocks
    assert {one.text: str(one.block) for one in bad} == odd


def test_what_is_no_text_is_odd_and_no_crash() -> None:
    good, odd = read_blocks([None, 7, {"cidr": "10.0.0.0/8"}, "10.0.0.0/8"])
    assert list(map(str, good)) == ["10.0.0.0/8"]
    assert len(odd) == 3


def test_an_ipv4_mapped_address_is_one_of_ipv4() -> None:
    assert parse_address("::ffff:10.0.0.5") == parse_address("10.0.0.5")


@pytest.mark.parametrize(
    ("text", "family", "size"),
    [("24", 4, 24), ("33", 4, None), ("120", 6, 120), ("129", 6, None), ("0", 4, None), ("024", 4, None)]
    + [(text, 4, None) for text in ("", " 24", "/24", "0x18", "24.0", "²")],
)
def test_a_prefix_length(text: str, family: int, size: int | None) -> None:
    assert parse_size(text, family) == size


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("cilium-operator --debug --ipam=crd", {"debug": "true", "ipam": "crd"}),
        ("--ipam crd --ipam=kubernetes", {"ipam": "kubernetes"}),
        (
            "--cluster-cidr=10.0.0.0/8,10.1.0.0/16 --cluster-cidr 10.2.0.0/16",
            {"cluster-cidr": "10.0.0.0/8 10.1.0.0/16 10.2.0.0/16"},
        ),
        ("--cluster-cidr=10.0.0.0/8 10.1.0.0/16", {"cluster-cidr": "10.0.0.0/8 10.1.0.0/16"}),
    ],
)
def test_a_command_line(words: str, flags: dict[str, str]) -> None:
    found = arguments(words.split())
    assert {key: " ".join(value.replace(",", " ").split()) for key, value in found.items()} == flags


def test_only_what_the_operator_alone_reads_overrides_cilium_config() -> None:
    words = ["--enable-ipv6=true", "--cluster-pool-ipv4-mask-size=25", "--ipam=kubernetes"]
    assert operator_keys(words) == {"cluster-pool-ipv4-mask-size": "25"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("True", "true", True), ("1", "0", False), ("a b", "b,a", True), ("yes", "true", False), ("", "", True)],
)
def test_equal_values(one: str, other: str, same: bool) -> None:  # noqa: FBT001 - a row of a table
    assert same_value(one, other) is same


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("enable-ipv4", "True", ""),
        ("enable-ipv4", "yes", "which is not 1, t"),
        ("enable-policy", "default", ""),
        ("routing-mode", "Native", "which is not native, tunnel or hybrid"),
        ("cluster-pool-ipv4-mask-size", "33", "which is not a prefix length"),
        ("node-cidr-mask-size-ipv6", "64", ""),
        ("node-cidr-mask-size", "x", "which is not a prefix length"),
        ("cluster-pool-ipv4-cidr", "fd00::/104", "fd00::/104, which is not IPv4"),
        ("cluster-cidr", "10.0.0.0/8,fd00::/56", ""),
        ("service-cluster-ip-range", "10.96.0.1/12", "which is read as 10.96.0.0/12"),
        ("ipv4-native-routing-cidr", "10.0.0/8", "which is neither a CIDR nor an address"),
    ],
)
def test_a_flag_that_is_not_what_it_says(name: str, text: str, problem: str) -> None:
    found = list(odd_values({name: text}))
    assert len(found) == bool(problem)
    assert all(key == name and problem in words for key, words in found)
