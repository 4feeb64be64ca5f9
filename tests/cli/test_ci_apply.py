"""`ipamc apply` with a kubectl that answers from files: the steps, their order and the exit codes.

Real servers are in `tests/e2e/test_ci_apply.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ipamc.model.admission import POLICIES
from tests.review.live.objects import Made, cilium_node, config, ours, pool
from tests.support.living import policy
from tests.support.pipelines import Repository, inventory

KUBECTL = """\
#!/bin/sh
if [ "$1" = build ]; then
    for name in $(sed -n '/^resources:/,$s/^- //p' "$2/kustomization.yaml"); do echo ---; cat "$2/$name"; done
    exit
fi
echo "$2" > {state}/context
shift 2
printf '%s\\n' "$*" >> {state}/calls
case "$1 $2" in
"get crds") shift 2; for name; do case $name in -*|custom*) ;; *) echo "$name   True" ;; esac; done ;;
"get "*) cat {state}/get/"$2" 2> /dev/null || {{ echo "Error from server (Forbidden): $2" >&2; exit 1; }} ;;
"apply "*) exec {python} -IS {state}/apply "$@" ;;
esac
"""
"""A shell starts in a millisecond, and nearly all calls list something."""
APPLY = """\
import json, pathlib, sys

state = pathlib.Path("{state}")
if "--dry-run=server" in sys.argv:
    print((state / "answer").read_text() or (state / "sent").read_text())  # all commits that were sent
    sys.exit()
text = sys.stdin.read()
with (state / "sent").open("a") as sent:
    sent.write(text + "\\n")
found = json.loads(text)
assert (found["apiVersion"], found["kind"]) == ("v1", "List")  # what every kubectl reads
names = (state / "refused").read_text().split()
refused = [item for item in found["items"] if item["metadata"]["name"] in names]
for item in found["items"]:
    group = "ciliumnode.cilium.io/" if item["kind"] == "CiliumNode" else item["kind"].lower() + "/"
    if item not in refused:
        print(group + item["metadata"]["name"] + " serverside-applied")
if refused:
    sys.exit("error: Apply failed with 1 conflict: conflict with \\"agent\\": .spec.ipam.podCIDRs")
