"""cilium-config and the operator's arguments, against what the compile assumed."""

from __future__ import annotations

from typing import Any

import pytest

from ipamc.model.cidr import read_blocks
from ipamc.model.cilium.flags import arguments as read_arguments
from ipamc.model.cilium.operator_list import Assumed
from ipamc.review.live.cilium import Running, differences, running

POOL = {
    "ipam": "cluster-pool",
    "enable-ipv4": "true",
    "enable-ipv6": "false",
    "cluster-pool-ipv4-cidr": "10.0.0.0/24 10.1.0.0/24",
    "cluster-pool-ipv4-mask-size": "27",
}
MULTI = {"ipam": "multi-pool", "enable-ipv4": "true", "enable-ipv6": "false"}
ANNOTATED = {"ipam": "kubernetes", "enable-ipv4": "true", "enable-ipv6": "false", "annotate-k8s-node": "true"}


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("", ""),
        ("--debug --ipam=kubernetes", "kubernetes"),
        ("--ipam kubernetes --debug", "kubernetes"),
        ("--ipam=kubernetes --ipam=cluster-pool", "cluster-pool"),
        ("--ipam=cluster-pool --ipam kubernetes", "kubernetes"),
        ("--ipam-default-ip-pool=kubernetes", ""),
    ],
)
def test_the_last_argument_wins(words: str, value: str) -> None:
    assert read_arguments(words.split()).get("ipam", "") == value


def test_arguments_are_read_from_command_and_args_of_the_operator_alone() -> None:
    sidecar = {"name": "proxy", "args": ["--ipam=kubernetes"]}
    shell = {"name": "cilium-operator", "command": ["sh", "-c", "exec cilium-operator --ipam=crd"]}
    deployment = {"spec": {"template": {"spec": {"containers": [sidecar, shell]}}}}
    found = running({"data": {"ipam": "crd"}}, deployment)
    assert read_arguments(found.arguments or ()).get("ipam") == "crd"
    assert running(None, None) == Running(data=None, arguments=None)


def levels(assumed: Assumed, found: Running, *given: str) -> list[str]:
    return [item.level for item in differences(assumed, found, read_blocks(given)[0])]


def flags(data: dict[str, str], *, bystander: bool = False, applied: bool = False) -> Assumed:
    return Assumed(namespace="kube-system", data=data, bystander=bystander, applied=applied)


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize(
    ("arguments", "ipam", "expected"),
    [
        ((), "cluster-pool", ["refused"]),
        (("--ipam=kubernetes",), "cluster-pool", []),
        (("--ipam=kubernetes", "--ipam=cluster-pool"), "cluster-pool", ["refused"]),
        (None, "cluster-pool", []),
    ],
)
def test_a_bystander_hands_out_nothing(
    arguments: tuple[str, ...] | None, ipam: str, expected: list[str], *, applied: bool
) -> None:
    found = Running(data={**POOL, "ipam": ipam}, arguments=arguments)
    assert levels(flags(POOL, bystander=True, applied=applied), found) == expected


def test_an_operator_of_another_mode_hands_out_no_pod_cidrs() -> None:
    found = Running(data={**POOL, "ipam": "kubernetes"}, arguments=())
    (difference,) = differences(flags(POOL, bystander=True), found, ())
    assert "has ipam: kubernetes" in difference.text


@pytest.mark.parametrize("data", [POOL, MULTI])
def test_others_follow_the_config_map(data: dict[str, str]) -> None:
    assert levels(flags(data), Running(data=data, arguments=())) == []
    assert levels(flags(data), Running(data=data, arguments=(f"--ipam={data['ipam']}",))) == []
    assert levels(flags(data), Running(data=data, arguments=("--ipam=kubernetes",))) == ["refused"]


@pytest.mark.parametrize("data", [POOL, MULTI, ANNOTATED])
def test_before_cilium_is_installed_nothing_differs(data: dict[str, str]) -> None:
    for bystander in (False, True):
        assert levels(flags(data, bystander=bystander), Running(data=None, arguments=None)) == []


@pytest.mark.parametrize(
    ("assumed", "change", "foreign", "own"),
    [
        (MULTI, {"ipam": "cluster-pool"}, ["refused"], ["later"]),
        (MULTI, {"enable-ipv4": "false"}, ["later"], ["later"]),
        (MULTI, {"enable-ipv6": "true"}, ["refused"], ["later"]),
        (MULTI, {"enable-ipv6": None}, [], []),
        (MULTI, {"enable-ipv4": "True", "enable-ipv6": "f"}, [], []),
        (MULTI, {"enable-ipv4": "yes"}, ["later"], ["later"]),
        (MULTI, {"enable-ipv6": "T"}, ["refused"], ["later"]),
        (ANNOTATED, {"annotate-k8s-node": "True"}, [], []),
        (POOL, {"cluster-pool-ipv4-cidr": "10.0.0.7/24 ::ffff:10.1.0.0/120"}, [], []),
        (ANNOTATED, {"annotate-k8s-node": None}, ["refused"], []),
        (ANNOTATED, {"annotate-k8s-node": "false"}, ["refused"], []),
        (
            {**MULTI, "auto-create-cilium-pod-ip-pools": "a=b:c"},
            {"auto-create-cilium-pod-ip-pools": None},
            ["later"],
            [],
        ),
        (POOL, {"cluster-pool-ipv4-cidr": "10.1.0.0/24 10.0.0.0/24"}, [], []),
        (POOL, {"cluster-pool-ipv4-cidr": "10.0.0.0/24,10.1.0.0/24"}, [], []),
        (POOL, {"cluster-pool-ipv4-cidr": "10.0.0.0/23 10.1.0.0/24"}, ["refused"], ["restart"]),
        (POOL, {"cluster-pool-ipv4-cidr": "10.0.0.0/24 10.1.0.0/24 10.9.0.0/27"}, ["later"], ["later"]),
        (POOL, {"cluster-pool-ipv4-cidr": "10.0.0.0/24"}, ["later"], ["later"]),
        (POOL, {"cluster-pool-ipv4-mask-size": "24"}, ["refused"], ["restart"]),
    ],
)
def test_keys(assumed: dict[str, str], change: dict[str, Any], foreign: list[str], own: list[str]) -> None:
    live = {key: value for key, value in {**assumed, **change}.items() if value is not None}
    found = Running(data=live, arguments=())
    assert levels(flags(assumed), found, "10.9.0.0/27") == foreign
    assert levels(flags(assumed, applied=True), found, "10.9.0.0/27") == own


def test_arguments_come_before_the_config_map() -> None:
    free = Running(data=POOL, arguments=("--cluster-pool-ipv4-cidr=10.0.0.0/23,10.1.0.0/24",))
    assert levels(flags(POOL), free) == ["refused"]
    right = Running(
        data={**POOL, "cluster-pool-ipv4-cidr": "10.9.0.0/16"},
        arguments=("--cluster-pool-ipv4-cidr=10.0.0.0/24", "--cluster-pool-ipv4-cidr=10.1.0.0/24"),
    )
    assert levels(flags(POOL), right) == []


def test_a_bystanders_list_is_not_read() -> None:
    found = Running(data={**POOL, "cluster-pool-ipv4-cidr": "10.9.0.0/16"}, arguments=("--ipam=kubernetes",))
    assert levels(flags(POOL, bystander=True), found) == []
