"""Disaster recovery from a backup of etcd, which is older than the lock: the cluster comes forward, the lock does not go back."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cluster import Mode
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.common import applied, audited, merged, refreshed, shown
from ipamc.review.runbook.restore_git import paused, running_nodes
from ipamc.review.runbook.values import Check, Runbook, Step, Where, alone


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
    yield paused(run)
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
    yield from merged(
        run,
        "restore",
        "after the restore of etcd",
        *refreshed(run),
        why="Nodes that registered again have other uids; the evidence of the lock must not be older than the lock",
        if_not="a CiliumNode that shows a block of before is refused, with both places: remove it from the inputs, the lock is right",
    )
    yield applied(
        run,
        by_hand=True,
        if_not="an object is withheld where another CiliumNode still shows its addresses: that one is from the backup. Run it "
        "again; if two nodes exchange blocks, delete the CiliumNode of one that is drained. An error of the operator that is older than the restore goes away only when it runs again",
    )
    if run.cluster.mode is not Mode.MULTI_POOL:
        yield from shown(
            run,
            running_nodes(plan),
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
            running_nodes(plan),
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
