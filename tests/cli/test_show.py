"""`ipamc show` as a process: filters, formats, terminals and pipes."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import struct
import sys
import termios
from pathlib import Path

import jsonschema
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ipamc.cli import main
from ipamc.report.terminal_text import width
from ipamc.workspace import disk

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
  ipFamilies: [IPv4, IPv6]
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-a}
spec:
  nodeSelector: rack == "a"
  ipv4: {cidrs: [10.0.0.0/22, 10.1.0.0/24], blockSize: 26}
  ipv6: {cidrs: ["fd00::/48"], blockSize: 64}
  reserved: [10.0.3.0/24]
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-b}
spec:
  nodeSelector: rack == "b"
  ipv4: {cidrs: [10.2.0.0/24], blockSize: 26}
  ipv6: {cidrs: ["fd00:1::/48"], blockSize: 64}
"""
COMPILED, NOW = "1795000000", "1795100000"
"""2026-11-18, 2026-11-19."""


def inventory(a: int, b: int) -> str:
    names = [(f"a{number}", "a") for number in range(a)] + [(f"b{number}", "b") for number in range(b)]
    nodes = "".join(f"- {{name: {name}, labels: {{rack: {rack}}}, planned: true}}\n" for name, rack in names)
    return f"apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n{nodes}"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with one cluster, of which three nodes left, as the working directory."""
    folder = tmp_path / "clusters/lab"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER)
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    for day, nodes in ((COMPILED, inventory(9, 4)), (NOW, inventory(6, 4))):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", day)
        (folder / "nodes.yaml").write_text(nodes)
        assert main(["lock", "lab", "--leave", "all"]) == 0
    return tmp_path


def on_terminal(columns: int, *arguments: str, encoding: str = "utf-8", **environment: str) -> str:
    """Return what ipamc writes to a terminal of so many columns."""
    pid, ours = pty.fork()
    if pid == 0:  # pragma: no cover - another process
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        # readline, which pytest imports, has set COLUMNS where os.environ does not see it.
        variables = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": encoding, **environment}
        os.execve(sys.executable, [sys.executable, "-m", "ipamc", *arguments], variables)  # noqa: S606 - our own program
    parts = []
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # Linux: the other end is closed
            break
        if not data:
            break
        parts.append(data)
    os.waitpid(pid, 0)
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_terminal(lab: Path, columns: int) -> None:  # noqa: ARG001 - the working directory
    text = on_terminal(columns, "show", NO_COLOR="1")
    lines = text.splitlines()
    assert max(map(width, lines)) <= columns
    assert lines[0].startswith("lab: 10 nodes with 20 blocks")
    rack_b = next(line for line in lines if line.startswith("rack-b"))
    assert "█ 100%" in rack_b
    assert rack_b.rstrip().endswith("0 nodes")
    assert "2026-11-26" in text
    assert ("QUARANTINED" in text) == (columns == 120)


def test_a_terminal_is_coloured_unless_it_is_not_wanted(lab: Path) -> None:  # noqa: ARG001 - as above
    assert "\x1b[1;31m" in on_terminal(80, "show")
    assert "\x1b" not in on_terminal(80, "show", NO_COLOR="1")
    assert "\x1b" not in on_terminal(80, "show", TERM="dumb")


def test_a_terminal_without_utf_8_gets_ascii(lab: Path) -> None:  # noqa: ARG001 - as above
    text = on_terminal(80, "show", encoding="latin-1", NO_COLOR="1")
    assert text.isascii()
    assert "### 100%" in text


def test_columns_of_the_environment_win(lab: Path) -> None:  # noqa: ARG001 - as above
    assert max(map(width, on_terminal(120, "show", COLUMNS="50", NO_COLOR="1").splitlines())) <= 50


def show(
    capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0, verb: str = "show"
) -> tuple[str, str]:
    capsys.readouterr()
    assert main([verb, *arguments]) == code
    return capsys.readouterr()


def aggregates(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    return show(capsys, *arguments, code=code, verb="aggregates")


def test_a_pipe(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 - as above
    text, said = show(capsys)
    assert text.isascii()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) == 80
    assert said == ""


def test_filters(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 - as above
    text, _ = show(capsys, "--state", "quarantined", "--no-ranges")
    assert [line.split()[1] for line in text.splitlines() if "free on 2026-11-26" in line] == [
        "a6",
        "a7",
        "a8",
    ] * 2
    assert "rack-b" not in text
    assert "1 of 2 pools shown" in text
    text, _ = show(capsys, "--node", "b*", "--node", "a1", "--pool", "rack-b")
    assert " b3  held" in text
    assert " a1 " not in text


def test_a_name_that_nothing_has_is_said(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 - as above
    text, said = show(capsys, "--pool", "rak-b", code=1)
    assert text == ""
    assert said == "no pool of 1 cluster is named rak-b: did you mean 'rack-b'?\n"
    _, said = show(capsys, "--node", "a-6", code=1)
    assert said == "no node of 1 cluster is named a-6: did you mean 'a6'?\n"


def test_names_that_are_there_and_nothing_together_are_an_answer(
    lab: Path,  # noqa: ARG001 - as above
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, said = show(capsys, "--pool", "rack-b", "--state", "pending", "--state", "released")
    assert text == ""
    assert said == "1 cluster: no block of pool rack-b that is pending or released\n"


def test_json_keeps_its_schema(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 - as above
    schema = json.loads(disk.assets("schemas")["show.output.json"])
    jsonschema.Draft202012Validator.check_schema(schema)
    for arguments in ((), ("--show-blocks",), ("--node", "a6"), ("--pool", "rack-b")):
        found = json.loads(show(capsys, "--output", "json", *arguments)[0])
        jsonschema.Draft202012Validator(schema).validate(found)
    (pool, _) = found["clusters"][0]["pools"]
    assert (pool["pool"], pool["room"]) == ("rack-b", 0)


def test_csv(lab: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:  # noqa: ARG001 - as above
    assert main(["show", "--output", "csv"]) == 0
    text = capfdbinary.readouterr().out.decode()
    assert text.count("\r\n") == text.count("\n") == 5
    assert [row["pool"] for row in csv.DictReader(io.StringIO(text, newline=""))] == ["rack-a"] * 2 + [
        "rack-b"
    ] * 2
    assert main(["show", "--output", "csv", "--node", "b1"]) == 0
    assert len(capfdbinary.readouterr().out.splitlines()) == 3


def test_metrics(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 - as above
    text, _ = show(capsys, "--output", "prometheus")
    rooms = next(
        each for each in text_string_to_metric_families(text) if each.name == "ipamc_pool_room_nodes"
    )
    assert {sample.labels["pool"]: sample.value for sample in rooms.samples} == {"rack-a": 7, "rack-b": 0}
    _, said = show(capsys, "--output", "prometheus", "--node", "a1", code=64)
    assert "has metrics of pools" in said


def test_the_past(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --at quarantine is told as of that day."""
    for command in (
        "init -q .",
        "add .",
        "-c user.name=n -c user.email=e@example.com commit -qm x --date=@1795100000",
    ):
        assert os.system(f"cd {lab} && GIT_COMMITTER_DATE=@1796000000 git {command}") == 0  # noqa: S605 - our own words
    text, _ = show(capsys, "--at", "HEAD")
    assert "2026-11-26" not in text  # it is 2026-11-30 there: they are over
    assert "10 nodes" in text


