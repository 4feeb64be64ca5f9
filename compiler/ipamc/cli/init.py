"""`ipamc init`: the first files of a cluster, and a repository that can merge locks."""

from __future__ import annotations

import re
from pathlib import PurePath

import click

from ipamc.cli.command import DONE, Verb
from ipamc.cli.terminal import say
from ipamc.model.diagnostics import Refused
from ipamc.workspace import disk, git
from ipamc.workspace.clusters import folder_of, name_of
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.inputs import read_sources
from ipamc.workspace.safe_read import refuse_links
from ipamc.workspace.spaces import not_space, of_space

SCHEMAS = ".schemas"  # beside the clusters: a folder whose name starts with a dot is not a cluster

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
    mode: {mode:<19} # kubernetes | cluster-pool | multi-pool | crd
  ipFamilies: [{families}]
  excludedCIDRs: []           # service range, node networks, other clusters
"""

POOLS = """\
# yaml-language-server: $schema=../{schemas}/ippool.schema.json
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {{name: default}}
spec:
  ipv4: {{cidrs: [10.244.0.0/16], blockSize: 24}}     # 256 blocks of 254 addresses for pods, one per node
  # nodeSelector: topology.kubernetes.io/zone == "a"    # by default, every node
"""

NODES = """\
# yaml-language-server: $schema=../{schemas}/nodeinventory.schema.json
# A running cluster has blocks already: delete this folder, and run 'ipamc import {name} DUMP', which writes \
all files. See 'ipamc import --help'.
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: []
# - {{name: worker-1, labels: {{topology.kubernetes.io/zone: a}}}}
"""

SPACE = """\
# yaml-language-server: $schema=../{schemas}/addressspace.schema.json
# Clusters with addressSpace: {name} may not overlap. 'ipamc compile' keeps their addresses in rendered/.
apiVersion: ipamc/v1alpha1
kind: AddressSpace
metadata: {{name: {name}}}
spec: {{}}
# Ranges for pools with from: {name}; they replace the line above:
# spec:
#   ipv4: {{cidrs: [10.64.0.0/10], prefixLength: 19}}
"""

FILES = {"cluster.yaml": CLUSTER, "ippools.yaml": POOLS, "nodes.yaml": NODES}


def _kinds(words: bytes) -> re.Pattern[bytes]:
    return re.compile(
        rb"""(?m)(?:^[ \t-]*|[{,]\s*)["']?kind["']?\s*:\s*["']?(?:""" + words + rb""")(?:List)?\b"""
    )


_KINDS = {
    "cluster.yaml": _kinds(b"Cluster"),
    "ippools.yaml": _kinds(b"IPPool|ClusterCIDR"),
    "nodes.yaml": _kinds(b"NodeInventory|Node|CiliumNode"),
}
"""The kinds of each first file, which any file may have; one that cannot be read counts, too."""
_NOUNS = {"cluster.yaml": "a Cluster", "ippools.yaml": "pools", "nodes.yaml": "nodes"}
_FAMILIES = {
    "IPv4": re.compile(rb"""\bipv4\b["']?\s*:|\bcidr["']?\s*:\s*["']?\d+\."""),
    "IPv6": re.compile(rb"""\bipv6\b["']?\s*:|\bcidr["']?\s*:\s*["']?[0-9a-fA-F]*:"""),
}
_LOCKED = re.compile(rb'\{"lock":[^\n]*"mode":"(kubernetes|cluster-pool|multi-pool|crd)"')

# A lock is merged by rule; rendered files take one side and are compiled again. Both have LF line ends on
# every system: same input, same bytes.
ATTRIBUTES = {
    "ipam.lock": ("text", "eol=lf", "merge=ipamc"),
    "**/rendered/**": ("text", "eol=lf", "linguist-generated", "merge=ipamc-rendered"),
}

# A driver that fails leaves our side in the file, without a mark, and `git add` would lose the blocks of the
# other side. ipamc marks the file before it does anything else. Where no mark is there, it did not run
# (no ipamc, no interpreter, killed), and git merges the lock as text.
DRIVERS = {
    "merge.ipamc.name": "locks of ipamc",
    "merge.ipamc.driver": (
        "ipamc merge-driver %O %A %B %P && exit 0; grep -q '^<<<<<<< ours' %A || { "
        "git merge-file -L ours -L base -L theirs %A %O %B; "
        "echo ipamc did not run, so this was merged as text: %P >&2; }; exit 1"
    ),
    "merge.ipamc-rendered.name": "either side: ipamc compile renders it again",
    "merge.ipamc-rendered.driver": "true",
}


@click.command(cls=Verb)
@click.argument("cluster", required=False)
@click.option("--space", metavar="NAME")
def command(*, cluster: str | None, space: str | None) -> int:
    """Start a new cluster or address space, and prepare the repository.

    Writes cluster.yaml, ippools.yaml and nodes.yaml if they do not exist, the schemas for editors,
    .gitattributes, and git's merge drivers. For a running cluster, use `ipamc import`, which writes its files
    from a dump. CLUSTER is a name below clusters/ or a folder.

    Options:
        --space: Write the folder and the index of this address space. Each compile of a member checks the
            index.
    Examples:
        ipamc init lab  # start clusters/lab/ and prepare the repository
        ipamc init --space mesh  # start clusters/mesh/ from the clusters with addressSpace: mesh
        ipamc init
            # prepare only the repository; run it once in each clone, because git does not share its
            configuration
    """
    if cluster is not None and space is not None:
        raise click.UsageError("--space NAME names the folder of the address space: omit CLUSTER")
    code = DONE if space is None else _start_space(space)
    if cluster is not None:
        _start(cluster)
    if code == DONE:
        _prepare_repository()
    return code


def first_files(name: str, families: str, mode: str = "") -> dict[str, str]:
    """Return the texts of a new cluster, by name of the file."""
    words = {"name": name, "schemas": SCHEMAS, "families": families, "mode": mode or "cluster-pool"}
    return {file: content.format(**words) for file, content in FILES.items()}


def prepare(folder: str) -> None:
    """Do everything of `ipamc init` except the cluster's first files; print the result."""
    _write_schemas(folder)
    _prepare_repository()


def _prepare_repository() -> None:
    top = git.root(".")
    attributes = f"{top or '.'}/.gitattributes"
    changed = disk.replace(attributes, with_attributes(disk.read_text(attributes)))
    say(f".gitattributes: {'written' if changed else 'unchanged'}")
    if top is None:
        again = "to set the merge drivers, run 'ipamc init' in one"
        say(f"git config: not in a git repository: {again}")
        return
    trunk = git.likely_trunk(".")
    configured = git.configure(".", {**DRIVERS, **({"ipamc.trunk": trunk} if trunk else {})})
    done = f"merge drivers set{f', and ipamc.trunk: {trunk}' if trunk else ''}"
    say(f"git config: {done if configured else 'unchanged'}")


def new_folder(cluster: str, run: str) -> tuple[str, str]:
    """Return the folder of a cluster that may be new, and its name. `run` begins the command to suggest."""
    folder, name = _named(cluster, run)
    return not_space(folder), name


def _named(cluster: str, run: str) -> tuple[str, str]:
    from ipamc.model.selector.label_syntax import as_subdomain, subdomain_problem

    typed = PurePath(cluster)
    folder = typed.as_posix() if typed.name != cluster or cluster == ".." else folder_of(cluster)
    name = name_of(folder)
    if problem := subdomain_problem(name):
        better = as_subdomain(name)
        instead = f"; {run} {typed.with_name(better).as_posix()}" if better else ""
        raise click.UsageError(f"{name!r} cannot name a cluster: it {problem}{instead}")
    return folder, name


def _start_space(space: str) -> int:
    from ipamc.cli.runner import ClusterRun, compile_all, conclude, refused
    from ipamc.pipeline import Inputs, compile_cluster
    from ipamc.workspace.environment import today
    from ipamc.workspace.survey import survey_members

    folder, name = _named(space, "run: ipamc init --space")
    refuse_links(folder)
    there = read_sources(folder)[0] if disk.is_folder(folder) else {}
    lock = disk.read_lock(folder) if there else None
    if there and not of_space(lock, there):
        raise EnvironmentFailure(f"{folder} is a cluster: set another addressSpace in the clusters")
    members = survey_members(folder, lock)
    if not any(found.space in {"", name} for found in members):
        add = f"set addressSpace: {name} in its Clusters"
        raise EnvironmentFailure(f"no cluster beside {folder} belongs to address space {name}: {add}")
    path = f"{folder}/space.yaml"
    if not there:
        text = SPACE.format(name=name, schemas=SCHEMAS)
        draft = Inputs(
            name=name,
            folder=folder,
            sources={path: text.encode()},
            lock_path=disk.lock_path(folder),
            lock=None,
            surveyed=members,
            schemas=disk.assets("schemas"),
            today=today(),
        )
        try:
            compile_cluster(draft)
        except Refused as problem:
            return conclude([refused(folder, problem.diagnostics)], "full")
        disk.create(path, text)
        say(f"{path}: written")
    _write_schemas(folder)
    return conclude(compile_all([ClusterRun(folder=folder, today=today())], 1), "full")


def _start(cluster: str) -> None:
    folder, name = new_folder(cluster, "run: ipamc init")
    refuse_links(folder)
    there = read_sources(folder)[0] if disk.is_folder(folder) else {}
    texts = b"\n".join(there.values())
    has = {
        file: bool(kinds.search(texts)) or (file != "cluster.yaml" and f"{folder}/{file}" in there)
        for file, kinds in _KINDS.items()
    }
    if there and all(has.values()):
        say(f"{folder}: unchanged, it has a Cluster, pools and nodes already")
        _write_schemas(folder)  # a run that was stopped may have left some out
        return
    families = [family for family, words in _FAMILIES.items() if words.search(texts)]
    # The lock of another mode would be refused.
    locked = _LOCKED.match(disk.read_lock(folder) or b"") if there else None
    files = first_files(name, ", ".join(families) or "IPv4", locked[1].decode() if locked else "")
    for path, content in ((f"{folder}/{file}", files[file]) for file in FILES if not has[file]):
        if not disk.create(path, content):
            then = f"rename it, then run ipamc init {cluster} again"
            raise EnvironmentFailure(f"{path} exists without a Cluster: {then}")
        say(f"{path}: written")
    for file in FILES:
        if has[file]:
            say(f"{folder}: has {_NOUNS[file]} already, and keeps them")
    _write_schemas(folder)
    if not has["nodes.yaml"]:
        first = f"list your nodes in {folder}/nodes.yaml"
    elif not has["cluster.yaml"]:
        fields = "version, managedBy, mode, ipFamilies and excludedCIDRs"
        first = f"check {fields} in {folder}/cluster.yaml"
    else:
        first = f"check the range in {folder}/ippools.yaml"
    say(f"next: {first}, then run: ipamc compile {cluster}")


def _write_schemas(folder: str) -> None:
    schemas = (PurePath(folder).parent / SCHEMAS).as_posix()
    for kind, text in disk.schemas().items():
        disk.replace(f"{schemas}/{kind}{disk.SCHEMA}", text)
    say(f"{schemas}/: schemas for editors")


def with_attributes(text: str) -> str:
    """Return the text of .gitattributes with our lines. Other lines and added attributes stay."""
    rows = text.splitlines()
    for pattern, wanted in ATTRIBUTES.items():
        at = next((index for index, row in enumerate(rows) if row.split()[:1] == [pattern]), None)
        if at is None:
            rows.append(" ".join((pattern, *wanted)))
        else:
            there = rows[at].split()[1:]
            rows[at] = " ".join((rows[at].rstrip(), *(each for each in wanted if each not in there)))
    return "".join(f"{row}\n" for row in rows)
