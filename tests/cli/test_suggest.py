"""`ipamc suggest pool` over the files of several clusters: what counts as taken, what is printed, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from ipamc.cli import main
from ipamc.report.suggestions import UNKNOWN
from ipamc.workspace.disk import assets

SCHEMA = json.loads(assets("schemas")["suggest_pool.output.json"])

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec:
  cilium: {version: "1.18", managedBy: helm, routingMode: native, nativeRoutingCIDR: 10.0.0.0/21}
  ipam: {mode: MODE}
  addressSpace: fabric-1
  excludedCIDRs: [EXCLUDED]
"""
POOL = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-a}
spec:
  ipv4: {cidrs: [CIDR], blockSize: 27}
  nodeSelector: rack == "a"
"""
NODES = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {rack: b}}
status: {addresses: [{type: InternalIP, address: 10.0.5.9}]}
"""
SEEN = """\
apiVersion: cilium.io/v2
kind: CiliumNode
metadata: {name: ghost}
spec: {ipam: {podCIDRs: [10.0.6.0/27]}}
"""
RED_LOCK = """\
{"lock":1,"cluster":"red","mode":"cluster-pool","shards":1}
{"block":"10.0.3.0/27","node":"gone","pool":"old","quarantined":"2026-11-20"}
{"block":"10.0.7.0/27","node":"gone","pool":"old","released":true}
"""
PUBLISHED = """\
apiVersion: cilium.io/v2alpha1
kind: CiliumPodIPPool
metadata: {name: old}
spec: {ipv4: {cidrs: [10.0.4.0/24], maskSize: 27}}
"""


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + (".lock" if name == "ipam" else ".yaml"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(autouse=True)
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Blue has 10.0.0.0/24; red, of the same address space, has something in each of the other /24 but .7."""

    def cluster(name: str, mode: str, excluded: str) -> str:
        return CLUSTER.replace("NAME", name).replace("MODE", mode).replace("EXCLUDED", excluded)

    write(
        tmp_path / "clusters/blue",
        cluster=cluster("blue", "cluster-pool", ""),
        pools=POOL.replace("CIDR", "10.0.0.0/24"),
    )
    # Red keeps a block in quarantine outside of its pools, shows one without a node, and excludes 10.0.2.0/28.
    write(
        tmp_path / "clusters/red",
        cluster=cluster("red", "cluster-pool", "10.0.2.0/28"),
        pools=POOL.replace("CIDR", "10.0.1.0/24"),
        nodes=NODES,
        seen=SEEN,
        ipam=RED_LOCK.replace('"node":"gone","pool":"old"', '"pool":"old","node":"gone"'),
    )
    # Green was compiled in multi-pool mode with a pool that its files do not have any more.
    write(
        tmp_path / "clusters/green",
        cluster=cluster("green", "multi-pool", ""),
        ipam='{"lock":1,"cluster":"green","mode":"multi-pool","shards":1}\n',
        rendered__cilium__ippools=PUBLISHED,
    )
    write(
        tmp_path / "clusters/alone", cluster=cluster("alone", "cluster-pool", "").replace("fabric-1", "none")
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def suggest(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["suggest", "pool", *arguments])
    return code, *capsys.readouterr()


def places(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    _, out, _ = suggest(capsys, *arguments, "--output", "json", "--count", "9")
    answer = json.loads(out)
    jsonschema.validate(answer, SCHEMA)
    return [found["cidr"] for found in answer["suggestions"]]


def test_whatever_a_cluster_of_the_address_space_has_is_taken(
    capsys: pytest.CaptureFixture[str], fleet: Path
) -> None:
    assert places(capsys, "blue", "--size", "24", "--from", "10.0.0.0/21") == ["10.0.7.0/24"]
    for owner, of_green, freed in (
        ("red/ipam.lock", False, "10.0.3.0/24"),
        ("red/seen.yaml", False, "10.0.6.0/24"),
        ("red/nodes.yaml", False, "10.0.5.0/24"),
        ("green/rendered/cilium/ippools.yaml", True, "10.0.4.0/24"),
    ):
        path = fleet / "clusters" / owner
        text = path.read_text()
        path.unlink()
        assert freed in places(capsys, "blue", "--size", "24", "--from", "10.0.0.0/21"), (owner, of_green)
        path.write_text(text)


def test_the_networks_of_machines_are_left_alone(capsys: pytest.CaptureFixture[str], fleet: Path) -> None:
    """A node of red has 10.0.5.9: the others of its network are not far."""
    (fleet / "clusters/red/cluster.yaml").write_text(
        (fleet / "clusters/red/cluster.yaml").read_text().replace("10.0.2.0/28", "")
    )
    assert places(capsys, "blue", "--size", "26", "--from", "10.0.5.0/24") == []


def test_what_another_cluster_excludes_around_a_range_it_keeps_free(
    capsys: pytest.CaptureFixture[str], fleet: Path
) -> None:
    """Red excludes the network of blue, beside others that blue must not have either."""
    cluster = fleet / "clusters/red/cluster.yaml"
    cluster.write_text(cluster.read_text().replace("10.0.2.0/28", "10.0.0.0/21, 10.0.7.0/28"))
    assert places(capsys, "blue", "--size", "24", "--from", "10.0.0.0/21") == ["10.0.2.0/24"]
    assert places(capsys, "green", "--size", "24", "--from", "10.0.0.0/21") == []


def test_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert suggest(capsys, "blue", "--size", "25", "--count", "2") == (
        0,
        """\
2 places for a /25 for a new pool in 10.0.0.0/21 (nativeRoutingCIDR), 10.0.0.0/8 (has a pool); taken: ranges of 3 clusters
1. 10.0.2.128/25  4 blocks of /27
   shares 10.0.0.0/22 with a range of cluster blue (10.0.0.0/24)
   shares 10.0.0.0/22 with a range of the address space (10.0.1.0/24)
   fills a gap between ranges
2. 10.0.3.128/25  4 blocks of /27
   shares 10.0.0.0/22 with a range of cluster blue (10.0.0.0/24)
   shares 10.0.0.0/22 with a range of the address space (10.0.1.0/24)
   fills a gap between ranges

# a new pool with 10.0.2.128/25; set its name and nodeSelector
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: new-1}
spec:
  ipv4: {cidrs: [10.0.2.128/25], blockSize: 27}
  nodeSelector: 'rack == "CHANGE-ME"'