def test_aggregates(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 - as above
    text, said = aggregates(capsys)
    assert text == (
        "lab: 6 prefixes of 20 blocks, held or pending\n"
        "rack-a  10.0.0.0/24      4 blocks\n"
        "rack-a  10.0.1.0/25      2 blocks\n"
        "rack-a  fd00::/62        4 blocks\n"
        "rack-a  fd00:0:0:4::/63  2 blocks\n"
        "rack-b  10.2.0.0/24      4 blocks\n"
        "rack-b  fd00:1::/62      4 blocks\n"
    )
    assert said == ""
    text, _ = aggregates(capsys, "--by", "rack", "--node", "a[01]")
    assert [line.split()[:2] for line in text.splitlines()[1:]] == [["a", "10.0.0.0/25"], ["a", "fd00::/63"]]
    text, _ = aggregates(capsys, "--state", "quarantined", "--pool", "rack-a")
    assert [line.split()[1] for line in text.splitlines()[1:]] == [
        "10.0.1.128/25",
        "10.0.2.0/26",
        "fd00:0:0:6::/63",
        "fd00:0:0:8::/64",
    ]


def test_aggregates_as_json_keep_their_schema(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 - as above
    schema = json.loads(disk.assets("schemas")["aggregates.output.json"])
    jsonschema.Draft202012Validator.check_schema(schema)
    for arguments in ((), ("--by", "rack"), ("--state", "released")):
        found = json.loads(aggregates(capsys, "--output", "json", *arguments)[0] or "{}")
        jsonschema.Draft202012Validator(schema).validate(found)


def test_prefix_lists_are_aggregates(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 - as above
    text, _ = aggregates(capsys, "--output", "frr")
    assert "ip prefix-list ipamc_lab_rack-b_v4 seq 5 permit 10.2.0.0/24 le 26\n" in text
    text, _ = aggregates(capsys, "--output", "ios-xr", "--match", "exact", "--by", "rack")
    assert "prefix-set ipamc_lab_b_v4\n  10.2.0.0/24\nend-set\n" in text
    assert "replace: route-filter-list ipamc_lab_rack-b_v6 {" in aggregates(capsys, "--output", "junos")[0]


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (("show", "--by", "rack"), "'ipamc aggregates CLUSTER --by LABEL' prints", 64),
        (
            ("show", "--aggregates"),
            "--aggregates is not an option of ipamc show: 'ipamc aggregates CLUSTER' prints",
            64,
        ),
        (
            ("show", "--output", "frr"),
            "'frr' is not a value of --output: 'ipamc aggregates CLUSTER --output frr' prints",
            64,
        ),
        (("show", "--runway"), "'ipamc forecast CLUSTER' prints", 64),
        (("show", "--what-if", "+3"), "'ipamc forecast CLUSTER --what-if CHANGE' prints", 64),
        (("aggregates", "--output", "csv"), "'csv' is not a value of --output", 64),
        (("aggregates", "--by", "rak"), "no node has a label rak: did you mean 'rack'?", 1),
    ],
)
def test_aggregates_refuse(
    lab: Path,  # noqa: ARG001 - as above
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
    code: int,
) -> None:
    assert said in show(capsys, *arguments[1:], verb=arguments[0], code=code)[1]


def test_reasons_of_reservations(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reasons = [{"cidr": f"10.0.3.{16 * number}/28", "reason": f"gateway {number}"} for number in range(7)]
    text = (lab / "clusters/lab/cluster.yaml").read_text()
    reserved = json.dumps([*reasons, "10.1.0.0/28", {"cidr": "fd00::/64", "reason": "\x1b[31m"}])
    (lab / "clusters/lab/cluster.yaml").write_text(text.replace("[10.0.3.0/24]", reserved))
    assert main(["show", "lab", "--output", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["clusters"]
    four, six = (pool["reserved"] for pool in found["pools"] if pool["pool"] == "rack-a")
    assert four == [*reasons, {"cidr": "10.1.0.0/28", "reason": ""}]
    assert six == [{"cidr": "fd00::/64", "reason": "\x1b[31m"}]
    assert main(["show", "lab"]) == 0
    rows = [row for row in capsys.readouterr().out.splitlines() if "reserved: " in row]
    assert rows == [
        *(f"  {one['cidr']} reserved: {one['reason']}" for one in reasons),
        r"  fd00::/64 reserved: \x1b[31m",
    ]
