"""An upgrade to 1.20 where 1.15 installed Cilium: the CRD of CiliumNodeConfigs lists v2alpha1 as stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus as Status
from pathlib import Path
from typing import Any

import pytest

from ipamc.model.cilium.support import LAST, NODE_CONFIG_CRD
from tests.e2e.api import CRDS, NODE_CONFIGS, Api, Object
from tests.e2e.conftest import OPERATORS, minor, serving
from tests.e2e.operator import LEADS, Operator
from tests.e2e.processes import until
from tests.e2e.rules import shows
from tests.e2e.site import Site
from tests.e2e.test_runbook import begin  # noqa: F401 - a fixture

CRD = f"{CRDS}/{NODE_CONFIG_CRD}"
OLD = "/apis/cilium.io/v2alpha1/namespaces/kube-system/ciliumnodeconfigs"
NEW = "/apis/cilium.io/v2/namespaces/kube-system/ciliumnodeconfigs"
CONFIG: Object = {
    "apiVersion": "cilium.io/v2alpha1",
    "kind": "CiliumNodeConfig",
    "metadata": {"name": "old"},
    "spec": {"nodeSelector": {"matchLabels": {"none": "such"}}, "defaults": {"debug": "true"}},
}
BEFORE = [each for each in OPERATORS if (1, 16) <= minor(each) < (1, 20)]
"""The operators that store v2 and still keep what 1.15 stored."""


@pytest.fixture(params=BEFORE, ids=lambda folder: folder.name)
def operator(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Operator]:
    """Start servers for one test, which changes their CRDs."""
    folder = tmp_path / "servers"
    folder.mkdir()
    with serving(folder, request.param) as found:
        yield found


def only(*names: str, stored: str) -> Any:
    """Return what makes a CRD have these versions alone, and store one of them."""

    def edit(crd: Object) -> None:
        some = [each for each in crd["spec"]["versions"] if each["name"] in names]
        crd["spec"]["versions"] = [{**each, "storage": each["name"] == stored} for each in some]

    return edit


def as_1_15_left_it(api: Api) -> None:
    """Store a CiliumNodeConfig as 1.15 did, and let the CRD be what newer operators make of it."""
    api.delete(*NODE_CONFIGS)
    crd = api.get(CRD)
    api.delete(CRD)
    until(lambda: NODE_CONFIG_CRD not in api.items(CRDS), "the CRD is gone")
    names = {key: crd["metadata"][key] for key in ("name", "labels", "annotations") if key in crd["metadata"]}
    old: Object = {"metadata": names, "spec": {**crd["spec"]}}
    only("v2alpha1", stored="v2alpha1")(old)
    api.create(CRDS, old)
    until(lambda: api.ask("POST", OLD, CONFIG).code == Status.CREATED, "v2alpha1 is served")
    api.change(CRD, lambda whole: whole.update(spec=crd["spec"]))
    until(lambda: api.ask("GET", NEW).code == Status.OK, "v2 is served")
    assert stored(api) == ["v2alpha1", "v2"]


def stored(api: Api) -> list[str]:
    """Return the versions that the CRD lists as stored."""
    return list(api.get(CRD)["status"]["storedVersions"])


def dropped(api: Api) -> str:
    """Take v2alpha1 out of the CRD, as the operators of 1.20.0 and 1.20.1 do; return what the apiserver says."""
    crd = api.get(CRD)
    only("v2", stored="v2")(crd)
    answer = api.ask("PUT", f"{CRD}?dryRun=All", crd)
    return "" if answer.code == Status.OK else answer.message


@shows("IPC0938")
def test_what_1_15_stored_is_stored_anew_before_1_20(begin: Any, operator: Operator) -> None:  # noqa: F811
    api, player = operator.api, begin("bystander")
    as_1_15_left_it(api)
    numbers = iter(range(operator.version[1] + 1, LAST[1] + 1))

    def next_version(site: Site) -> None:
        version = f"1.{next(numbers)}"
        site.edit(
            lambda document: (
                document["spec"]["cilium"].update(version=version) if document["kind"] == "Cluster" else None
            )
        )

    def audited() -> list[str]:
        name = player.site.name
        said = player.sh(
            f"ipamc dump {name} --write live.json && {{ ipamc audit {name} live.json --format json 2>&1 || true; }}"
        )
        return [each["severity"] for each in json.loads(said)["findings"] if each["code"] == "IPC0938"]

    assert "storedVersions" in dropped(api)
    assert audited() == ["note"]

    player.edits["edit-version"] = next_version
    player.conditions.add("stored-anew")
    player.play(player.runbook("--change upgrade --to 1.20"))
    assert stored(api) == ["v2"]
    assert dropped(api) == ""
    assert [each["spec"] for each in api.items(NEW).values()] == [CONFIG["spec"]]
    assert audited() == []


@pytest.mark.skipif(not [each for each in OPERATORS if minor(each) == LAST], reason="no operator of 1.20")
def test_the_release_of_the_runbook_starts_either_way(operator: Operator, tmp_path: Path) -> None:
    api = operator.api
    as_1_15_left_it(api)
    (release,) = (each for each in OPERATORS if minor(each) == LAST)
    newer = Operator(release / "cilium-operator", LAST, api, tmp_path)
    config = {"ipam": "kubernetes", "enable-ipv4": "true", "enable-ipv6": "false"}
    before = api.get(CRD)["metadata"]["labels"]
    with newer.start(config) as program:
        program.until(lambda: LEADS in program.said(), "the operator leads")
        until(lambda: api.get(CRD)["metadata"]["labels"] != before, "it has written its CRD")
    assert [each["name"] for each in api.get(CRD)["spec"]["versions"]] == ["v2", "v2alpha1"]
    assert stored(api) == ["v2alpha1", "v2"]