""",
        f"{UNKNOWN}\n",
    )


def test_a_pool_that_grows(capsys: pytest.CaptureFixture[str], fleet: Path) -> None:
    code, out, _ = suggest(capsys, "blue", "--pool", "rack-a", "--size", "24", "--count", "1")
    assert (code, out.split("\n\n")[1]) == (
        0,
        """\
# pool rack-a in clusters/blue/pools.yaml with 10.0.7.0/24
spec:
  ipv4:
    cidrs: [10.0.0.0/24, 10.0.7.0/24]
""",
    )
    assert "outside nativeRoutingCIDR" not in out
    _, out, _ = suggest(capsys, "blue", "--pool", "rack-a", "--size", "20", "--count", "1")
    assert "outside nativeRoutingCIDR 10.0.0.0/21: agents masquerade its pods until you widen that" in out
    # What is suggested compiles, beside the other clusters of the address space.
    path = fleet / "clusters/blue/pools.yaml"
    document = yaml.safe_load(path.read_text())
    document["spec"]["ipv4"]["cidrs"] = ["10.0.0.0/24", "10.0.7.0/24"]
    path.write_text(yaml.safe_dump(document))
    assert main(["compile", "blue"]) == 0


def test_a_pool_of_another_dialect_gets_one_beside_it(
    capsys: pytest.CaptureFixture[str], fleet: Path
) -> None:
    (fleet / "clusters/blue/pools.yaml").write_text(
        "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {name: rack-a}\n"
        "spec: {cidr: 10.0.0.0/24, blockSize: 27, nodeSelector: rack == 'a'}\n"
    )
    _, out, _ = suggest(capsys, "blue", "--pool", "rack-a", "--size", "24", "--count", "1")
    pasted = yaml.safe_load(out.split("\n\n")[1])
    assert pasted["metadata"] == {"name": "rack-a-2"}
    assert pasted["spec"] == {
        "ipv4": {"cidrs": ["10.0.7.0/24"], "blockSize": 27},
        "nodeSelector": "rack == 'a'",
    }


def test_the_new_cluster_of_an_address_space(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = suggest(capsys, "--address-space", "fabric-1", "--size", "16", "--output", "json")
    found = json.loads(out)
    jsonschema.validate(found, SCHEMA)
    assert (code, found["cluster"], found["clusters"]) == (0, None, ["blue", "green", "red"])
    assert found["suggestions"][0]["cidr"] == "10.1.0.0/16"


def test_a_cluster_that_cannot_be_read_hides_what_it_has(
    capsys: pytest.CaptureFixture[str], fleet: Path
) -> None:
    (fleet / "clusters/red/pools.yaml").write_text("kind: [")
    code, out, err = suggest(capsys, "blue", "--size", "24")
    assert (code, out) == (1, "")
    assert "clusters/red/pools.yaml:1" in err
    assert "no suggestion: a suggestion needs the addresses of all clusters of the address space" in err
    # As for a compile, that counts where not even its address space is known; elsewhere it does not.
    (fleet / "clusters/red/pools.yaml").unlink()
    (fleet / "clusters/alone/pools.yaml").write_text(POOL.replace("CIDR", "10.0.0.0/33"))
    assert suggest(capsys, "blue", "--size", "24")[0] == 1
    cluster = fleet / "clusters/alone/cluster.yaml"
    cluster.write_text(cluster.read_text().replace("  addressSpace: none\n", ""))
    assert suggest(capsys, "blue", "--size", "24")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("blue --size 21 --from 10.0.0.0/21", 1, "no /21 is free in 10.0.0.0/21 (--from): the largest free block is 10.0.7.0/24"),
        ("blue --size 48 --family IPv6", 1, "no IPv6 network to search"),
        ("--size 24", 64, "there are several clusters: name one, or give --address-space"),
        ("blue --size 24 --address-space x", 64, "CLUSTER names its own address space: omit --address-space"),
        ("--address-space typo --size 24", 64, "no cluster belongs to address space 'typo'"),
        ("--address-space fabric-1 --pool rack-a --size 24", 64, "--pool needs CLUSTER: name the cluster of the pool"),
        ("blue --pool rak-a --size 24", 64, "cluster blue has no pool 'rak-a'; did you mean 'rack-a'?"),
        ("blue --pool rack-a --size 28", 64, "a /28 is too small for a block of pool rack-a, which is a /27"),
        ("blue --size 24 --from 10.0.0.1/8", 64, "host bits set; write 10.0.0.0/8"),
        ("blue --size 24 --from 10.0.0.0/25", 64, "--from 10.0.0.0/25 has no block of /24"),
        ("blue --size 24 --from 10.0.0.0/8 --from fd00::/8", 64, "--from has both families"),
        ("blue --size 24 --from 10.0.0.0/8 --family IPv6", 64, "--from does not match --family IPv6"),
        ("blue --size 33 --family IPv4", 64, "--size 33: IPv4 has prefixes of 1 to 32"),
        ("alone --size 24 --from 10.0.0.0/24", 0, "0 clusters"),
    ],
)  # fmt: skip
def test_what_is_refused(capsys: pytest.CaptureFixture[str], arguments: str, code: int, said: str) -> None:
    found, out, err = suggest(capsys, *arguments.split())
    assert found == code
    assert said.replace("0 clusters", "1 cluster") in out + err
