"""From Calico to Cilium, node by node, where each node keeps its Calico blocks.

What Calico does (libcalico-go/lib/ipam/ipam.go, autoAssign, findOrClaimBlock, AssignIP at 3.30; kube-controllers):
- a pod gets an address of a block that is affine to its node; without a free one the node claims another block,
  unless `autoAllocateBlocks` is false, and then borrows one of another node's block, unless `strictAffinity`;
- both false at once is refused; with `autoAllocateBlocks: false` a node without a free address starts no pod, and
  a node that joins starts none at all;
- a block without addresses is released after a while, and may then be claimed by any node;
- an IPReservation keeps addresses from being given, and a block that lies in one from being claimed; an address
  that a pod asks for by name (`cni.projectcalico.org/ipAddrs`) is given all the same, also out of a released block.

tests/review/test_runbook_calico.py plays these rules against the steps: no address has two nodes at any step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ipamc.model.diagnostics import count
from ipamc.model.lock import Line
from ipamc.model.plan import Plan
from ipamc.review.runbook.calico_distinct import LABEL, given, removed
from ipamc.review.runbook.commands import STOP_PODS, Commands
from ipamc.review.runbook.common import applied, audited, cordoned, drained, merged, ready, shown, uncordoned
from ipamc.review.runbook.values import Check, Cut, Phase, Runbook, Step, Wave, Where, alone, waves

GROUP = "crd.projectcalico.org"
CONFIG = f"ipamconfigs.{GROUP}"
RESERVATIONS = f"ipreservations.{GROUP}"


def calico(plan: Plan, run: Commands, cut: Cut) -> Runbook:
    """Return the steps by which each node keeps its blocks. `plan` holds them, as `ipamc import` made it."""
    nodes = [node.name for node in plan.cluster.nodes if plan.held.get(node.name)]
    return Runbook(
        cluster=run.name,
        change="calico",
        title=f"{run.name}: from Calico to Cilium, {count(len(nodes), 'node')}, with the same blocks",
        about=(
            (
                "this works only without an overlay: Calico with ipipMode and vxlanMode Never, Cilium with routingMode native, and a "
                "network that learns the route of each block from both (BGP). Two overlays would both route the same range"
            ),
            "with an overlay, or to be free of Calico's books, take the distinct range instead: --change calico --to distinct",
            (
                "while Calico's IPAM is frozen, a node whose blocks are full starts no pod, and a new node starts none at all: "
                "join no node, and begin with nodes that can take the pods of others"
            ),
            "NetworkPolicies do not hold between the two worlds: enforce none until the last node has moved",
            "Calico is reached as crd.projectcalico.org/v1, with Kubernetes as its datastore; with another datastore do the same by calicoctl",
        ),
        phases=(
            alone("Freeze Calico's IPAM", *_frozen(run)),
            alone("Install Cilium on no node", *_installed(run)),
            _nodes(plan, run, cut, nodes),
            alone("Remove Calico, after the last node", *removed(run)),
        ),
        way_back="of a node: cordon and drain it, stop its pods as above, take the label away, delete its CiliumNode and "
        "then its IPReservation, reboot it. If Calico has released its blocks meanwhile, it gets none while "
        "autoAllocateBlocks is false: allow it for that moment, then freeze and refresh again",
    )


def _frozen(run: Commands) -> Iterator[Step]:
    yield Step(
        key="no-overlay",
        title="See that no pool has an overlay",
        commands=(
            run.columns(
                f"ippools.{GROUP}", (), "POOL:.metadata.name", "IPIP:.spec.ipipMode", "VXLAN:.spec.vxlanMode"
            ),
        ),
        if_not="anything but Never: take the distinct range",
    )
    asked = r"ADDRESSES:.metadata.annotations.cni\.projectcalico\.org/ipAddrs"
    pods = run.kubectl(
        "get",
        "pods",
        "--all-namespaces",
        "--no-headers",
        f"--output=custom-columns=POD:.metadata.name,{asked}",
    )
    yield Step(
        key="no-fixed-addresses",
        title="See that no pod asks for an address by name",
        why="Calico gives it whatever is reserved, and out of a block that was released",
        check=Check(command=f"{pods} | grep --invert-match '<none>$'", expect=""),
        if_not="remove the annotation cni.projectcalico.org/ipAddrs from their workloads first",
    )
    config = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "IPAMConfig",
        "metadata": {"name": "default"},
        "spec": {"strictAffinity": True, "autoAllocateBlocks": False},
    }
    yield Step(
        key="freeze",
        title="No new blocks, and no borrowing",
        why="from now on every address of a pod lies in a block that its node has",
        commands=(given(run, config, "--force-conflicts"),),
        check=Check(
            command=run.columns(
                CONFIG, ("default",), "STRICT:.spec.strictAffinity", "AUTO:.spec.autoAllocateBlocks"
            ),
            expect="true false",
        ),
        if_not="an operator of Calico may own it: change it there",
    )
    yield from merged(
        run,
        "calico",
        "the blocks that Calico has given out, frozen",
        run.dump_calico,
        run.refresh,
        why="what Calico shows after the freeze must be what the lock holds; from now on no more blocks are claimed",
        if_not="IPC0513: Calico made a block for a node after the import. Nothing was applied yet, so delete "
        f"{run.where}, and import again: {run.ipamc('import', run.name, run.dump_file)}",
    )
    yield Step(
        key="restart-borrowers",
        title="Start the pods again that borrow an address of another node's block",
        why="strictAffinity gives them one of their own node",
        commands=("calicoctl ipam show --show-borrowed", run.dump_calico),
        edit="kubectl delete pod, for each that is listed",
        check=run.audited,
        if_not="it names pods outside of their node's blocks: delete them, and look again. Go on only when there is none",
    )
    yield Step(
        key="print-again",
        title="Print this runbook again: it now has every block",
        commands=(run.ipamc("runbook", run.name, "--change", "calico"),),
    )


def _installed(run: Commands) -> Iterator[Step]:
    term = {"matchExpressions": [{"key": LABEL, "operator": "NotIn", "values": ["true"]}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }
    template = {"spec": {"template": {"spec": {"affinity": affinity}}}}
    yield Step(
        key="calico-leaves",
        title=f"Let Calico leave nodes with the label {LABEL}",
        why="it restarts on every node, one after the other; pods go on meanwhile",
        commands=(
            run.kubectl(
                "--namespace=kube-system",
                "patch",
                "daemonset",
                "calico-node",
                "--type=merge",
                f"--patch={json.dumps(template)}",
            ),
        ),
        if_not="with the Tigera operator: the same affinity at spec.calicoNodeDaemonSet of Installation default",
    )
    yield Step(
        key="operator",
        title="Install Cilium, with agents on labelled nodes only",
        why="an agent takes addresses of its node's blocks for itself, so it must not run beside Calico",
        commands=(
            run.helm(
                "--install",
                run.values,
                f"--set-string=nodeSelector.{LABEL.replace('.', chr(92) + '.')}=true",
                "--set=policyEnforcementMode=never",
                "--set=operator.unmanagedPodWatcher.restart=false",
                "--set=cni.exclusive=true",
                "--set=routingMode=native",
                version=run.read_at,
            ),
        ),
        check=Check(
            command=run.of_cilium("get", "pods", "--selector=k8s-app=cilium", "--output=name"), expect=""
        ),
        if_not="no node may have the label yet: take it away",
    )
    yield applied(run, why="the pool of each node, with its blocks, and which pool its agent takes")


def _nodes(plan: Plan, run: Commands, cut: Cut, nodes: Sequence[str]) -> Phase:
    found = []
    for name, some in waves(plan.cluster, nodes, cut):
        blocks = {node: plan.held[node] for node in some}
        steps = (
            cordoned(run, some),
            _reserved(run, blocks),
            drained(run, some, "pods start elsewhere, on Calico or on Cilium"),
            Step(
                key="stop-pods",
                title="On each node stop the kubelet and all pods that are left, and take Calico's CNI configuration away",
                why="pods of DaemonSets have addresses that Cilium is about to give out",
                where=Where.NODE,
                nodes=some,
                commands=(
                    "sudo systemctl stop kubelet",
                    STOP_PODS,
                    "sudo rm --force /etc/cni/net.d/10-calico.conflist /etc/cni/net.d/calico-kubeconfig",
                ),
                if_not="a pod that cannot be removed goes with the reboot: reboot now, before the next step, with the kubelet disabled",
            ),
            Step(
                key="seed",
                title="Give the nodes their blocks in Cilium",
                why="the agent finds them when it starts, and asks for no others",
                nodes=some,
                commands=tuple(run.seed(node, lines) for node, lines in sorted(blocks.items())),
                if_not="a conflict: an agent runs there already. Take the label away, and begin the node anew",
            ),
            Step(
                key="label",
                title="Label the nodes: Calico leaves, Cilium's agent comes",
                nodes=some,
                commands=(run.kubectl("label", "nodes", *some, "--overwrite", f"{LABEL}=true"),),
            ),
            Step(
                key="reboot",
                title="Reboot them",
                why="routes, rules and interfaces of Calico go; every pod starts with an address from Cilium",
                where=Where.NODE,
                nodes=some,
                commands=("sudo systemctl enable kubelet && sudo reboot",),
            ),
            ready(run, some, "see the agent's log"),
            *shown(
                run,
                blocks,
                "Look at the blocks of the nodes",
                if_not="the operator has emptied the seed: apply cilium/ and pools, then the seed again",
            ),
            audited(run, "no address may be of two nodes, and no pod outside of its node's blocks"),
            uncordoned(run, some),
        )
        found.append(Wave(name=name, nodes=some, steps=steps))
    return Phase(title="Move the nodes, wave by wave", waves=tuple(found))


def _reserved(run: Commands, blocks: dict[str, tuple[Line, ...]]) -> Step:
    """Return the step that keeps Calico away from the blocks of nodes, before these are empty."""
    rows = []
    commands = []
    for node, lines in sorted(blocks.items()):
        cidrs = [str(line.block) for line in lines]
        document = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "IPReservation",
            "metadata": {"name": node},
            "spec": {"reservedCIDRs": cidrs},
        }
        commands.append(given(run, document))
        rows.append(f"{node} {','.join(cidrs)}")
    return Step(
        key="reserve",
        title="Reserve their blocks in Calico, before they are empty",
        why="Calico releases an empty block, and any node may then claim it",
        nodes=tuple(sorted(blocks)),
        commands=tuple(commands),
        check=Check(
            command=run.columns(
                RESERVATIONS, sorted(blocks), "NODE:.metadata.name", "RESERVED:.spec.reservedCIDRs[*]"
            ),
            expect="\n".join(rows),
        ),
        if_not="do not drain the node before this is so",
    )
