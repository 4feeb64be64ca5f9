"""The jobs of a pipeline with the roles that `ipamc ci rbac` prints: as a ServiceAccount that may do nothing else, and each verb is needed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from ipamc.model.admission import POLICIES
from tests.e2e.api import CILIUM_NODES, CONFIG_MAPS, NODE_CONFIGS, NODES, POOLS, Api, Object
from tests.e2e.objects import cilium_node
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.test_ci_apply import FLEETS, apply, flags, made, pod
from tests.e2e.test_ci_apply import no_pods as no_pods  # noqa: PLC0414 - a fixture
from tests.e2e.test_pipelines import Pipeline

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/kube-system/serviceaccounts"


class Account:
    """A ServiceAccount of a job, and the roles that it has."""

    def __init__(self, api: Api, pipeline: Pipeline, job: str, *options: str) -> None:
        self.api, self.pipeline, self.name = api, pipeline, f"ipamc-{job}"
        self.text = pipeline.site.run("ci", "rbac", pipeline.site.name, "--job", job, *options)
        self.grant()
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = api.sure("POST", f"{ACCOUNTS}/{self.name}/token", request)
        kubeconfig = json.loads(pipeline.secret)
        kubeconfig["users"][0]["user"] = {"token": answer["status"]["token"]}
        pipeline.secret = json.dumps(kubeconfig)

    @property
    def roles(self) -> list[Object]:
        return [each for each in yaml.safe_load_all(self.text) if each["kind"] in {"ClusterRole", "Role"}]

    def grant(self) -> None:
        """Let it have the roles that were printed, and wait until the apiserver knows them."""
        self.api.applied(self.text)
        for role in self.roles:
            for rule in role["rules"]:
                for verb in rule["verbs"]:
                    self.wait(role, rule, verb, allowed=True)

    def wait(self, role: Object, rule: Object, verb: str, *, allowed: bool) -> None:
        """Wait until the apiserver has read a role."""
        attributes = {
            "namespace": role["metadata"].get("namespace", ""),
            "group": rule["apiGroups"][0],
            "resource": rule["resources"][0],
            "name": (rule.get("resourceNames") or [""])[0],
            "verb": verb,
        }
        user = f"system:serviceaccount:kube-system:{self.name}"
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": [], "resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        until(
            lambda: bool(self.api.sure("POST", path, review)["status"]["allowed"]) == allowed,
            f"the apiserver knows {verb} {rule}",
        )

    def mutations(self, only: str = "") -> Iterator[str]:
        """Take one verb of one rule after the other away, or `only` this one of each; yield what it is, and give it back."""
        for role in self.roles:
            where = role["metadata"].get("namespace")
            path = f"{RBAC}/namespaces/{where}/roles" if where else f"{RBAC}/clusterroles"
            for index, rule in enumerate(role["rules"]):
                for verb in (each for each in rule["verbs"] if only in {"", each}):
                    rules = [dict(each) for each in role["rules"]]
                    rules[index] = {**rule, "verbs": [each for each in rule["verbs"] if each != verb]}
                    rules = [each for each in rules if each["verbs"]]
                    whole = self.api.get(f"{path}/{self.name}")
                    self.api.sure("PUT", f"{path}/{self.name}", {**whole, "rules": rules})
                    self.wait(role, rule, verb, allowed=False)
                    yield f"{verb} {rule['resources'][0]}"
                    self.api.sure(
                        "PUT",
                        f"{path}/{self.name}",
                        {**self.api.get(f"{path}/{self.name}"), "rules": role["rules"]},
                    )
                    self.wait(role, rule, verb, allowed=True)


@pytest.fixture
def pools(operator: Operator) -> None:
    """Skip where Cilium has no CiliumPodIPPools."""
    if operator.version < (1, 14):
        pytest.skip("Cilium has no CiliumPodIPPools yet")


@pytest.fixture(autouse=True)
def no_rights(api: Api) -> None:
    """Take away what a test before granted."""
    for job in ("apply", "refresh", "audit"):
        name = f"ipamc-{job}"
        api.delete(
            f"{ACCOUNTS}/{name}",
            f"{RBAC}/clusterroles/{name}",
            f"{RBAC}/clusterrolebindings/{name}",
            f"{RBAC}/namespaces/kube-system/roles/{name}",
            f"{RBAC}/namespaces/kube-system/rolebindings/{name}",
        )


def run(pipeline: Pipeline, *options: str) -> tuple[bool, str]:
    """Apply; return whether it went well without any complaint about rights, and what it said."""
    try:
        said = apply(pipeline, *options)
    except AssertionError as problem:
        said = str(problem)
        return False, said
    return "orbidden" not in said, said


def missing(api: Api, pipeline: Pipeline) -> None:
    """Let the cluster have a node with another block that we gave, and nothing else that is rendered."""
    api.delete(CILIUM_NODES, POOLS, *NODE_CONFIGS, f"{CONFIG_MAPS}/cilium-config")
    kinds = {each["kind"] for each in pipeline.site.rendering("*/*/*.yaml")}
    if "CiliumNode" in kinds:
        (node, _) = min(pipeline.site.lock().items())
        api.applied(json.dumps(cilium_node(node, "10.9.0.0/27")))
    for node in api.items(NODES):
        api.change(f"{NODES}/{node}", lambda each: each["metadata"].pop("annotations", None))


def test_the_list_of_the_ip_masq_agent_is_applied(api: Api, operator: Operator, tmp_path: Path) -> None:
    pipeline = made(api, operator, tmp_path, next(iter(FLEETS)))
    site = pipeline.site

    def masquerade(document: Object) -> None:
        if document["kind"] == "Cluster":
            document["spec"]["cilium"]["masquerade"] = {"nonMasqueradeCIDRs": ["172.16.0.0/12"]}

    site.edit(masquerade)
    site.compile()
    Account(api, pipeline, "apply")
    good, said = run(pipeline)
    assert good, said
    (rendered,) = site.rendering("cilium/ip-masq-agent.yaml")
    assert api.get(f"{CONFIG_MAPS}/ip-masq-agent")["data"] == rendered["data"]
    assert "172.16.0.0/12" in rendered["data"]["config"]
    api.delete(f"{CONFIG_MAPS}/ip-masq-agent")


@pytest.mark.deep("kubernetes", "pinned")
@pytest.mark.parametrize("kind", FLEETS)
def test_an_apply_and_a_repair_need_no_other_rights(
    api: Api, operator: Operator, tmp_path: Path, kind: str
) -> None:
    if FLEETS[kind]["mode"] == "multi-pool" and operator.version < (1, 14):
        pytest.skip("Cilium has no CiliumPodIPPools yet")
    pipeline = made(api, operator, tmp_path, kind)
    Account(api, pipeline, "apply")
    missing(api, pipeline)
    fine, said = run(pipeline)
    assert fine, said
    assert run(pipeline, "--repair")[0]
    assert "forbidden" in api_as(pipeline, "get", "secrets", "-A")
    assert "forbidden" in api_as(pipeline, "get", "configmaps", "-A")


@pytest.mark.parametrize("kind", ["kubernetes", "annotated"])
def test_an_apply_may_not_create_a_node(api: Api, operator: Operator, tmp_path: Path, kind: str) -> None:
    pipeline = made(api, operator, tmp_path, kind)
    Account(api, pipeline, "apply")
    api.delete(f"{NODES}/node-003")
    fine, said = run(pipeline)
    assert not fine
    assert "a Node was re-created or left after the last refresh: refresh the inventory" in said
    assert "node-003" not in api.items(NODES)


def api_as(pipeline: Pipeline, *arguments: str) -> str:
    """Run kubectl as the job."""
    (pipeline.temporary / "kubeconfig").write_text(pipeline.secret)
    command = f"kubectl --context fleet {' '.join(arguments)} 2>&1 || true"
    return pipeline.run(command, KUBECONFIG=str(pipeline.temporary / "kubeconfig"))


@pytest.mark.deep("bystander")
@pytest.mark.parametrize("kind", ["bystander", "annotated"])
def test_an_apply_needs_each_of_its_rights(api: Api, operator: Operator, tmp_path: Path, kind: str) -> None:
    pipeline = made(api, operator, tmp_path, kind)
    account = Account(api, pipeline, "apply")
    missing(api, pipeline)
    assert does_all(api, pipeline)
    needless = []
    for what in account.mutations():
        missing(api, pipeline)
        if does_all(api, pipeline):
            needless.append(what)
    assert not needless


def does_all(api: Api, pipeline: Pipeline) -> bool:
    """Apply, and repair after a node left; return whether both did what they should."""
    if not run(pipeline)[0]:
        return False
    name = max(pipeline.site.lock())
    api.delete(
        f"{NODES}/{name}", f"{CILIUM_NODES}/{name}", f"{POOLS}/default.{name}", f"{POOLS}/rack-b.{name}"
    )
    said = run(pipeline, "--repair")[1]
    api.create(NODES, {"metadata": {"name": name}})
    return "the cluster has no such Node" in said


@pytest.mark.usefixtures("pools")
def test_pools_of_nodes_need_each_of_their_rights(api: Api, operator: Operator, tmp_path: Path) -> None:
    """A pool of a node that has another block than before asks for its pods, and whether it is cordoned."""
    pipeline = made(api, operator, tmp_path, "pinned")
    account = Account(api, pipeline, "apply")
    pool = next(each for each in pipeline.site.rendering("pools/*/ippools.yaml"))
    node = pool["metadata"]["name"].partition(".")[2]
    before = {**pool, "spec": {"ipv4": {**pool["spec"]["ipv4"], "cidrs": ["10.9.0.0/27"]}}}
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "a", "uid": "1"}
    pod(api, "a", node, "10.9.0.1", metadata={"ownerReferences": [owner]})
    api.change(f"{NODES}/{node}", lambda each: each["spec"].update(unschedulable=True))
    needless = []
    for what in chain(["nothing"], account.mutations()):
        missing(api, pipeline)
        api.applied(json.dumps(before))
        if run(pipeline)[0]:
            needless.append(what)
    assert needless == ["nothing"]


def policies() -> Iterator[Object]:
    """Yield a policy of each kind with its binding; none of them does anything."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"], "operations": ["CREATE"]}
    patches = {"expression": "[JSONPatch{op: 'test', path: '/kind', value: 'Node'}]"}
    nothing = {"patchType": "JSONPatch", "jsonPatch": patches}
    for how, version, more, binds in (
        ("Validating", "v1", {"validations": [{"expression": "true"}]}, {"validationActions": ["Warn"]}),
        ("Mutating", "v1beta1", {"mutations": [nothing], "reinvocationPolicy": "Never"}, {}),
    ):
        head = {"apiVersion": f"admissionregistration.k8s.io/{version}", "metadata": {"name": "stray"}}
        kind, matches = f"{how}AdmissionPolicy", {"matchConstraints": {"resourceRules": [rule]}}
        yield {**head, "kind": kind, "spec": {**matches, "failurePolicy": "Ignore", **more}}
        yield {**head, "kind": f"{kind}Binding", "spec": {"policyName": "stray", **binds}}


