"""From Calico to Cilium on a range that Calico has not: the way of Cilium's own guide, where both overlays run."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ipamc.model.diagnostics import count
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import Commands, quoted
from ipamc.review.runbook.common import applied, audited, cordoned, drained, ready, uncordoned
from ipamc.review.runbook.values import Check, Cut, Phase, Runbook, Step, Wave, Where, alone, waves

LABEL = "io.cilium.migration/cilium-default"
"""The label of nodes that run Cilium, as in Cilium's own guide."""


def given(run: Commands, document: object, *options: str) -> str:
    """Return how an object that is no part of the tree is applied."""
    text = json.dumps(document, separators=(",", ":"))
    apply = run.kubectl("apply", "--server-side", "--field-manager=ipamc-migration", *options, "--filename=-")
    return f"printf '%s\\n' {quoted(text)} | {apply}"


def removed(run: Commands) -> Iterator[Step]:
    """Yield the steps after the last node has moved."""
    yield Step(
        key="all-moved",
        title="See that no node is left",
        check=Check(
            command=run.kubectl("get", "nodes", f"--selector={LABEL}!=true", "--output=name"), expect=""
        ),
        if_not="move them first",
    )
    yield Step(
        key="remove-calico",
        title="Delete Calico, with its CRDs and so its IPReservations, and enforce policies again",
        why="nothing of Calico runs, so nothing gives addresses out of its books any more",
        where=Where.EDITOR,
        edit="delete what Calico was installed with; in Cilium's values remove nodeSelector and policyEnforcementMode",
    )
    yield audited(run)


def calico_distinct(plan: Plan, run: Commands, cut: Cut) -> Runbook:
    """Return the steps of Cilium's own guide: Cilium has a range that Calico has not, so the two may overlay."""
    nodes = [node.name for node in plan.cluster.nodes if not node.planned]
    label = f"{LABEL}=true"
    found = []
    for name, some in waves(plan.cluster, nodes, cut):
        steps = (
            cordoned(run, some),
            drained(run, some, "pods start elsewhere, on Calico or on Cilium"),
            Step(
                key="label",
                title="Label the nodes",
                nodes=some,
                commands=(run.kubectl("label", "nodes", *some, "--overwrite", label),),
            ),
            Step(
                key="restart-agent",
                title="Restart their agents: they write Cilium's CNI configuration",
                nodes=some,
                commands=tuple(run.restart_agent(node) for node in some),
            ),
            Step(key="reboot", title="Reboot them", where=Where.NODE, nodes=some, commands=("sudo reboot",)),
            ready(run, some),
            audited(run, "pods of these nodes have addresses of the new range"),
            uncordoned(run, some),
        )
        found.append(Wave(name=name, nodes=some, steps=steps))
    return Runbook(
        cluster=run.name,
        change="calico",
        title=f"{run.name}: from Calico to Cilium, {count(len(nodes), 'node')}, on a distinct range",
        about=(
            (
                "no range of the cluster's pools may overlap a pool of Calico; every pod gets another address, so firewalls and "
                "BGP filters must know the new range"
            ),
            "both overlays run at the same time, on different ports (tunnelPort 8473 where Calico has VXLAN on 4789 or 8472)",
            "this is the way of Cilium's guide (Documentation/installation/k8s-install-migration.rst), which was not tested with BGP",
        ),
        phases=(
            alone("Install Cilium beside Calico", *_beside(run)),
            Phase(title="Move the nodes, wave by wave", waves=tuple(found)),
            alone("Remove Calico, after the last node", *removed(run)),
        ),
        way_back="of a node: cordon and drain it, take the label away, remove /etc/cni/net.d/05-cilium.conflist on the node, reboot it",
    )


def _beside(run: Commands) -> Iterator[Step]:
    cluster = run.cluster
    defaults = {
        "write-cni-conf-when-ready": "/host/etc/cni/net.d/05-cilium.conflist",
        "custom-cni-conf": "false",
        "cni-chaining-mode": "none",
        "cni-exclusive": "true",
    }
    document = {
        "apiVersion": "cilium.io/v2" if cluster.cilium >= (1, 16) else "cilium.io/v2alpha1",
        "kind": "CiliumNodeConfig",
        "metadata": {"namespace": cluster.namespace, "name": "cilium-default"},
        "spec": {"nodeSelector": {"matchLabels": {LABEL: "true"}}, "defaults": defaults},
    }
    yield Step(
        key="operator",
        title="Install Cilium without a CNI configuration, and without policies",
        commands=(
            run.helm(
                "--install",
                run.values,
                "--set=cni.customConf=true",
                "--set=cni.uninstall=false",
                "--set=tunnelPort=8473",
                "--set=policyEnforcementMode=never",
                "--set=bpf.hostLegacyRouting=true",
                "--set=operator.unmanagedPodWatcher.restart=false",
                version=run.read_at,
            ),
        ),
    )
    yield applied(run, why="a block for each node, before its agent asks for one")
    yield Step(
        key="node-config",
        title="Let agents of labelled nodes write their CNI configuration",
        commands=(given(run, document),),
    )
