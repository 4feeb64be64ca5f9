"""Disaster recovery from git: etcd is lost, and every node gets the blocks of the lock before its agent starts."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cluster import Mode
from ipamc.model.lock import Line
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import Commands, quoted
from ipamc.review.runbook.common import FEW, applied, audited, merged, shown
from ipamc.review.runbook.new_blocks import labels_of
from ipamc.review.runbook.values import Check, Runbook, Step, Where, alone

NO_WAY_BACK = "there is nothing to go back to; until the agents start, every step can be repeated"
KUBELETS = (
    "sudo systemctl stop kubelet",
    "sudo crictl pods --label=k8s-app=cilium --quiet | xargs --no-run-if-empty sudo crictl rmp --force",
)


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
        title="Stop the kubelets and Cilium's agents of all nodes",
        why="pods go on. An agent that reaches an empty apiserver makes its CiliumNode anew, and asks for any block",
        where=Where.NODE,
        commands=KUBELETS,
    )
    yield paused(run)
    yield Step(
        key="checkout",
        title="Check out the trunk, and see that it is whole",
        commands=(*run.merged, run.ipamc("compile", run.name, "--locked", "--check")),
        if_not="a commit is damaged: git log -- the lock, and take the last one that compiles. Lines must not be lost",
    )


def paused(run: Commands) -> Step:
    """Return the step that keeps everybody else from applying."""
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
            run.helm(
                "--install", "--values=YOUR-VALUES.yaml", run.values, "--set=agent=false", version=run.read_at
            ),
        )
    yield Step(
        key="operator",
        title="Install Cilium without its agents",
        why="the operator registers the CRDs, and the flags are there before anybody reads them. Take the patch level that ran",
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
    yield from merged(
        run,
        "restore",
        "the Nodes registered anew",
        quoted("git", "rm", "--quiet", "--ignore-unmatch", f"{run.where}/ciliumnodes.yaml"),
        run.dump_nodes,
        f"{run.refresh} --rebuilt",
        why="they have other uids, and manifests with the old ones would be refused. Only uids may change in the plan. CiliumNodes of before are no evidence any more",
        if_not="nodes that have not registered would leave: start their kubelets first, or take their lines of nodes.yaml back",
    )


def _all_blocks(plan: Plan, run: Commands) -> Iterator[Step]:
    cluster = plan.cluster
    yield applied(
        run,
        by_hand=True,
        why="it takes the order that matters: cilium/, then shard by shard",
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
        running_nodes(plan),
        "Check that every node has its blocks",
        if_not="stop: do not start the agents before this is so",
    )


def _agents(run: Commands) -> Iterator[Step]:
    cluster = run.cluster
    helm = run.helm("--reuse-values", "--set=agent=true")
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


def running_nodes(plan: Plan) -> dict[str, tuple[Line, ...]]:
    """Return the held lines of the nodes that run."""
    running = {node.name for node in plan.cluster.nodes if not node.planned}
    return {node: lines for node, lines in plan.held.items() if lines and node in running}