@pytest.mark.usefixtures("pools")
def test_a_prune_needs_each_of_its_rights(api: Api, operator: Operator, tmp_path: Path) -> None:
    pipeline = made(api, operator, tmp_path, "pinned")
    account = Account(api, pipeline, "apply", "--prune")
    keeps = pipeline.site.rendering("pools/000/*.yaml")
    foreign = cilium_node("gone")
    strays = []
    for each in keeps:
        if each["kind"] in {"CiliumPodIPPool", "CiliumNodeConfig"}:
            copy: Any = json.loads(json.dumps(each))
            copy["metadata"]["name"] += "-stray"
            strays.append(copy)
            if copy["kind"] == "CiliumPodIPPool":
                copy["spec"]["ipv4"]["cidrs"] = ["10.99.0.0/27"]

    config = next(each for each in strays if each["kind"] == "CiliumNodeConfig")

    def prunes() -> bool:
        for stray in (foreign, strays[0], config, *policies()):
            api.applied(json.dumps(stray))
        fine, said = run(pipeline, "--prune")
        return fine and said.count(" deleted: ") == 7

    assert run(pipeline)[0]
    assert prunes()
    needless = [what for what in account.mutations("delete") if prunes()]
    assert not needless


@pytest.mark.parametrize("job", ["refresh", "audit"])
def test_a_dump_needs_each_of_its_rights_and_reads_no_other_config_map(
    api: Api, operator: Operator, tmp_path: Path, job: str
) -> None:
    pipeline = made(api, operator, tmp_path, "bystander")
    apply(pipeline)
    flags(api, pipeline.site.config)
    metadata = {"name": "others", "namespace": "kube-system"}
    api.delete(f"{CONFIG_MAPS}/others")
    api.create(CONFIG_MAPS, {"metadata": metadata, "data": {"password": "s3cret"}})
    pod(api, "a", min(pipeline.site.lock()), "10.0.0.1")
    account = Account(api, pipeline, job)
    (pipeline.temporary / "kubeconfig").write_text(pipeline.secret)
    command = f"ipamc dump fleet --for {job} --write dump.json"
    kubeconfig = str(pipeline.temporary / "kubeconfig")
    pipeline.run(command, KUBECONFIG=kubeconfig)
    text = (pipeline.site.work / "dump.json").read_text()
    assert "s3cret" not in text
    kinds = {each["kind"] for each in json.loads(text)["items"]}
    wanted = {"Node", "CiliumNode"}
    if job == "audit":
        wanted |= {"ConfigMap", "Pod", "Deployment"}
        wanted |= {"CustomResourceDefinition"} if operator.version >= (1, 14) else set()
    assert kinds == wanted
    unknown = {"list ciliumpodippools", "list ciliumnodeconfigs"} if operator.version < (1, 14) else set()
    for what in account.mutations():
        resource = what.partition(" ")[2]
        # Roles of an ipamc without policies or CRDs, or that told no nodes without Cilium apart, still do.
        if resource in {*POLICIES.values(), "customresourcedefinitions"} or (
            job == "refresh" and resource == "daemonsets"
        ):
            assert f"no permission to read {resource}" in pipeline.run(command, KUBECONFIG=kubeconfig)
        elif what not in unknown:
            assert "orbidden" in pipeline.run(command, code=1, KUBECONFIG=kubeconfig)


