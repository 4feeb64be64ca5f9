"""`ipamc init`: a cluster to begin with, and a repository that knows about locks."""

from __future__ import annotations

from pathlib import PurePath

import click

from ipamc.cli.command import DONE, Verb
from ipamc.cli.schema import by_kind, file_name
from ipamc.workspace import disk, git
from ipamc.workspace.clusters import name_of

SCHEMAS = ".schemas"
"""Beside the clusters; a name with a dot is no cluster."""

CLUSTER = """\
# yaml-language-server: $schema=../{schemas}/cluster.schema.json
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {{name: {name}}}
spec:
  cilium:
    version: "1.18"           # the lowest minor that runs there
    managedBy: helm           # helm | kustomize | none: who owns cilium-config
  ipam:
    mode: cluster-pool        # kubernetes | cluster-pool | multi-pool | crd
  ipFamilies: [IPv4]
  excludedCIDRs: []           # service range, node networks, other clusters
"""

POOLS = """\
# yaml-language-server: $schema=../{schemas}/ippool.schema.json
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {{name: default}}
spec:
  ipv4: {{cidrs: [10.244.0.0/16], blockSize: 24}}     # 256 blocks of 254 addresses for pods, one block a node
  # nodeSelector: topology.kubernetes.io/zone == "a"    without one, every node
"""

NODES = """\
# yaml-language-server: $schema=../{schemas}/nodeinventory.schema.json
# Or put the output of 'kubectl get nodes -o yaml' into a file of any name in this folder.
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: []
# - {{name: worker-1, labels: {{topology.kubernetes.io/zone: a}}}}
"""

FILES = {"cluster.yaml": CLUSTER, "ippools.yaml": POOLS, "nodes.yaml": NODES}

# The lock merges by rule; what is rendered takes either side and is compiled again. Both have LF line ends everywhere: same input, same bytes.
ATTRIBUTES = {
    "ipam.lock": ("text", "eol=lf", "merge=ipamc"),
    "**/rendered/**": ("text", "eol=lf", "linguist-generated", "merge=ipamc-rendered"),
}

# Without the second half, git would leave our side alone in a lock that it calls conflicted, and the other side's blocks would be forgotten with one `git add`.
DRIVERS = {
    "merge.ipamc.name": "locks of ipamc",
    "merge.ipamc.driver": (
        "command -v ipamc >/dev/null && exec ipamc merge-driver %O %A %B %P; "
        "git merge-file -L ours -L base -L theirs %A %O %B; echo ipamc is not on the PATH, so this was merged as text: %P >&2; exit 1"
    ),
    "merge.ipamc-rendered.name": "either side: ipamc compile renders it again",
    "merge.ipamc-rendered.driver": "true",
}


@click.command(
    cls=Verb,
    examples=(
        ("ipamc init lab", "start clusters/lab/ and prepare the repository"),
        (
            "ipamc init",
            "prepare the repository alone: once in every clone, git does not share its configuration",
        ),
    ),
    refused="the surroundings failed",
)
@click.argument("cluster", required=False)
def command(*, cluster: str | None) -> int:
    """Start a cluster, and prepare the repository.

    CLUSTER is a name below clusters/, or a folder. Writes cluster.yaml, ippools.yaml and nodes.yaml, never over anything, the schemas that editors
    use, .gitattributes, and the merge drivers in the configuration of the git repository.
    """
    if cluster is not None:
        _start(cluster)
    top = git.root(".")
    attributes = f"{top or '.'}/.gitattributes"
    text = with_attributes(disk.read_text(attributes))
    _tell(".gitattributes", "written" if disk.replace(attributes, text) else "unchanged")
    if top is None:
        _tell(
            "git config",
            "not in a git repository: run 'ipamc init' again when there is one, for the merge drivers",
        )
    else:
        _tell("git config", "merge drivers set" if git.configure(".", DRIVERS) else "unchanged")
    return DONE


def _start(text: str) -> None:
    folder = (
        PurePath(text).as_posix()
        if PurePath(text).name != text or text in {".", ".."}
        else f"{disk.CLUSTERS}/{text}"
    )
    name = name_of(folder)
    from ipamc.model.selector.label_syntax import subdomain_problem

    if subdomain_problem(name):
        raise click.UsageError(
            f"{name!r} is no name for a cluster: lower-case letters, digits, '-' and '.'",
            click.get_current_context(),
        )
    if disk.is_folder(folder) and any(disk.read_sources(folder)):
        _tell(folder, "has inputs already, left as they are")
        return
    for file, content in FILES.items():
        disk.create(f"{folder}/{file}", content.format(name=name, schemas=SCHEMAS))
        _tell(f"{folder}/{file}", "written")
    schemas = (PurePath(folder).parent / SCHEMAS).as_posix()
    for kind, schema in by_kind().items():
        disk.replace(f"{schemas}/{file_name(kind)}", schema)
    _tell(f"{schemas}/", "schemas for editors")
    click.echo(f"next: list your nodes in {folder}/nodes.yaml, then run: ipamc compile {text}", err=True)


def _tell(what: str, text: str) -> None:
    click.echo(f"{what}: {text}", err=True)


def with_attributes(text: str) -> str:
    """Give the text of .gitattributes with ours in it: whatever else is there stays, and so does what was added to our lines."""
    rows = text.splitlines()
    for pattern, wanted in ATTRIBUTES.items():
        at = next((index for index, row in enumerate(rows) if row.split()[:1] == [pattern]), None)
        if at is None:
            rows.append(" ".join((pattern, *wanted)))
        else:
            there = rows[at].split()[1:]
            rows[at] = " ".join((rows[at].rstrip(), *(each for each in wanted if each not in there)))
    return "".join(f"{row}\n" for row in rows)