"""


class Cluster:
    """A repository with a cluster of three nodes, and a kubectl that answers for it."""

    def __init__(self, folder: Path) -> None:
        self.repository = Repository(folder)
        self.repository.write("clusters/red/nodes.yaml", inventory("n1", "n2", "n3"))
        self.repository.run("ipamc", "compile", "red")
        self.repository.commit("three nodes")
        self.state = folder / "state"
        self.state.mkdir()
        self.program = str(folder / "kubectl")
        Path(self.program).write_text(KUBECTL.format(python=sys.executable, state=self.state))
        Path(self.program).chmod(0o755)
        (self.state / "apply").write_text(APPLY.format(state=self.state))
        self.has: dict[str, Any] = {}

    def reset(self) -> None:
        """Forget what a test before may have changed."""
        self.repository.run("git", "reset", "-q", "--hard")
        self.repository.run("git", "clean", "-fdq", "clusters")
        self.has = {
            "forbidden": [],
            "refused": [],
            "configmaps": None,
            "deployments.apps": None,
            "ciliumnodes.cilium.io": [],
            "ciliumpodippools.cilium.io": [],
            "ciliumnodeconfigs.cilium.io": [],
            "nodes": ["n1\tu1\t\t\t", "n2\tu2\t\t\t", "n3\tu3\t\t\t"],
            "pods": [],
            "answer": "",
            **{f"{resource}.admissionregistration.k8s.io": [] for resource in POLICIES.values()},
        }

    def serve(self) -> dict[str, str]:
        """Let kubectl answer what the cluster has now; return the variables that name it."""
        listed = {**self.has}
        texts = {"answer": listed.pop("answer"), "refused": " ".join(listed.pop("refused"))}
        for name, text in {"calls": "", "sent": "", **texts}.items():
            (self.state / name).write_text(text)
        (self.state / "get").mkdir(exist_ok=True)
        forbidden = listed.pop("forbidden")
        for resource, found in listed.items():
            path = self.state / "get" / resource
            if resource in {"nodes", "pods"}:
                path.write_text("".join(f"{row}\n" for row in found), encoding="utf-8")
            else:
                one = resource in {"configmaps", "deployments.apps"}
                path.write_text("" if found is None else json.dumps(found if one else {"items": found}))
            if resource in forbidden:
                path.unlink()
        return {"KUBECTL": self.program, "KUSTOMIZE": self.program, "IPAMC_WAIT": "0"}

    def apply(self, *options: str, code: int = 0, target: str = "red") -> str:
        """Run `ipamc apply red`, or of a part."""
        variables = self.serve()
        return self.repository.run("ipamc", "apply", target, *options, code=code, **variables)

    def calls(self, verb: str) -> list[str]:
        """Return the calls of the last apply."""
        return [line for line in (self.state / "calls").read_text().splitlines() if line.startswith(verb)]

    def sent(self) -> list[str]:
        """Return the names of what was applied."""
        return [document["metadata"]["name"] for document in self.applied()]

    def applied(self) -> list[Made]:
        """Return what was applied."""
        lists = (self.state / "sent").read_text().splitlines()
        return [document for each in lists for document in json.loads(each)["items"]]

    def flags(self, *arguments: str) -> None:
        """Let the cluster have the rendered ConfigMap, and an operator with arguments."""
        path = self.repository.folder / "clusters/red/rendered/cilium/configmap.yaml"
        self.has["configmaps"] = yaml.safe_load(path.read_text())
        containers = [{"name": "cilium-operator", "args": list(arguments)}]
        self.has["deployments.apps"] = {"spec": {"template": {"spec": {"containers": containers}}}}

    def rendered(self) -> list[Made]:
        """Let the cluster have the rendered CiliumNodes, and return them."""
        path = self.repository.folder / "clusters/red/rendered/ciliumnodes/000/ciliumnodes.yaml"
        nodes = [document for document in yaml.safe_load_all(path.read_text()) if document]
        for node in nodes:
            node["metadata"]["managedFields"] = ours()
        self.has["ciliumnodes.cilium.io"] = nodes
        return nodes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return Cluster(tmp_path_factory.mktemp("made"))


@pytest.fixture
def cluster(made: Cluster) -> Cluster:
    made.reset()
    return made


def test_everything_is_sent_and_each_kind_is_listed_once_before(cluster: Cluster) -> None:
    said = cluster.apply()
    assert "red: no cilium-config in kube-system: Cilium is not installed yet" in said
    assert "red/ciliumnodes/000: 3 objects applied" in said
    assert cluster.sent() == ["cilium-config", "n1", "n2", "n3"]
    assert not [call for call in cluster.calls("get") if call.startswith(("get nodes", "get pods"))]
    cluster.flags("--ipam=kubernetes")
    cluster.apply()
    assert len(cluster.sent()) == 4


def test_the_context_is_that_of_the_cluster_or_of_the_option(cluster: Cluster) -> None:
    def context(*options: str) -> str:
        assert "red/ciliumnodes/000: 3 objects applied" in cluster.apply(*options)
        return (cluster.state / "context").read_text().strip()

    assert context() == "red"
    path = cluster.repository.folder / "clusters/red/cluster.yaml"
    path.write_text(path.read_text().replace("spec:\n", "spec:\n  context: admin@red\n", 1))
    assert context() == "admin@red"
    cluster.repository.run("ipamc", "dump", "red", code=1, **cluster.serve())
    assert (cluster.state / "context").read_text() == "admin@red\n"
    assert context("--context", "other") == "other"
    said = cluster.repository.run("ipamc", "apply", "red", "blue", "--context", "other", code=64)
    assert "--context is of one cluster" in said
    path.write_text(path.read_text().replace("admin@red", "'--kubeconfig=x'"))
    assert "IPC0" in cluster.apply(code=1)


def test_flags_that_are_not_as_rendered_are_refused_before_anything_is_sent(cluster: Cluster) -> None:
    cluster.flags()
    said = cluster.apply(code=1)
    assert "error: red: the operator runs with no --ipam" in said
    assert "nothing was applied" in said
    assert cluster.sent() == []
    cluster.apply("--before-flags")
    assert len(cluster.sent()) == 4


@pytest.mark.parametrize("kind", ["configmaps", "deployments.apps", "ciliumnodes.cilium.io"])
def test_what_may_not_be_read_is_not_guessed(cluster: Cluster, kind: str) -> None:
    cluster.has["forbidden"] = [kind]
    assert "cannot be read: Error from server (Forbidden)" in cluster.apply(code=1)
    assert cluster.sent() == []


def test_a_block_that_pods_use_is_withheld_and_the_others_are_sent(cluster: Cluster) -> None:
    first, *_ = cluster.rendered()
    first["spec"]["ipam"]["podCIDRs"] = ["10.0.3.0/27"]
    cluster.has["pods"] = [
        'n1\t\t[{"kind":"DaemonSet"}]\t[{"ip":"10.0.3.7"}]',
        'n1\ttrue\t\t[{"ip":"10.0.3.8"}]',
    ]
    said = cluster.apply(code=1)
    assert "CiliumNode n1: not applied: 10.0.3.0/27 would become 10.0.0.0/27, but 1 pod on node n1" in said
    assert cluster.sent() == ["cilium-config", "n2", "n3"]
    assert len(cluster.calls("get pods")) == 1
    cluster.has["nodes"][0] = "n1\tu1\ttrue\t\t"
    said = cluster.apply(
        code=1
    )  # cordoned, and what a drain leaves does not count; the fake forgets what is sent
    assert cluster.sent() == ["cilium-config", "n1", "n2", "n3"]
    assert "1 CiliumNode changed back after the apply: n1" in said


def test_blocks_of_others_are_read_as_go_reads_them(cluster: Cluster) -> None:
    for text in ("10.0.0.37/27", "::ffff:10.0.0.32/123"):
        cluster.has["ciliumnodes.cilium.io"] = [cilium_node("stranger", text, managed=ours())]
        said = cluster.apply(code=1)
        assert "CiliumNode n2: not applied: another node has these addresses" in said
        assert cluster.sent() == ["cilium-config", "n1", "n3"]


def test_a_block_that_cannot_be_read_withholds_what_it_may_mean_alone(cluster: Cluster) -> None:
    cluster.has["ciliumnodes.cilium.io"] = [cilium_node("n1", "10.0.0.32/x", managed=ours())]
    said = cluster.apply(code=1)
    assert "CiliumNode n1: not applied: cannot tell which node has these addresses" in said
    assert "n1 has '10.0.0.32/x', which is not a CIDR" in said
    assert cluster.sent() == ["cilium-config", "n3"]


def test_a_flag_that_cannot_be_read_is_named(cluster: Cluster) -> None:
    cluster.rendered()
    cluster.flags("--ipam=kubernetes")
    cluster.has["configmaps"]["data"]["enable-ipv4"] = "yes"
    said = cluster.apply()
    assert "warning: red: the cluster has enable-ipv4: 'yes', which is not 1, t, T" in said


def test_many_nodes_that_change_cost_one_list_of_pods(cluster: Cluster) -> None:
    names = [f"m{number}" for number in range(9)]
    cluster.repository.write("clusters/red/more.yaml", inventory(*names))
    cluster.repository.run("ipamc", "compile", "red")
    for number, node in enumerate(cluster.rendered()):
        node["spec"]["ipam"]["podCIDRs"] = [f"10.9.{number}.0/27"]
    cluster.apply(code=1)
    assert [call for call in cluster.calls("get pods") if "spec.nodeName=" in call] == []
    assert len(cluster.calls("get pods")) == 1


def test_a_repair_sends_only_what_is_missing_or_differs(cluster: Cluster) -> None:
    cluster.flags("--ipam=kubernetes")
    one, _, three = cluster.rendered()
    assert "nothing to repair, 4 objects as rendered" in cluster.apply("--repair")
    assert cluster.sent() == []
    cluster.has["ciliumnodes.cilium.io"] = [one, {**three, "spec": {"ipam": {}}}]
    said = cluster.apply("--repair", code=1)  # the fake forgets what is sent
    assert "CiliumNode n2: was missing, repaired" in said
    assert "CiliumNode n3: differed, repaired" in said
    assert cluster.sent() == ["n2", "n3"]
    cluster.has["nodes"] = cluster.has["nodes"][:1]
    cluster.has["ciliumnodes.cilium.io"] = [one, three]
    assert "CiliumNode n2: its Node is not in the cluster" in cluster.apply("--repair")
    assert cluster.sent() == []


def test_errors_of_the_operator(cluster: Cluster) -> None:
    node, *_ = cluster.rendered()
    node["status"] = {"ipam": {"operator-status": {"error": "of\nlast year"}}}
    assert "CiliumNode n1: was there before" in cluster.apply()
    del node["spec"]["ipam"]["podCIDRs"]  # this run gives it its block
    assert "error: red: the operator reports errors for 1 node: n1" in cluster.apply(code=1)


def test_what_left_the_tree_goes_in_order_by_consent(cluster: Cluster) -> None:
    nodes = cluster.rendered()
    nodes += [cilium_node("dead", pools={"old": ["10.8.0.0/27"]}, managed=ours()), cilium_node("by-hand")]
    cluster.has["ciliumpodippools.cilium.io"] = [
        pool("old", "10.8.0.0/24"),
        pool("free", managedFields=ours()),
    ]
    cluster.has["ciliumnodeconfigs.cilium.io"] = [config("old", managedFields=ours())]
    said = cluster.apply()
    assert "1 CiliumNode left the tree: dead" in said
    assert "--prune deletes 3 objects that nothing uses" in said
    assert not cluster.calls("delete")
    cluster.apply("--prune")
    assert [call.split()[1] + " " + call.split()[-1] for call in cluster.calls("delete")] == [
        "ciliumnodeconfigs.cilium.io old",
        "ciliumnodes.cilium.io dead",
        "ciliumpodippools.cilium.io free",
    ]
    del nodes[:3]
    assert "may be another cluster's: nothing is deleted" in cluster.apply("--prune", code=1)
    assert not cluster.calls("delete")


def test_what_is_refused_is_named_and_the_others_are_applied(cluster: Cluster) -> None:
    cluster.has["refused"] = ["n2"]
    said = cluster.apply(code=1)
    assert "error: red: CiliumNode n2: error: Apply failed with 1 conflict" in said
    delete = "kubectl delete ciliumnode n2 && ipamc apply red --repair"
    assert f"drain n2, stop the operator, {delete}, start the operator, restart n2's agent" in said
    assert "red/ciliumnodes/000: 2 objects applied" in said
    assert "error: red: 1 object refused: CiliumNode n2" in said
    assert cluster.sent() == ["cilium-config", "n1", "n2", "n3", "n2"]
    assert "error: red: 1 object refused: CiliumNode n2" in cluster.apply("--repair", code=1)


def test_an_annotation_that_an_agent_took_away_is_not_put_back(cluster: Cluster) -> None:
    planned = "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes: [{name: new, planned: true}]\n"
    cluster.repository.write("clusters/red/planned.yaml", planned)
    cluster.repository.run("ipamc", "compile", "red")
    cluster.apply()
    (before,) = [node for node in cluster.applied() if node["metadata"]["name"] == "new"]
    assert before["metadata"]["annotations"] == {"cilium.io/do-not-gc": "true"}
    (there,) = [node for node in cluster.rendered() if node["metadata"]["name"] == "new"]
    cluster.apply()
    assert before in cluster.applied()  # its agent has not started yet
    there["metadata"].update(ownerReferences=[{"kind": "Node", "name": "new"}], annotations=None)
    cluster.apply()
    (after,) = [node for node in cluster.applied() if node["metadata"]["name"] == "new"]
    assert after == {**before, "metadata": {"name": "new"}}


PLANNED = """\
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes:
- {name: p1, planned: true}
- {name: p2, planned: true}
"""


def test_a_planned_node_of_an_older_operator_gets_its_block_when_its_agent_waits(cluster: Cluster) -> None:
    file = cluster.repository.folder / "clusters/red/cluster.yaml"
    cluster.repository.write("clusters/red/cluster.yaml", file.read_text().replace("1.18", "1.15"))
    cluster.repository.write("clusters/red/nodes.yaml", PLANNED)
    cluster.repository.run("git", "rm", "-rqf", "clusters/red/ipam.lock", "clusters/red/rendered")
    said = cluster.repository.run("ipamc", "compile", "red")
    assert "note[IPC0568]" in said
    assert not list((file.parent / "rendered").glob("ciliumnodes*"))
    cluster.has["nodes"] = []
    assert "red: 2 planned nodes without an agent: p1, p2; run this again" in cluster.apply()
    assert cluster.sent() == ["cilium-config"]
    waits = cilium_node("p1")
    waits["metadata"]["ownerReferences"] = [{"kind": "Node", "name": "p1"}]
    cluster.has["ciliumnodes.cilium.io"] = [waits]
    cluster.has["nodes"] = ["p1\tu1\t\t\t"]
    cluster.apply(code=1)  # the fake forgets what is sent
    assert cluster.applied()[1:] == [
        {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumNode",
            "metadata": {"name": "p1"},
            "spec": {"ipam": {"podCIDRs": ["10.0.0.0/27"]}},
        }
    ]
    said = cluster.apply("--repair", code=1)
    assert "CiliumNode p1: differed, repaired" in said
    assert cluster.sent() == ["cilium-config", "p1"]
    waits["spec"] = {"ipam": {"podCIDRs": ["10.0.0.0/27"]}}
    waits["metadata"]["managedFields"] = ours()
    assert "left the tree" not in cluster.apply()


ADMISSION = '  admission: {assign: true, enforce: deny}\n  kubernetes: {version: "1.36"}\n'


def with_policies(cluster: Cluster) -> list[str]:
    """Render policies, and let the cluster have them as an apply of an earlier commit wrote them; return their names, in order."""
    file = cluster.repository.folder / "clusters/red/cluster.yaml"
    text = file.read_text().replace("spec:\n", f"spec:\n{ADMISSION}", 1)
    cluster.repository.write("clusters/red/cluster.yaml", text)
    cluster.repository.run("ipamc", "compile", "red")
    cluster.rendered()
    cluster.flags("--ipam=kubernetes")
    folder = file.parent / "rendered/admission"
    found = [
        each
        for path in sorted(folder.glob("*nodes.yaml"))
        for each in yaml.safe_load_all(path.read_text())
        if each
    ]
    for kind, resource in POLICIES.items():
        some = [policy(each) for each in found if each["kind"] == kind]
        for each in some:
            each["metadata"]["managedFields"] = ours()
        cluster.has[f"{resource}.admissionregistration.k8s.io"] = some
    return [each["metadata"]["name"] for each in found]


def test_policies_come_first_and_name_the_commit_and_an_answer_shows_it(cluster: Cluster) -> None:
    names = with_policies(cluster)
    commit = cluster.repository.run("git", "rev-parse", "HEAD").strip()
    for target in ("red", "red/ciliumnodes/000"):
        said = cluster.apply(target=target)
        assert "red/admission: 4 objects applied" in said
        assert cluster.sent() == [*names, "cilium-config", "n1", "n2", "n3"]
        (variable,) = {
            each["expression"]
            for document in cluster.applied()
            for each in document.get("spec", {}).get("variables", ())
            if each["name"] == "commit"
        }
        assert variable == f"'{commit}'"
    cluster.has["answer"] = "nothing"
    said = cluster.apply("--timeout", "1", code=1)
    assert "error: red: the policies for a CiliumNode do not work 1 seconds after the apply" in said
    assert cluster.sent() == names


def test_a_repair_writes_policies_that_differ_in_more_than_the_commit(cluster: Cluster) -> None:
    names = with_policies(cluster)
    assert "nothing to repair, 8 objects as rendered" in cluster.apply("--repair")
    assert cluster.sent() == []
    bindings = cluster.has["validatingadmissionpolicybindings.admissionregistration.k8s.io"]
    bindings[0]["spec"]["validationActions"] = ["Audit"]
    said = cluster.apply("--repair")
    assert f"ValidatingAdmissionPolicyBinding {names[-1]}: differed, repaired" in said
    assert said.count("repaired") == 1
    assert cluster.sent() == names
    cluster.has["refused"] = names[-1:]
    said = cluster.apply("--repair", code=1)
    assert f"kubectl delete validatingadmissionpolicybinding {names[-1]} && ipamc apply red --repair" in said


def test_policies_that_left_the_tree_are_named_and_deleted_by_consent(cluster: Cluster) -> None:
    names = with_policies(cluster)
    file = cluster.repository.folder / "clusters/red/cluster.yaml"
    cluster.repository.write("clusters/red/cluster.yaml", file.read_text().replace(ADMISSION, ""))
    cluster.repository.run("ipamc", "compile", "red")
    said = cluster.apply()
    assert f"1 ValidatingAdmissionPolicy left the tree: {names[-1]}; it still allows nodes only" in said
    assert "--prune deletes 4 objects that nothing uses" in said
    cluster.apply("--prune")
    assert [call.split()[1].partition(".")[0] for call in cluster.calls("delete")] == [*POLICIES.values()]