def test_what_a_refresh_may_read_is_all_that_it_needs(api: Api, operator: Operator, tmp_path: Path) -> None:
    """A node that joined comes into git by the rights of the job alone."""
    pipeline = made(api, operator, tmp_path, "bystander")
    apply(pipeline)
    site = pipeline.site
    done = api.kubectl("get", "nodes,ciliumnodes,cm", "-A", "-o", "json")
    (site.work / "all.json").write_text(done.stdout)
    shutil.rmtree(site.folder)
    site.run("import", "fleet", "all.json", "--mode", "cluster-pool", "--cilium-version", operator.minor)
    Account(api, pipeline, "refresh")
    kubeconfig = pipeline.temporary / "kubeconfig"
    kubeconfig.write_text(pipeline.secret)
    dump = "ipamc dump fleet --for refresh --write dump.json && ipamc import fleet --refresh dump.json"
    said = pipeline.run(dump, KUBECONFIG=str(kubeconfig))
    assert "nodes.yaml: unchanged" in said
    assert "ciliumnodes.yaml: unchanged" in said
    api.create(NODES, {"metadata": {"name": "node-999"}})
    said = pipeline.run(dump, KUBECONFIG=str(kubeconfig))
    assert "nodes.yaml: written" in said
    assert "node-999" in (site.folder / "nodes.yaml").read_text()
