"""Which edits a pull request has. Honest ones change an inventory or a setting and compile; the others touch any file.

They do so before a compile, too: then what is rendered follows from a lock that somebody wrote.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable

from tests.fuzz.requests.edits import COMPILE, Edit
from tests.fuzz.requests.repositories import Layout, inventory

ATTRIBUTES = (
    "* text eol=crlf",
    "*.lock text eol=crlf",
    "*.yaml working-tree-encoding=UTF-16LE",
    "ipam.lock working-tree-encoding=UTF-16",
    "*.yaml ident",
    "* filter=lfs diff=lfs merge=lfs -text",
    "*.lock merge=union",
    "clusters/** -diff -merge",
    "*.yaml export-ignore",
    "nodes.yaml text eol=crlf",
    "*.yaml text eol=crlf",
    "ippools.yaml working-tree-encoding=UTF-16LE-BOM",
    "[attr]ours text eol=crlf",
    "* ours",
    "*.yaml !text !eol",
)
KUSTOMIZATION = (
    "resources:\n- https://example.org/evil\n",
    "resources:\n- ../../red/rendered\n",
    "images: []\n",
    "namePrefix: x-\n",
)
EXTRA = "apiVersion: v1\nkind: Secret\nmetadata: {name: extra}\n"
OTHER_NODE = """\
apiVersion: cilium.io/v2
kind: CiliumNode
metadata: {name: n9}
spec: {ipam: {podCIDRs: [10.1.3.0/27]}}
"""


def chosen(chance: random.Random, plan: Layout) -> list[Edit]:
    """Return one to five edits, and mostly a compile after them."""
    kinds = HONEST if chance.random() < 0.3 else KINDS
    found: list[Edit] = []
    for _ in range(chance.choice((1, 1, 2, 2, 3, 4, 5))):
        cluster = chance.choice(list(plan.modes))
        found += chance.choice(kinds)(chance, plan, cluster)
        if chance.random() < 0.2:
            found.append(COMPILE)
    if kinds is HONEST or chance.random() < 0.5:
        found.append(COMPILE)
        if kinds is KINDS and chance.random() < 0.25:
            cluster = chance.choice(list(plan.modes))
            found += chance.choice(KINDS)(chance, plan, cluster)
    return found


CONTENTS = ("cluster.yaml", "ippools.yaml", "nodes.yaml", "tests.yaml", "ipam.lock", "ipam.lock")
RENDERED = (
    "kustomization.yaml",
    "cilium/configmap.yaml",
    "cilium/kustomization.yaml",
    "cilium/helm-values.yaml",
)
OBJECTS = {
    "cluster-pool": ("ciliumnodes/000/ciliumnodes.yaml", "ciliumnodes/000/kustomization.yaml"),
    "crd": ("ciliumnodes/000/ciliumnodes.yaml", "ciliumnodes/000/kustomization.yaml"),
    "kubernetes": ("nodes/000/nodes.yaml", "nodes/000/kustomization.yaml"),
    "multi-pool": ("seeds/000.yaml", "pools/000/ippools.yaml", "pools/000/nodeconfigs.yaml"),
}


def _a_file(chance: random.Random, plan: Layout, cluster: str) -> str:
    names = (*CONTENTS, *(f"rendered/{name}" for name in (*RENDERED, *OBJECTS[plan.modes[cluster]] * 3)))
    return f"clusters/{cluster}/{chance.choice(names)}"


def _objects(chance: random.Random, plan: Layout, cluster: str) -> str:
    return f"clusters/{cluster}/rendered/{chance.choice(OBJECTS[plan.modes[cluster]])}"


def _lock(cluster: str) -> str:
    return f"clusters/{cluster}/ipam.lock"


def _node(chance: random.Random, plan: Layout, cluster: str) -> str:
    return chance.choice((*plan.nodes[cluster], *plan.nodes[cluster], "n9"))


def _node_joins(chance: random.Random, _: Layout, cluster: str) -> list[Edit]:
    node = chance.choice(("n0", "n7", "n8", "n9", "trunk-1", "a.b", "n-10"))
    path = f"clusters/{cluster}/nodes.yaml"
    return [{"do": "append", "path": path, "text": f"- {{name: {node}, uid: {cluster}-{node}}}\n"}]


def _node_leaves(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    row = f"- {{name: {_node(chance, plan, cluster)}, uid: "
    path = f"clusters/{cluster}/nodes.yaml"
    return [{"do": "replace", "path": path, "old": row, "new": "# " + row}]


def _inventory(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    nodes = [node for node in (*plan.nodes[cluster], "n8", "n9") if chance.random() < 0.7]
    name = chance.choice(("nodes.yaml", "nodes.yaml", "more.yaml", "deep/more.yml"))
    return [{"do": "write", "path": f"clusters/{cluster}/{name}", "text": inventory(cluster, nodes)}]


def _consent(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    node = _node(chance, plan, cluster)
    what = chance.choice(
        (("--renumber", node), ("--settle", node), ("--release", node), ("--release", "10.0.0.0/8"))
    )
    other = chance.choice((("--rename", f"{node}=n9"), ("--leave", "all"), ("--reshard",)))
    return [{"do": "ipamc", "arguments": ["lock", cluster, *(what if chance.random() < 0.7 else other)]}]


def _new_cluster(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    to = f"clusters/{chance.choice(('new', 'a.b', cluster.upper(), f'{cluster}/in', 'x y', '-x', 'é'))}"
    octet = plan.number(cluster)
    edits: list[Edit] = [{"do": "copy", "path": f"clusters/{cluster}", "to": to}]
    if chance.random() < 0.7:
        edits += [
            {
                "do": "replace",
                "path": f"{to}/cluster.yaml",
                "old": f"name: {cluster}",
                "new": f"name: {to[9:]}",
            },
            {"do": "remove", "path": f"{to}/rendered"},
            {"do": "remove", "path": f"{to}/ipam.lock"},
        ]
    if chance.random() < 0.5:
        edits.append(
            {
                "do": "replace",
                "path": f"{to}/ippools.yaml",
                "old": f"10.{octet}.0.0",
                "new": chance.choice(("10.7.0.0", "10.1.0.0")),
            }
        )
    return edits


def _cluster_goes(chance: random.Random, _: Layout, cluster: str) -> list[Edit]:
    return [
        chance.choice(
            (
                {"do": "remove", "path": f"clusters/{cluster}"},
                {"do": "remove", "path": f"clusters/{cluster}/ipam.lock"},
                {"do": "remove", "path": f"clusters/{cluster}/rendered"},
                {"do": "remove", "path": f"clusters/{cluster}/cluster.yaml"},
                {"do": "remove", "path": f"clusters/{cluster}/tests.yaml"},
                {"do": "move", "path": f"clusters/{cluster}", "to": "clusters/moved"},
                {"do": "move", "path": f"clusters/{cluster}", "to": f"clusters/{cluster.upper()}"},
                {"do": "move", "path": f"clusters/{cluster}", "to": f"old/{cluster}"},
                {"do": "move", "path": "clusters", "to": "Clusters"},
            )
        )
    ]


def _line_of_the_lock(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    path, at, to = _lock(cluster), chance.randrange(6), chance.randrange(6)
    day = chance.choice(("2026-11-18", "2026-11-16", "2026-10-01", "2026-12-24", "2020-01-01", "2026-11-07"))
    other = chance.choice(list(plan.modes))
    fields: Edit = chance.choice(
        (
            {"node": _node(chance, plan, cluster)},
            {"node": _node(chance, plan, cluster), "quarantined": None, "moved": None},
            {"block": plan.block(chance.choice((cluster, cluster, other)), chance.randrange(8))},
            {"block": plan.block(cluster, chance.randrange(4)).replace("/27", "/26")},
            {"quarantined": day},
            {"quarantined": day, "moved": True},
            {"quarantined": None, "moved": None, "pending": None, "released": None},
            {"pending": True},
            {"released": True, "quarantined": None, "moved": None, "pending": None},
            {"pool": "other"},
        )
    )
    if chance.random() < 0.4:
        return [{"do": "line", "path": path, "at": at, "to": to, "fields": ["node"]}]
    return [{"do": "line", "path": path, "at": at, "fields": fields}]


def _rows_of_a_file(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    path = chance.choice((_lock(cluster), _a_file(chance, plan, cluster)))
    how = chance.choice(("delete", "delete", "double", "swap", "reverse", "cut"))
    return [{"do": "rows", "path": path, "how": how, "at": chance.randrange(12), "to": chance.randrange(12)}]


def _header(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    old, new = chance.choice(
        (
            ('"shards":1', '"shards":2'),
            ('"lock":1', '"lock":2'),
            (f'"mode":"{plan.modes[cluster]}"', f'"mode":"{chance.choice(list(OBJECTS))}"'),
            (f'"cluster":"{cluster}"', '"cluster":"other"'),
            ('"node":"n1"', '"node":"n9","node":"n1"'),
            ('"node":"n1"', '"node":"n1","node":"n9"'),
            ('"node":"n1"', '"Node":"n2","node":"n1"'),
            ('"pool":"default"', '"pool":"default "'),
            ('"block":"10.', '"block":"010.'),
        )
    )
    return [{"do": "replace", "path": _lock(cluster), "old": old, "new": new}]


def _address(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    old, new = plan.block(cluster, chance.randrange(4)), plan.block(cluster, chance.randrange(8))
    path = chance.choice((_objects, _a_file))(chance, plan, cluster)
    edits: list[Edit] = [{"do": "replace", "path": path, "old": old, "new": new}]
    if chance.random() < 0.4:
        edits.append({"do": "replace", "path": _lock(cluster), "old": old, "new": new})
    return edits


def _setting(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    octet, size = plan.number(cluster), plan.block(cluster, 0).partition("/")[2]
    path, old, new = chance.choice(
        (
            ("ippools.yaml", f"10.{octet}.0.0/22", f"10.{octet}.0.0/21"),
            ("ippools.yaml", f"10.{octet}.0.0/22", f"10.{octet}.0.0/25"),
            ("ippools.yaml", f"10.{octet}.0.0/22", f"10.{octet % 3 + 1}.0.0/22"),
            ("ippools.yaml", f"10.{octet}.0.0/22", f"10.{octet}.0.0/23, 10.{octet}.2.0/23"),
            ("ippools.yaml", f"blockSize: {size}", "blockSize: 26"),
            ("ippools.yaml", "name: default", "name: other"),
            ("ippools.yaml", "blockSize:", f"pins: {{n1: [{plan.block(cluster, 3)}]}}, blockSize:"),
            ("ippools.yaml", "spec:\n", f"spec:\n  reserved: [{plan.block(cluster, 0)}]\n"),
            ("ippools.yaml", "spec:\n", "spec:\n  disabled: true\n"),
            ("cluster.yaml", "leave: 100", "leave: 0"),
            ("cluster.yaml", "spec:\n", "spec:\n  quarantineDays: 0\n"),
            ("cluster.yaml", "spec:\n", "spec:\n  quarantineDays: 1\n"),
            ("cluster.yaml", "spec:\n", "spec:\n  unmatchedNodes: skip\n"),
            ("cluster.yaml", "spec:\n", "spec:\n  unpooled: hold\n"),
            ("cluster.yaml", "spec:\n", f"spec:\n  excludedCIDRs: [{plan.block(cluster, 1)}]\n"),
            ("cluster.yaml", "addressSpace: site", "addressSpace: other"),
            ("cluster.yaml", "budget: {leave: 100}", "output: {shardSize: 1}"),
            ("cluster.yaml", "operator: bystander", "operator: adopt"),
            ("cluster.yaml", "managedBy: none", "managedBy: helm"),
            ("cluster.yaml", f"mode: {plan.modes[cluster]}", "mode: kubernetes"),
            ("cluster.yaml", f"name: {cluster}", "name: other"),
            ("nodes.yaml", "name: n1", "name: N1"),
            ("nodes.yaml", "uid: ", "planned: true, uid: "),
            ("nodes.yaml", "name: n1", "labels: {a: b}, name: n1"),
            ("tests.yaml", "10.200.0.0/16", "10.0.0.0/8"),
        )
    )
    return [{"do": "replace", "path": f"clusters/{cluster}/{path}", "old": old, "new": new}]


def _encoding(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    path = chance.choice((_lock(cluster), _a_file(chance, plan, cluster), ".gitattributes"))
    names = ("crlf", "cr", "no end", "nul", "escaped", "utf-8-sig", "utf-16", "utf-16-le", "utf-32")
    return [{"do": "encode", "path": path, "as": chance.choice(names)}]


def _mode(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    return [{"do": "mode", "path": _a_file(chance, plan, cluster)}]


def _link(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    path, other = _a_file(chance, plan, cluster), chance.choice(list(plan.modes))
    path = chance.choice(
        (
            path,
            path,
            f"clusters/{cluster}",
            f"clusters/{cluster}/rendered",
            "clusters/new",
            "clusters/tests.yaml",
        )
    )
    aside = f"aside/{path.rpartition('/')[2]}"
    to = chance.choice(
        ("../../" + aside, f"../{other}/{path.rpartition('/')[2]}", "/etc/hostname", "nowhere", ".")
    )
    edits: list[Edit] = [{"do": "copy", "path": path, "to": aside}] if "aside" in to else []
    return [*edits, {"do": "link", "path": path, "to": to}]


def _submodule(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    folders = (
        f"clusters/{cluster}",
        f"clusters/{cluster}/rendered",
        f"clusters/{cluster}/more",
        "clusters/new",
        "clusters",
        "elsewhere",
    )
    path = chance.choice((*folders, _objects(chance, plan, cluster).rpartition("/")[0]))
    said = f'[submodule "x"]\n\tpath = {path}\n\turl = ../other.git\n'
    edits: list[Edit] = [
        {"do": "write", "path": ".gitmodules", "text": said},
        {"do": "submodule", "path": path},
    ]
    return edits[chance.randrange(2) :]


def _attributes(chance: random.Random, _: Layout, cluster: str) -> list[Edit]:
    folder = chance.choice(("", "", f"clusters/{cluster}/", f"clusters/{cluster}/rendered/", "clusters/"))
    rows = "".join(f"{row}\n" for row in chance.sample(ATTRIBUTES, chance.choice((1, 1, 2))))
    return [
        {"do": chance.choice(("append", "append", "write")), "path": f"{folder}.gitattributes", "text": rows}
    ]


def _names(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    """Give a file a name that differs little, beside it or in its place."""
    path = _a_file(chance, plan, cluster)
    folder, _, name = path.rpartition("/")
    others = (
        name.upper(),
        name.capitalize(),
        f".{name}",
        f"{name}~",
        f"{name}.orig",
        f" {name}",
        f"{name} ",
        unicodedata.normalize("NFD", f"é{name}"),
        f"\u200b{name}",
        name.replace(".yaml", ".yml"),
        name.replace(".yaml", ".json"),
        name.replace("ipam", "\u0131pam"),
        f"in/{name}",
        f"\udcff{name}",
        f'"{name}"',
        f"a\n{name}",
    )
    edits: list[Edit] = [
        {
            "do": chance.choice(("move", "copy", "copy")),
            "path": path,
            "to": f"{folder}/{chance.choice(others)}",
        }
    ]
    if chance.random() < 0.2:
        both = [unicodedata.normalize(form, f"{folder}/é.yaml") for form in ("NFC", "NFD")]
        edits = [{"do": "copy", "path": path, "to": each} for each in both]
    return edits


def _foreign(chance: random.Random, plan: Layout, cluster: str) -> list[Edit]:
    """Add what ipamc did not render, or change what it did."""
    rendered = f"clusters/{cluster}/rendered"
    path = _objects(chance, plan, cluster)
    return [
        chance.choice(
            (
                {"do": "write", "path": f"{rendered}/extra.yaml", "text": EXTRA},
                {"do": "write", "path": f"{rendered}/cilium/.extra.yaml", "text": EXTRA},
                {"do": "write", "path": f"{rendered}/nodes/fff/nodes.yaml", "text": OTHER_NODE},
                {"do": "write", "path": f"{rendered}/.gitignore", "text": "*\n"},
                {
                    "do": "write",
                    "path": f"{rendered}/ciliumnodes/000/Kustomization",
                    "text": "resources: []\n",
                },
                {"do": "append", "path": path, "text": f"---\n{OTHER_NODE}"},
                {"do": "append", "path": path, "text": "# a comment\n"},
                {"do": "append", "path": f"clusters/{cluster}/nodes.yaml", "text": "# $Id$ $Format:%H$\n"},
                {
                    "do": "append",
                    "path": f"{rendered}/kustomization.yaml",
                    "text": chance.choice(KUSTOMIZATION),
                },
                {"do": "replace", "path": path, "old": "name: n1", "new": "name: n2"},
                {"do": "replace", "path": path, "old": "---\n", "new": "---\n---\n"},
                {"do": "remove", "path": path},
                {"do": "write", "path": ".gitignore", "text": "clusters/*/rendered/\n"},
                {"do": "write", "path": f"clusters/{cluster}/.gitignore", "text": "*\n"},
                {"do": "write", "path": f"clusters/{cluster}/cn.yaml", "text": OTHER_NODE},
                {"do": "write", "path": "clusters/tests.yaml", "text": "- not: tests\n"},
                {"do": "write", "path": ".gitmodules", "text": "[core]\n"},
                {"do": "write", "path": f"clusters/{cluster}/.ipamcignore", "text": "*\n"},
                {"do": "write", "path": ".mailmap", "text": "x\n"},
                {"do": "write", "path": "README.md", "text": "nothing\n"},
            )
        )
    ]


Maker = Callable[[random.Random, Layout, str], list[Edit]]
HONEST: tuple[Maker, ...] = (_node_joins, _node_joins, _node_leaves, _inventory, _consent, _setting)
KINDS: tuple[Maker, ...] = (
    *HONEST,
    _new_cluster,
    _cluster_goes,
    _line_of_the_lock,
    _line_of_the_lock,
    _line_of_the_lock,
    _rows_of_a_file,
    _header,
    _address,
    _address,
    _setting,
    _encoding,
    _mode,
    _link,
    _submodule,
    _attributes,
    _attributes,
    _names,
    _foreign,
    _foreign,
)
