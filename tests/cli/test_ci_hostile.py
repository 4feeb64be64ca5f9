"""`ipamc ci` against a forge, a kubectl and people that mean harm: no token gets out, and every answer is one line or good."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from ipamc.workspace import remote
from tests.cli import test_ci, test_ci_apply
from tests.cli.test_ci import Forge, by, on_github, on_gitlab, serving
from tests.cli.test_ci_apply import Cluster
from tests.support.pipelines import Repository, inventory

MARK = "<!-- ipamc ci comment -->"
TOKEN = "s3cret-T0KEN"  # noqa: S105 - of nobody

# A module's fixtures, where the helpers that they are made of are.
made, repository, forge = test_ci.made, test_ci.repository, test_ci.forge
made_cluster = test_ci_apply.made


def comment(repository: Repository, url: str, where: Any, code: int, **more: str) -> str:
    """Post a plan; return what is printed, which has no token."""
    repository.write("plan.md", "### the plan\n")
    variables = {**where(url), "GITHUB_TOKEN": TOKEN, "IPAMC_TOKEN": TOKEN, **more}
    said = repository.run("ipamc", "ci", "comment", "plan.md", code=code, **variables)
    assert TOKEN not in said
    assert "Traceback" not in said
    return said


# Whose comment it is.


@pytest.mark.parametrize("where", [on_github, on_gitlab])
def test_a_comment_like_ours_of_somebody_else_is_left_alone(
    repository: Repository, forge: tuple[type[Forge], str], where: Any
) -> None:
    handler, url = forge
    theirs = {"id": 0, "body": f"{MARK}\nall is well", **by("github-actions", 7)}
    nobody = {"id": 1, "body": f"{MARK}\nall is well", "user": None, "author": None}
    handler.comments += [dict(theirs), dict(nobody)]
    assert "comment posted" in comment(repository, url, where, 0)
    assert "comment updated" in comment(repository, url, where, 0)
    assert handler.comments[:2] == [theirs, nobody]
    assert [entry["body"] for entry in handler.comments[2:]] == [f"{MARK}\n### the plan\n"]


def test_of_several_comments_of_ours_the_newest_is_replaced(
    repository: Repository, forge: tuple[type[Forge], str]
) -> None:
    handler, url = forge
    handler.comments += [
        {"id": number, "body": f"{MARK}\nold", **by("github-actions[bot]", 9)} for number in (0, 1)
    ]
    comment(repository, url, on_github, 0)
    assert [entry["body"] for entry in handler.comments] == [f"{MARK}\nold", f"{MARK}\n### the plan\n"]


class Odd(BaseHTTPRequestHandler):
    """An API that answers with the bytes that it is given for a path, and remembers what it was asked."""

    answers: dict[str, bytes]
    asked: list[tuple[str, str]]
    code = 200
    location = ""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its signature
        """Say nothing."""

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        token = self.headers.get("Authorization") or self.headers.get("Private-Token") or ""
        self.asked.append((self.path, token))
        path = self.path.partition("?")[0].rpartition("/")[2]
        data = self.answers.get(path, b"{}")
        self.send_response(self.code)
        if self.location:
            self.send_header("Location", self.location + self.path)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_PUT = answer  # noqa: N815 - its names


@pytest.fixture
def odd() -> Iterator[tuple[type[Odd], str]]:
    handler = type("OneOdd", (Odd,), {"answers": {}, "asked": []})
    with serving(handler) as url:
        yield handler, url


@pytest.mark.deep(part=3)
@pytest.mark.parametrize(
    "answer",
    [
        b"{}",
        b"null",
        b'{"data":null,"errors":[{"message":"Resource not accessible by integration"}]}',
        b'{"id":""}',
    ],
)
@pytest.mark.parametrize("where", [on_github, on_gitlab])
def test_where_the_forge_does_not_tell_who_we_are_a_new_comment_is_posted(
    repository: Repository, odd: tuple[type[Odd], str], where: Any, answer: bytes
) -> None:
    handler, url = odd
    handler.answers |= {"graphql": answer, "user": answer}
    said = comment(repository, url, where, 0)
    assert "the token's owner is unknown" in said
    assert "comment posted" in said


ODD = {
    "a mapping for a list": b'{"message": "Moved"}',
    "null": b"null",
    "a text": b'"no"',
    "nothing": b"",
    "HTML": b"<html>log in</html>",
    "a number for a text": b'[{"id": 1, "body": 3}]',
    "a text for a number": b'[{"id": "1/../../x", "body": ""}]',
    "no id": b'[{"body": "x"}]',
    "a list of nothing": b"[null]",
    "5,000 digits": b'[{"id": ' + b"9" * 5000 + b"}]",
    "not UTF-8": b'[{"id": 1, "body": "\xff"}]',
    "half a surrogate": b'[{"id": 1, "body": "\\ud800"}]',
    "deep": b'[{"id": 1, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]",
    "cut": b'[{"id": 1, "bo',
    "a number that is none": b'[{"id": NaN}]',
}


@pytest.mark.deep(part=3)
@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
def test_an_odd_answer_is_one_line(repository: Repository, odd: tuple[type[Odd], str], answer: bytes) -> None:
    handler, url = odd
    handler.answers |= {"graphql": b'{"data":{"viewer":{"login":"b"}}}', "comments": answer}
    said = comment(repository, url, on_github, 1)
    assert said.startswith("error: GET http://127.0.0.1:")
    assert ": not an answer of this API: " in said
    assert said.count("\n") == 1


@pytest.mark.deep(part=3)
@pytest.mark.parametrize("answer", [*ODD.values(), b'[{"sha": "--output=x"}]', b'[{"sha": 7}]'])
def test_an_odd_list_of_pipelines_lists_every_cluster(
    repository: Repository, odd: tuple[type[Odd], str], answer: bytes
) -> None:
    handler, url = odd
    handler.answers["pipelines"] = answer
    variables = {**on_gitlab(url), "CI_COMMIT_BRANCH": "main", "IPAMC_TOKEN": TOKEN}
    said = test_ci.find(repository, **variables)
    assert "listing all clusters: last-success cannot be compared" in said
    assert {"blue", "red"} <= set(said.splitlines())


# The token.


def test_a_token_does_not_follow_a_redirect(repository: Repository, odd: tuple[type[Odd], str]) -> None:
    handler, url = odd
    thief: type[Odd] = type("Thief", (Odd,), {"answers": {}, "asked": []})
    with serving(thief) as elsewhere:
        handler.code, handler.location = 307, elsewhere
        assert "307 a redirect, which ipamc does not follow" in comment(repository, url, on_github, 1)
        for code in (301, 302, 303, 308):
            handler.code = code
            comment(repository, url, on_gitlab, 1)
    assert thief.asked == []
    assert {token for _, token in handler.asked} == {f"Bearer {TOKEN}", TOKEN}


@pytest.mark.deep(part=3)
@pytest.mark.parametrize(
    "token",
    [
        f"{TOKEN}\n",
        f"{TOKEN}\r\nX: y",
        f"{TOKEN}\x00"[:-1] + "\t",
        f"ü{TOKEN}",
        f"€{TOKEN}",
        f"{TOKEN} ",
        " ",
    ],
)
@pytest.mark.parametrize("where", [on_github, on_gitlab])
def test_a_token_that_no_header_can_have_is_named_and_not_printed(
    repository: Repository, odd: tuple[type[Odd], str], where: Any, token: str
) -> None:
    handler, url = odd
    said = comment(repository, url, where, 1, GITHUB_TOKEN=token, IPAMC_TOKEN=token)
    assert "_TOKEN is not a token: it has a space, a line break or a character outside of ASCII" in said
    assert handler.asked == []


@pytest.mark.parametrize("code", [401, 403, 404, 500])
def test_a_server_that_says_the_token_back_does_not_get_it_printed(
    repository: Repository, odd: tuple[type[Odd], str], code: int
) -> None:
    handler, url = odd
    handler.code = code
    body = b"x" * 290 + TOKEN.encode() + b" " + TOKEN.encode()  # where the text is cut, too
    handler.answers |= dict.fromkeys(("graphql", "comments"), body)
    said = comment(repository, url, on_github, 1)
    assert f"{code} xxx" in said
    assert TOKEN[:6] not in said


@pytest.mark.deep(part=3)
@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://example.org",
        "file:///etc/passwd",
        "https://",
        "https://:80",
        "https://example.org:port",
        "https://example.org:99999",
        "https://exa mple.org",
        "https://example.org/\n",
        "https://example.org/ü",
        "https://[::1",
        f"https://user:{TOKEN}@example.org",
        f"https://example.org/?token={TOKEN}",
        f"https://example.org/#{TOKEN}",
    ],
)
def test_an_odd_url_of_an_api_is_refused_and_not_printed(repository: Repository, url: str) -> None:
    said = comment(repository, url, on_github, 1)
    assert said.startswith("error: GITHUB_API_URL ")
    assert said.count("\n") == 1


@pytest.mark.deep(part=3)
@pytest.mark.parametrize(
    ("where", "name"),
    [(on_github, "GITHUB_REPOSITORY"), (on_gitlab, "CI_PROJECT_ID"), (on_gitlab, "CI_MERGE_REQUEST_IID")],
)
@pytest.mark.parametrize("value", ["../../user", "5/../6", "a b", "5?x=y", "5#", "5\nx"])
def test_an_odd_part_of_a_path_is_refused(repository: Repository, where: Any, name: str, value: str) -> None:
    said = comment(repository, "http://127.0.0.1:9", where, 1, **{name: value})
    assert f"{name} is " in said


def test_a_server_that_drips_or_floods_is_left(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, odd: tuple[type[Odd], str]
) -> None:
    handler, url = odd
    monkeypatch.setattr(remote, "LARGEST_ANSWER", 1000)
    handler.answers["user"] = b"x" * 2000
    assert "the answer has more than 1,000 bytes" in comment(repository, url, on_gitlab, 0)

    over = threading.Event()

    class Slow(Odd):
        answers: dict[str, bytes] = {}  # noqa: RUF012 - as its parent
        asked: list[tuple[str, str]] = []  # noqa: RUF012 - as its parent

        def answer(self) -> None:
            try:
                for _ in range(1000):
                    self.wfile.write(b"H")
                    if over.wait(0.1):
                        return
            except OSError:
                pass

        do_GET = do_POST = answer  # noqa: N815 - its names

    monkeypatch.setattr(remote, "REQUEST_SECONDS", 0.5)
    with serving(Slow) as slow:
        assert "no complete answer within 0.5 seconds" in comment(repository, slow, on_gitlab, 1)
        over.set()


# kubectl and kustomize.


@pytest.fixture
def cluster(made_cluster: Cluster) -> Cluster:
    made_cluster.reset()
    return made_cluster


def odd_kubectl(cluster: Cluster, **answers: str) -> str:
    """Write a kubectl that prints a text for a resource, and asks the usual one for the others."""
    path, odd = cluster.state / "kubectl", cluster.state / "odd"
    shutil.rmtree(odd, ignore_errors=True)
    odd.mkdir()
    for name, text in answers.items():
        (odd / name.replace("_", ".")).write_bytes(text.encode("utf-8", "surrogateescape"))
    path.write_text(
        f'#!/bin/sh\nif [ "$3" = get ] && [ -e {odd}/"$4" ]; then exec cat {odd}/"$4"; fi\n'
        f'exec {cluster.program} "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def refused(cluster: Cluster, code: int = 1, **variables: str) -> str:
    """Run `ipamc apply`, which refuses; return what it prints."""
    variables = {**cluster.serve(), **variables}
    said = cluster.repository.run("ipamc", "apply", "red", code=code, **variables)
    assert "Traceback" not in said
    assert cluster.sent() == []
    return said


NODES = '{"items":[%s]}'


@pytest.mark.deep
@pytest.mark.parametrize(
    "answers",
    [
        {"configmaps": "null"},
        {"configmaps": "[]"},
        {"configmaps": "{"},
        {"configmaps": '{"kind":"ConfigMap","metadata":{"name":"x"},"data":[]}'},
        {"configmaps": '{"kind":"ConfigMap","metadata":{"name":"x"},"data":{"ipam":7}}'},
        {"configmaps": '{"kind":"ConfigMap","metadata":null}'},
        {"configmaps": '{"kind":"ConfigMap","metadata":{"name":7}}'},
        {"configmaps": '{"x": ' + "9" * 5000 + "}"},
        {"configmaps": "\udcff"},
        {"configmaps": "[" * 100_000},
        {"deployments_apps": '{"spec":{"template":{"spec":{"containers":{}}}}}'},
        {"deployments_apps": '{"spec":{"template":{"spec":{"containers":[{"args":"--ipam"}]}}}}'},
        {"ciliumnodes_cilium_io": '{"items":{}}'},
        {"ciliumnodes_cilium_io": "null"},
        {"ciliumnodes_cilium_io": NODES % "null"},
        {"ciliumnodes_cilium_io": NODES % '{"kind":"CiliumNode"}'},
        {"ciliumnodes_cilium_io": NODES % '{"kind":"ConfigMap","metadata":{"name":"x"}}'},
        {"ciliumnodes_cilium_io": NODES % '{"kind":"CiliumNode","metadata":{"name":{"a":1}}}'},
        {"ciliumnodes_cilium_io": NODES % '{"kind":"CiliumNode","metadata":{"name":"x"},"spec":"text"}'},
        {
            "ciliumnodes_cilium_io": NODES
            % '{"kind":"CiliumNode","metadata":{"name":"x"},"spec":{"ipam":{"podCIDRs":"text"}}}'
        },
        {
            "ciliumnodes_cilium_io": NODES
            % '{"kind":"CiliumNode","metadata":{"name":"x"},"spec":{"ipam":{"pools":{"allocated":[7]}}}}'
        },
        {
            "ciliumnodes_cilium_io": NODES
            % '{"kind":"CiliumNode","metadata":{"name":"x"},"status":{"ipam":{"operator-status":[]}}}'
        },
        {
            "ciliumnodes_cilium_io": NODES
            % '{"kind":"CiliumNode","metadata":{"name":"x","managedFields":[{"fieldsV1":{"f:spec":[]}}]}}'
        },
    ],
    ids=lambda answers: " ".join(f"{key} {text[:60]!r}" for key, text in answers.items()),
)
def test_an_odd_answer_of_kubectl_is_one_line_before_anything_is_sent(
    cluster: Cluster, answers: dict[str, str]
) -> None:
    said = refused(cluster, KUBECTL=odd_kubectl(cluster, **answers))
    assert said.splitlines()[-1].startswith("error: red: ")


@pytest.mark.parametrize(
    "rows", ["n1\tu1", "n1\tu1\t\t\t\t\n", "n1\tu1\t\t10.0.0.0/27\t", "n1\tu1\t\t[7]\t", "n1\tu1\t\t\t[1]"]
)
def test_odd_rows_of_nodes_are_one_line(cluster: Cluster, rows: str) -> None:
    first, *_ = cluster.rendered()
    first["spec"]["ipam"]["podCIDRs"] = ["10.0.3.0/27"]
    assert "error: red: Nodes: " in refused(cluster, KUBECTL=odd_kubectl(cluster, nodes=rows, pods=""))


def test_a_pod_whose_owner_has_a_tab_and_a_line_break_in_its_kind_is_one_pod(cluster: Cluster) -> None:
    """The apiserver lets people choose the kind of an owner freely; it made rows of its own once."""
    first, second, *_ = cluster.rendered()
    first["spec"]["ipam"]["podCIDRs"] = ["10.0.3.0/27"]
    second["spec"]["ipam"]["podCIDRs"] = ["10.0.3.32/27"]
    owner = json.dumps([{"kind": "DaemonSet\n\tn2\t\t\u0085\u2028"}])
    cluster.has["pods"] = [f'n1\t\t{owner}\t[{{"ip":"10.0.3.7"}}]']
    cluster.has["nodes"][0] = 'n1\tu1\ttrue\t\t{"note":"\u0085\u2028"}'
    said = cluster.apply(code=1)
    # The kubectl of this test lists the pod for each of the two nodes.
    assert "CiliumNode n1: not applied: 10.0.3.0/27 would become 10.0.0.0/27, but 2 pods on node n1" in said
    assert "n2" in cluster.sent()


@pytest.mark.deep(part=3)
@pytest.mark.parametrize("word", ["KUBECTL", "KUSTOMIZE"])
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('kubectl "x', "is not a command line: no closing quotation"),
        (" ", "names no program"),
        ("''", "names no program"),
        ("no-such-program", "there is no no-such-program here"),
        ("/etc/passwd", "cannot be run: permission denied"),
        ("TEXT", "cannot be run: exec format error"),
        ("/no/such/program", "cannot be run: no such file"),
        ("clusters", "there is no clusters here"),
    ],
)
def test_an_odd_program_is_one_line(cluster: Cluster, word: str, value: str, reason: str) -> None:
    (cluster.state / "text").write_text("not a program")
    (cluster.state / "text").chmod(0o755)
    value = value.replace("TEXT", str(cluster.state / "text"))
    variables: dict[str, Any] = {word: value}
    said = refused(cluster, **variables)
    assert reason in said
    assert said.startswith("error: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("path", ["", ".", "bin", ":", "./:bin"])
def test_a_program_of_the_checkout_is_not_run(cluster: Cluster, path: str) -> None:
    for folder in ("", "bin/"):
        for program in ("kubectl", "kustomize"):
            cluster.repository.write(folder + program, "#!/bin/sh\ntouch ran\n")
            (cluster.repository.folder / folder / program).chmod(0o755)
    said = refused(cluster, PATH=path, KUBECTL="", KUSTOMIZE="")
    assert "there is no kubectl here" in said
    assert not (cluster.repository.folder / "ran").exists()


@pytest.mark.deep(part=3)
@pytest.mark.parametrize(
    "text",
    [
        "a: 2020-13-45",
        "a: !!timestamp 2020-01-01",
        "a: !!binary aGk=",
        "a: &x [*x]",
        "- 1",
        "text",
        "kind: [1]\nmetadata: {name: x}",
        "kind: Node\nmetadata: null",
        "kind: Node\nmetadata: {name: 2020-01-01, uid: 7}",
        "kind: CiliumNode\nmetadata: {name: x}\nspec: {ipam: 5}",
        "[" * 100_000,
        "a: \x01",
        "a: " + "9" * 5000,
    ],
    ids=lambda text: text[:30],
)
@pytest.mark.parametrize("place", ["built", "rendered"])
def test_odd_yaml_is_one_line(cluster: Cluster, place: str, text: str) -> None:
    builder = cluster.program
    if place == "rendered":
        cluster.repository.write("clusters/red/rendered/ciliumnodes/000/ciliumnodes.yaml", text)
    else:
        (cluster.state / "yaml").write_text(text)
        path = cluster.state / "builder"
        path.write_text(f"#!/bin/sh\ncat {cluster.state}/yaml\n")
        path.chmod(0o755)
        builder = str(path)
    said = refused(cluster, KUSTOMIZE=builder)
    assert said.splitlines()[-1].startswith("error: red: ")


@pytest.mark.deep(part=3)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e9", "9" * 5000, "-1", "x"])
def test_an_odd_time_to_wait_is_a_usage_error(cluster: Cluster, value: str) -> None:
    said = refused(cluster, 64, IPAMC_WAIT=value)
    assert "--wait" in said.splitlines()[0]


def test_what_a_server_says_is_no_command_and_no_line_of_ours(cluster: Cluster) -> None:
    node, *_ = cluster.rendered()
    message = "x\n::add-mask::a\n  ::error::b\nred: all is well\n##[set-env name=A]b\x1b[2J\x1b[0Ksection_start:1:a\r\x1b[0K"
    node["status"] = {"ipam": {"operator-status": {"error": message}}}
    lines = cluster.apply().splitlines()
    assert [line for line in lines if line.lstrip().startswith("::")] == []
    assert "red: all is well" not in lines
    assert "    red: all is well" in lines
    assert [line for line in lines if "##[" in line or not line.isprintable()] == []


# What the lock says should be there.


def test_a_tree_that_lacks_what_the_lock_gives_is_not_applied(cluster: Cluster) -> None:
    rendered = Path(cluster.repository.folder, "clusters/red/rendered")
    shard = rendered / "ciliumnodes/000"
    text = (shard / "ciliumnodes.yaml").read_text()
    (shard / "ciliumnodes.yaml").write_text(text.rpartition("---\n")[0])
    said = refused(cluster)
    assert "ciliumnodes/000/ciliumnodes.yaml lacks CiliumNode n3" in said
    assert "nothing was applied; run ipamc compile red" in said

    (shard / "ciliumnodes.yaml").write_text(f"{text}---\n{text.split('---')[1].replace('n1', 'n9')}")
    assert "has CiliumNode n" in refused(cluster)

    for file in shard.iterdir():
        file.unlink()
    shard.rmdir()
    assert "there is no ciliumnodes/000" in refused(cluster)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- configmap.yaml\n", ""),
        ("- configmap.yaml\n", "- configmap.yaml\n- https://example.org/evil\n"),
        ("resources:", "generators: [x.yaml]\nresources:"),
    ],
)
def test_a_kustomization_that_was_not_compiled_is_not_even_built(
    cluster: Cluster, before: str, after: str
) -> None:
    path = Path(cluster.repository.folder, "clusters/red/rendered/cilium/kustomization.yaml")
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    (cluster.state / "ran").unlink(missing_ok=True)
    builder = cluster.state / "builder"
    builder.write_text(f"#!/bin/sh\ntouch {cluster.state}/ran\n")
    builder.chmod(0o755)
    assert "cilium/kustomization.yaml does not match a compile of the lock" in refused(
        cluster, KUSTOMIZE=str(builder)
    )
    assert not (cluster.state / "ran").exists()


def test_a_lock_with_another_number_of_shards_is_not_applied(cluster: Cluster) -> None:
    path = Path(cluster.repository.folder, "clusters/red/ipam.lock")
    for shards in (1 << 10, 1 << 36):
        path.write_text(path.read_text().replace('"shards":1', f'"shards":{shards}'))
        refused(cluster)
        path.write_text(path.read_text().replace(f'"shards":{shards}', '"shards":1'))


def test_a_tree_that_is_only_styled_otherwise_is_applied(cluster: Cluster) -> None:
    for path in Path(cluster.repository.folder, "clusters/red/rendered").glob("c*/**/*.yaml"):
        path.write_text(f"# another version of ipamc\n{path.read_text()}")
    cluster.apply()
    assert cluster.sent() == ["cilium-config", "n1", "n2", "n3"]


def test_a_node_that_was_never_compiled_is_not_passed_over(cluster: Cluster) -> None:
    cluster.repository.write("clusters/red/more.yaml", inventory("n4"))
    said = refused(cluster)
    assert "n4" in said
    assert "compile refuses it" in said
