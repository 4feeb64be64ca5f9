"""A member of an address space, as its dump shows it, beside the other members: ids, names and addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import dumps
from tests.support.in_process import ipamc
from tests.support.spaces import member

ENVIRONMENT = {"SOURCE_DATE_EPOCH": "1795305600", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
SPACE = """\
apiVersion: ipamc/v1alpha1
kind: AddressSpace
metadata: {name: fabric}
spec:
  ipv4: {cidrs: [10.0.0.0/12], prefixLength: 19}
"""
POOL = {"ipam": "cluster-pool", "enable_ipv4": "true", "cluster_pool_ipv4_cidr": "10.0.0.0/19"}
Audit = Callable[..., list[tuple[str, str]]]


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    """Return the audit of cluster a, with these fields below `spec.cilium` and a dump with these keys of cilium-config.
    a has 10.0.0.0/19, b 10.0.32.0/19, and c 10.0.64.0/19. c has clusterID 3 and the name gamma; b has none.
    """

    def write(name: str, text: str) -> None:
        path = tmp_path / "clusters" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def call(
        git: str, of: Mapping[str, str] | None, *more: Any, space: str = "fabric"
    ) -> list[tuple[str, str]]:
        cilium = {"a": git, "b": "", "c": ", clusterID: 3, clusterName: gamma"}
        for number, name in enumerate(cilium):
            text = member(name, f"cidrs: [10.0.{32 * number}.0/19]")
            text = text.replace("managedBy: helm", f"managedBy: helm{cilium[name]}")
            write(
                f"{name}/c.yaml",
                text if space or name != "a" else text.replace("  addressSpace: fabric\n", ""),
            )
        write("fabric/space.yaml", SPACE)
        done = ipamc("compile", "--jobs", "1", cwd=tmp_path, environment=ENVIRONMENT, one_stream=True)
        assert done.returncode == 0, done.stdout
        seen = [dumps.cilium_node("n1", "10.0.0.0/25"), dumps.cilium_node("n2", "10.0.0.128/25")]
        config = [] if of is None else [dumps.config_map(**{**POOL, **of})]
        (tmp_path / "dump.json").write_text(
            dumps.kubectl(dumps.node("n1"), dumps.node("n2"), *(more or seen), *config)
        )
        done = ipamc("audit", "a", "dump.json", cwd=tmp_path, environment=ENVIRONMENT, one_stream=True)
        assert "IPC0903" in done.stdout
        return re.findall(r"^(\w+)\[(?:IPC093[67])\]: (.*)$", done.stdout, re.MULTILINE)

    return call


ID, NAME = "cilium-config has cluster-id: ", "cilium-config has cluster-name: "
BOTH = ", clusterID: 1, clusterName: alpha"
UNKNOWN = ", but git has none, so no compile compares it with other clusters"


@pytest.mark.parametrize(
    ("git", "of", "found"),
    [
        ("", None, []),
        (BOTH, None, []),
        ("", {}, []),
        ("", {"cluster_id": "0", "cluster_name": "alpha"}, []),
        ("", {"cluster_id": "1", "cluster_name": "default"}, [("note", f"{ID}1{UNKNOWN}")]),
        ("", {"cluster_id": "3"}, [("error", f"{ID}3, which cluster c of the address space has too")]),
        (
            ", clusterID: 2",
            {"cluster_id": "2", "cluster_name": "gamma"},
            [("error", f"{NAME}gamma, which cluster c of the address space has too")],
        ),
        (BOTH, {"cluster_id": "1", "cluster_name": "alpha"}, []),
        (BOTH, {"cluster_id": " 1", "cluster_name": "alpha\n"}, []),
        (BOTH, {}, [("warning", f"{ID}0, but spec.cilium.clusterID of a is 1")]),
        (
            BOTH,
            {"cluster_id": "", "cluster_name": "alpha"},
            [("warning", f"{ID}0, but spec.cilium.clusterID of a is 1")],
        ),
        (
            BOTH,
            {"cluster_id": "255", "cluster_name": "3"},
            [
                ("warning", f"{ID}255, but spec.cilium.clusterID of a is 1"),
                ("warning", f"{NAME}3, but spec.cilium.clusterName of a is alpha"),
            ],
        ),
        (
            ", clusterName: alpha",
            {},
            [("warning", f"{NAME}default, but spec.cilium.clusterName of a is alpha")],
        ),
        (", clusterID: 511", {"cluster_id": "511"}, []),
        (
            ", clusterID: 511",
            {"cluster_id": "512"},
            [("warning", f"{ID}512, but spec.cilium.clusterID of a is 511")],
        ),
        (
            ", clusterID: 1",
            {"cluster_id": "-1"},
            [("warning", f"{ID}-1, but spec.cilium.clusterID of a is 1")],
        ),
        (
            ", clusterID: 1",
            {"cluster_id": "one"},
            [("warning", f"{ID}one, but spec.cilium.clusterID of a is 1")],
        ),
    ],
)
def test_identity(audit: Audit, git: str, of: Mapping[str, str] | None, found: list[tuple[str, str]]) -> None:
    assert audit(git, of) == found


def test_without_a_space_a_cluster_is_compared_with_git_alone(audit: Audit) -> None:
    assert audit("", {"cluster_id": "3", "cluster_name": "gamma"}, space="") == []
    assert audit(BOTH, {"cluster_id": "3", "cluster_name": "alpha"}, space="") == [
        ("warning", f"{ID}3, but spec.cilium.clusterID of a is 1")
    ]


N1 = dumps.cilium_node("n1", "10.0.0.0/25")
OF_B = '10.0.32.0/19 of pool "pods" of cluster b'


@pytest.mark.parametrize(
    ("of", "more", "found"),
    [
        ({}, [N1, dumps.cilium_node("n2", "10.0.96.0/25")], []),  # of no member
        ({}, [N1, dumps.cilium_node("n2", "10.0.32.0/25")], [f"10.0.32.0/25 of node n2 overlaps {OF_B}"]),
        (
            {},
            [
                dumps.cilium_node("n1", "10.0.32.0/25"),
                dumps.cilium_node("n2", "10.0.33.0/25", "10.0.65.0/25"),
            ],
            [
                f"10.0.32.0/25 of node n1 overlaps {OF_B}, and 1 more overlap",
                '10.0.65.0/25 of node n2 overlaps 10.0.64.0/19 of pool "pods" of cluster c',
            ],
        ),
        (
            {},
            [N1, dumps.pool("green", mask=26, cidrs=["10.0.0.0/18"])],
            [f"10.0.0.0/18 of CiliumPodIPPool green overlaps {OF_B}"],
        ),
        (
            {"cluster_pool_ipv4_cidr": "10.0.0.0/19 10.0.48.0/20"},
            [N1],
            [f"10.0.48.0/20 of the operator's list overlaps {OF_B}"],
        ),
        ({"cluster_pool_ipv4_cidr": "10.0.0.0/19 10.0.48.0/20", "ipam": "kubernetes"}, [N1], []),
        ({"cluster_pool_ipv4_cidr": "nonsense"}, [N1], []),
    ],
)
def test_addresses(audit: Audit, of: Mapping[str, str], more: list[Any], found: list[str]) -> None:
    assert audit("", of, *more) == [("error", text) for text in found]


def test_a_bystander_gives_nothing_out_of_its_list(audit: Audit) -> None:
    operator = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "cilium-operator", "namespace": "kube-system"},
        "spec": {
            "template": {"spec": {"containers": [{"name": "cilium-operator", "args": ["--ipam=kubernetes"]}]}}
        },
    }
    assert audit("", {"cluster_pool_ipv4_cidr": "10.0.48.0/20"}, N1, operator) == []
