"""Disaster recovery: etcd is lost and git is there, or etcd comes back from a backup that is older than the lock."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cluster import Mode
from ipamc.model.lock import Line
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import Commands, quoted
from ipamc.review.runbook.common import (
    FEW,
    applied,
    audited,
    branched,
    merged,
    refreshed,
    shown,
)
from ipamc.review.runbook.moved import labels_of
from ipamc.review.runbook.values import Check, Runbook, Step, Where, alone

NO_WAY_BACK = "there is nothing to go back to; until the agents start, every step can be repeated"
KUBELETS = "sudo systemctl stop kubelet"


def restore_git(plan: Plan, run: Commands) -> Runbook:
    """Return the steps by which a new control plane gets every node with the blocks of the lock."""
    return Runbook(
        cluster=run.name,
        change="restore-git",
        title=f"{run.name}: etcd is lost, git is there",
        about=(
            (
                "the order is: flags and pools, Nodes, blocks, and only then agents. An agent that starts before its block is "
                "there waits, or gets another one from the operator"
            ),
            "the lock in git is the truth: do not delete it, do not begin a new one, and do not run --leave",
        ),
        phases=(
            alone("Before anything starts", *_quiet(run)),
            alone("The control plane, and Cilium without agents", *_control_plane(run)),
            alone("Nodes", *_nodes(plan, run)),
            alone("Blocks, before agents", *_all_blocks(plan, run)),
            alone("Agents", *_agents(run)),
        ),
        way_back=NO_WAY_BACK,
    )


def _quiet(run: Commands) -> Iterator[Step]:
    yield Step(
        key="stop-kubelet",
        title="Stop the kubelets of all nodes",
        why="pods go on, and nobody registers before Cilium's flags are there",
        where=Where.NODE,
        commands=(KUBELETS,),
    )
    yield _paused(run)
    yield Step(
        key="checkout",
        title="Check out the trunk, and see that it is whole",
        commands=(*run.merged, run.ipamc("compile", run.name, "--locked", "--check")),
        if_not="a commit is damaged: git log -- the lock, and take the last one that compiles. Lines must not be lost",
    )


def _paused(run: Commands) -> Step:
    return Step(
        key="pause",
        title="Pause the pipelines of this cluster, Argo CD and Flux",
        why="they would apply in an order of their own",
        where=Where.EDITOR,
        edit=f"disable the jobs that run: {run.apply}",
    )


def _control_plane(run: Commands) -> Iterator[Step]:
    cluster = run.cluster
    yield Step(
        key="control-plane",
        title="Bring up etcd and the control plane, empty, without worker nodes",
        why="kube-controller-manager with --allocate-node-cidrs=false: podCIDRs that it gives are for good"
        if cluster.mode is Mode.KUBERNETES
        else "",
        where=Where.NODE,
    )
    commands: tuple[str, ...] = ()
    if cluster.managed_by == "helm":
        commands = (
            quoted(
                "helm",
                f"--kube-context={run.name}",
                f"--namespace={cluster.namespace}",
                "upgrade",
                "--install",
                "cilium",
                "cilium/cilium",
                "--values=YOUR-VALUES.yaml",
                f"--values={run.where}/rendered/cilium/helm-values.yaml",
                "--set=agent=false",
            ),
        )
    yield Step(
        key="operator",
        title="Install Cilium without its agents",
        why="the operator registers the CRDs, and the flags are there before anybody reads them",
        where=Where.HERE if commands else Where.EDITOR,
        commands=commands,
        edit="" if commands else "ConfigMap, RBAC and Deployment cilium-operator, without DaemonSet cilium",
    )
    yield Step(
        key="crds",
        title="Wait for the CRDs",
        check=Check(
            command=run.columns("crd", ("ciliumnodes.cilium.io",), "NAME:.metadata.name"),
            expect="ciliumnodes.cilium.io",
        ),
        if_not="see the log of the operator",
    )


def _nodes(plan: Plan, run: Commands) -> Iterator[Step]:
    running = tuple(node.name for node in plan.cluster.nodes if not node.planned)
    yield Step(
        key="start-kubelet",
        title="Start the kubelets: the Nodes register anew",
        where=Where.NODE,
        nodes=running,
        commands=("sudo systemctl start kubelet",),
        check=Check(command=run.columns("nodes", running, "NODE:.metadata.name"), expect="\n".join(running))
        if len(running) <= FEW
        else None,
        if_not="a node that does not come back stays in the inventory: leave it there, its blocks wait for it",
    )
    if labels := labels_of(run, running):
        yield Step(
            key="label-node",
            title="Give the Nodes the labels of the inventory, and their taints",
            why="pools select nodes by them",
            nodes=running,
            commands=labels,
        )
    branch = f"runbook/{run.name}/restore"
    yield branched(run, branch)
    yield from merged(
        run,
        branch,
        "the Nodes registered anew",
        quoted("git", "rm", "--quiet", "--ignore-unmatch", f"{run.where}/ciliumnodes.yaml"),
        run.dump,
        f"{run.refresh} --rebuilt",
        why="they have other uids, and manifests with the old ones would be refused. Only uids may change in the plan. CiliumNodes of before are no evidence any more",
        if_not="nodes that have not registered would leave: start their kubelets first, or take their lines of nodes.yaml back",
    )


def _all_blocks(plan: Plan, run: Commands) -> Iterator[Step]:
    cluster = plan.cluster
    yield applied(
        run,
        why="cilium/ first, then shard by shard",
        if_not="it waits for CRDs, or the flags are not as rendered: see the steps before",
    )
    if cluster.mode is Mode.MULTI_POOL:
        yield Step(
            key="seeds",
            title="Apply the seeds, before the agents start",
            why="without them the operator gives any block",
            commands=(run.seeds(f"{run.where}/rendered/seeds/"),),
            if_not="a conflict: an agent runs already. Stop it, delete that CiliumNode, and apply again",
        )
    yield from shown(
        run,
        _running(plan),
        "Check that every node has its blocks",
        if_not="stop: do not start the agents before this is so",
    )


def _agents(run: Commands) -> Iterator[Step]:
    cluster = run.cluster
    helm = quoted(
        "helm",
        f"--kube-context={run.name}",
        f"--namespace={cluster.namespace}",
        "upgrade",
        "cilium",
        "cilium/cilium",
        "--reuse-values",
        "--set=agent=true",
    )
    yield Step(
        key="agents",
        title="Start the agents",
        where=Where.HERE if cluster.managed_by == "helm" else Where.EDITOR,
        commands=(helm,) if cluster.managed_by == "helm" else (),
        edit="" if cluster.managed_by == "helm" else "apply DaemonSet cilium",
        if_not="an agent that waits for a block says so in its log: apply again",
    )
    yield audited(run)
    yield Step(
        key="resume",
        title="Resume the pipelines, and deploy the workloads",
        where=Where.EDITOR,
        edit="as they were before",
    )


def restore_etcd(plan: Plan, run: Commands) -> Runbook:
    """Return the steps by which a cluster goes on from an older state, without the lock going back."""
    return Runbook(
        cluster=run.name,
        change="restore-etcd",
        title=f"{run.name}: etcd comes back from a backup",
        about=(
            "the backup is older than the lock, and the lock must not go back: no git revert, no older commit",
            (
                "pods that run have the newest addresses, and restored objects may show older blocks. An agent that restarts "
                "before the apply reads the old block, so restart none"
            ),
            (
                "where the operator gives the blocks (multi-pool with shared pools, unlisted pools) its books are as old as "
                "the backup: it must not run before the audit"
            ),
        ),
        phases=(
            alone("Restore, with the operator off", *_restored(run)),
            alone("Compare with git", *_compared(run)),
            alone("Bring the cluster forward to git", *_forward(plan, run)),
            alone("Let the operator and the pipelines go on", *_resumed(plan, run)),
        ),
        way_back="stop the operator again, and repeat from the audit on: applies can be repeated",
    )


def _restored(run: Commands) -> Iterator[Step]:
    yield _paused(run)
    yield Step(
        key="restore",
        title="Restore the snapshot, with revisions that go on above those of before",
        why="controllers and agents would else believe their newer caches",
        where=Where.NODE,
        commands=(
            "sudo etcdutl snapshot restore snapshot.db --data-dir=/var/lib/etcd-restored --bump-revision=1000000000 --mark-compacted",
        ),
        if_not="an etcd before 3.6 has no --bump-revision in etcdctl: restart every component that watches, agents excepted",
    )
    yield Step(
        key="operator-off",
        title="Stop Cilium's operator as the first thing",
        why="its books are older than what nodes have",
        commands=(run.of_cilium("scale", "deployment/cilium-operator", "--replicas=0"),),
        check=Check(
            command=run.of_cilium(
                "get",
                "deployment",
                "cilium-operator",
                "--no-headers",
                "--output=custom-columns=REPLICAS:.spec.replicas",
            ),
            expect="0",
        ),
        if_not="stop its pods' node, or take away its rights: it must not write",
    )


def _compared(run: Commands) -> Iterator[Step]:
    yield Step(
        key="audit",
        title="Audit, and keep what it says",
        why="it lists nodes that joined since, nodes that left since and are back, and blocks that changed since",
        commands=(*run.merged, run.dump, f"{run.audited.command} || true"),
    )
    yield Step(
        key="ghosts",
        title="Delete the Nodes that left since, with their CiliumNodes",
        why="nobody runs there, and their blocks may be of others now",
        only_if="the audit names some",
        commands=(),
        if_not="kubectl delete node NODE; kubectl delete ciliumnode NODE",
    )
    yield Step(
        key="restart-kubelet",
        title="Restart the kubelets of nodes that joined since: they register again",
        only_if="the audit names some",
        where=Where.NODE,
        commands=("sudo systemctl restart kubelet",),
    )


def _forward(plan: Plan, run: Commands) -> Iterator[Step]:
    branch = f"runbook/{run.name}/restore"
    yield branched(run, branch)
    yield from merged(
        run,
        branch,
        "after the restore of etcd",
        *refreshed(run),
        why="Nodes that registered again have other uids; the evidence of the lock must not be older than the lock",
        if_not="a CiliumNode that shows a block of before is refused, with both places: remove it from the inputs, the lock is right",
    )
    yield applied(
        run,
        if_not="an object is withheld where another CiliumNode still shows its addresses: that one is from the backup. Run it "
        "again; if two nodes exchange blocks, delete the CiliumNode of one that is drained. An error of the operator that is older than the restore goes away only when it runs again",
    )
    if run.cluster.mode is not Mode.MULTI_POOL:
        yield from shown(
            run,
            _running(plan),
            "Check that every node has its blocks",
            if_not="apply again, with the operator off",
        )
    elif run.cluster.shared_pools:
        yield Step(
            key="seeds",
            title="Drain the nodes whose blocks changed since the backup, and seed them anew",
            why="their agents follow what the CiliumNode shows now, which is older than their pods",
            only_if="the audit names some",
            commands=(run.ipamc("runbook", run.name, "--change", "replace-node", "--node", "NODE"),),
        )


def _running(plan: Plan) -> dict[str, tuple[Line, ...]]:
    """Return the held lines of the nodes that run."""
    running = {node.name for node in plan.cluster.nodes if not node.planned}
    return {node: lines for node, lines in plan.held.items() if lines and node in running}


def _resumed(plan: Plan, run: Commands) -> Iterator[Step]:
    yield Step(
        key="operator-on",
        title="Start the operator",
        commands=(run.of_cilium("scale", "deployment/cilium-operator", "--replicas=1"),),
        if_not="stop it again when an audit finds a block of two nodes",
    )
    if run.cluster.own_pools:
        yield from shown(
            run,
            _running(plan),
            "Check that every node has its blocks again: it can get no others",
            if_not="a node whose agent has not asked yet has none: restart its agent",
        )
    yield audited(run)
    yield Step(
        key="resume",
        title="Resume the pipelines",
        where=Where.EDITOR,
        edit="as they were before",
    )
