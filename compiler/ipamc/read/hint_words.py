"""Words of other tools, and their counterparts in ipamc: fields, values, verbs, options. Data only.

Commands are complete lines, with CLUSTER, NODE and POOL in place of names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Word(NamedTuple):
    """The text about a word, and commands that do the same in ipamc."""

    says: str
    run: tuple[str, ...]


_APPLY = Word(
    "ipamc writes files; a pipeline, GitOps or kubectl applies them",
    (
        "ipamc ci apply CLUSTER",
        "kustomize build clusters/CLUSTER/rendered | kubectl apply --server-side --field-manager=ipamc -f -",
    ),
)
_CHECK = Word("a compile checks everything, and --check writes nothing", ("ipamc compile --check",))
_COMPILE = Word("the lock and the manifests come from a compile", ("ipamc compile",))
_DELETE = Word(
    "nodes go when the inventory does not list them; a cluster goes with its folder",
    (
        "ipamc compile CLUSTER",
        "ipamc lock CLUSTER --leave NODE",
        "ipamc lock CLUSTER --release NODE",
        "ipamc runbook CLUSTER --change decommission",
    ),
)
_FORMAT = Word("inputs stay as they are written; what ipamc writes has one form", ("ipamc compile",))
_FREE = Word(
    "blocks of nodes that left can be freed before their day", ("ipamc lock CLUSTER --release NODE",)
)
_GIVE = Word(
    "a compile gives blocks to the nodes of the inventory; pools have fields to pin and reserve some",
    ("ipamc compile", "ipamc explain IPPool.spec.ipv4"),
)
_HISTORY = Word(
    "the history of a lock is that of git",
    ("ipamc report --write page.html", "ipamc show --at DATE", "git log -p clusters/CLUSTER/ipam.lock"),
)
_LIVE = Word("ipamc compares a dump of the cluster with git", ("ipamc audit CLUSTER dump.json",))
_NEW = Word(
    "it starts clusters; pools and nodes are written into their files",
    ("ipamc init CLUSTER", "ipamc import CLUSTER dump.json", "ipamc suggest pool CLUSTER"),
)
_PLAN = Word("a plan shows what changes", ("ipamc plan", "ipamc plan --base origin/main"))
_RENUMBER = Word(
    "that a node moves to other addresses is a consent, and has steps",
    ("ipamc lock CLUSTER --renumber NODE", "ipamc runbook CLUSTER --change renumber --node NODE"),
)
_SHOW = Word("pools, and with --show-blocks blocks, are shown", ("ipamc show", "ipamc show --show-blocks"))
_UNDO = Word(
    "the way back is a commit of git, and a compile",
    ("git revert COMMIT", "ipamc compile", "ipamc runbook CLUSTER --change restore-git"),
)
_WHICH = Word("that is asked of the locks", ("ipamc which ADDRESS", "ipamc which NODE"))

OTHER_CI = (
    "actions argo azure azure-devops bamboo bitbucket buildkite circleci concourse drone forgejo gitea "
    "jenkins prow teamcity tekton travis woodpecker zuul"
)
"""Names of CI systems for which no pipeline is written, between blanks."""

VERBS: Mapping[str, Word] = {
    **dict.fromkeys(("apply", "deploy", "sync", "push", "install"), _APPLY),
    **dict.fromkeys(("validate", "check", "lint", "verify", "vet"), _CHECK),
    **dict.fromkeys(("generate", "render", "build", "template", "make", "run"), _COMPILE),
    **dict.fromkeys(("delete", "rm", "remove", "destroy", "prune", "uninstall"), _DELETE),
    **dict.fromkeys(("allocate", "assign", "reserve", "pin"), _GIVE),
    **dict.fromkeys(("history", "log", "blame"), _HISTORY),
    **dict.fromkeys(("doctor", "drift"), _LIVE),
    **dict.fromkeys(("new", "create", "add", "start"), _NEW),
    **dict.fromkeys(("diff", "preview", "changes"), _PLAN),
    **dict.fromkeys(("renumber", "move", "migrate"), _RENUMBER),
    **dict.fromkeys(("get", "list", "ls", "status", "ipam", "pools", "nodes", "clusters", "stats"), _SHOW),
    **dict.fromkeys(("rollback", "undo", "revert", "restore"), _UNDO),
    **dict.fromkeys(("whois", "who", "ip", "find", "search", "lookup", "where"), _WHICH),
    "describe": Word("", ("ipamc show CLUSTER", "ipamc why NODE", "ipamc which NODE")),
    **dict.fromkeys(("fmt", "format"), _FORMAT),
    **dict.fromkeys(("free", "release"), _FREE),
    "rename": Word(
        "a node that replaces another one gets its blocks", ("ipamc lock CLUSTER --rename OLD=NEW",)
    ),
    "upgrade": Word("of Cilium, it has steps", ("ipamc runbook CLUSTER --change upgrade --to MINOR",)),
    **dict.fromkeys(
        ("update", "refresh"),
        Word("an inventory is updated from a dump", ("ipamc import CLUSTER --refresh dump.json",)),
    ),
    **dict.fromkeys(("docs", "man"), Word("", ("ipamc help", "ipamc explain WORD"))),
}


class Instead(NamedTuple):
    """The replacement of an option: the first of these that the verb has, else a text."""

    ours: tuple[str, ...] = ()
    says: str = ""


_CLUSTER = Instead(says="a cluster is an argument and no option: its name below clusters/, or its folder")
_FILE = Instead(says="inputs are all files of the cluster's folder; dumps are arguments and no options")
_LIVE_ONES = Instead(
    says="it reads files and no cluster; 'ipamc ci apply' and 'ipamc ci dump' use the context that is called "
    "as the cluster"
)
_JSON = Instead(("--output", "--format"), "it has one form")
_VERBOSE = Instead(says="findings are whole already; 'ipamc explain CODE' and 'ipamc why NODE' tell more")
_YES = Instead(says="nothing is asked; consent is given by options of 'ipamc lock'")

OPTIONS: Mapping[str, Instead] = {
    **dict.fromkeys(
        ("--dry-run", "-n", "--dryrun", "--diff", "--plan"),
        Instead(("--check",), "'ipamc plan' and 'ipamc compile --check' write nothing"),
    ),
    **dict.fromkeys(("--json", "--yaml", "-j"), _JSON),
    **dict.fromkeys(
        ("-o", "--output", "--out", "--output-file", "--outfile"), Instead(("--write", "--output"), "")
    ),
    **dict.fromkeys(
        ("--write", "--save"), Instead(("--write",), "what it prints can be sent to a file: > FILE")
    ),
    **dict.fromkeys(("-v", "--verbose", "--debug", "--trace"), _VERBOSE),
    **dict.fromkeys(
        ("-q", "--quiet", "--silent"), Instead(("--format",), "what is for people goes to stderr: 2> FILE")
    ),
    **dict.fromkeys(("-f", "--file", "--filename", "-k", "-i", "--input", "--values"), _FILE),
    **dict.fromkeys(
        ("-c", "--cluster", "--clusters", "--name", "--folder", "--dir", "-C", "--chdir"), _CLUSTER
    ),
    **dict.fromkeys(
        ("--all", "-a", "--recursive", "-R"), Instead(says="without a cluster's name, all of them are meant")
    ),
    **dict.fromkeys(("--namespace", "--context", "--kubeconfig", "-A", "--all-namespaces"), _LIVE_ONES),
    **dict.fromkeys(
        ("--ref", "--rev", "--revision", "--since", "--against", "--branch", "--from"),
        Instead(("--base", "--at"), ""),
    ),
    **{
        name: Instead(says=f"consent is given to ipamc lock: 'ipamc lock CLUSTER {name}'")
        for name in (
            *("--renumber", "--settle", "--release", "--leave", "--rename", "--reshard"),
            *("--no-pods", "--adopt-pods"),
        )
    },
    **dict.fromkeys(("--cancel", "--undo", "--abort"), Instead(("--release",), "")),
    **dict.fromkeys(
        ("--unlock", "--force-unlock", "--lock-timeout"),
        Instead(says="ipam.lock is a file of git, and locks nobody out"),
    ),
    **dict.fromkeys(("-y", "--yes", "--force", "--auto-approve"), _YES),
    **dict.fromkeys(
        ("--no-color", "--no-colour", "--color", "--colour"),
        Instead(says="NO_COLOR=1 and FORCE_COLOR=1 decide"),
    ),
    **dict.fromkeys(("--parallel", "--workers", "--threads"), Instead(("--jobs",), "")),
    **dict.fromkeys(("-V", "--version"), Instead(says="ipamc --version")),
}

_POOL = "ranges are in pools: in ippools.yaml write ipv4: {cidrs: [10.244.0.0/16], blockSize: 24}"
_CALICO = "remove it: it tells Calico how to route, and Cilium has its own settings for that"
_OF_HELM = "leave it in the values of Cilium: only what decides addresses stands here"
FIELDS = {
    "IPPool": {
        "maskSize": "write blockSize, which is rendered as Cilium's maskSize",
        "cidr": "write ipv4: {cidrs: [{value}], blockSize: 24}; "
        "or make it a pool of Calico: apiVersion: projectcalico.org/v3",
        "selector": "did you mean 'nodeSelector'?",
        "blocks": "ranges of pods are in ipv4 and ipv6: write ipv4: {cidrs: [10.244.0.0/16], blockSize: 24}",
        "weight": "write priority: {value}",
        "nodes": "write nodeSelector, or reserve blocks for single nodes by pins: "
        "ipamc explain IPPool.spec.pins",
        "allowedUses": "remove it: a pool here is for pods alone",
        "enabled": "write disabled: {opposite}",
        **dict.fromkeys(
            ("natOutgoing", "vxlanMode", "ipipMode", "disableBGPExport", "assignmentMode"), _CALICO
        ),
    },
    "Cluster": {
        **dict.fromkeys(("serviceCIDR", "serviceCidr", "serviceSubnet"), "write excludedCIDRs: [{value}]"),
        **dict.fromkeys(
            ("podCIDR", "podSubnet", "clusterCIDR", "cidrs", "pools", "cluster-pool-ipv4-cidr"), _POOL
        ),
        **dict.fromkeys(("clusterPoolIPv4PodCIDRList", "clusterPoolIPv4MaskSize"), _POOL),
        "tunnel": "write routingMode: tunnel",
        "tunnelProtocol": "write routingMode: tunnel",
        "ipv4NativeRoutingCIDR": "write nativeRoutingCIDR: {value}",
        **dict.fromkeys(("autoDirectNodeRoutes", "kubeProxyReplacement", "hubble", "bpf"), _OF_HELM),
    },
    "NodeInventory": {"role": "write it as a label: labels: {role: {value}}"},
}
"""By ipamc's kind and a foreign field: what to write instead. `{value}` is the field's value."""

VALUES = {
    "mode": {
        "host-scope": "kubernetes",
        "hostscope": "kubernetes",
        "cluster-scope": "cluster-pool",
        "clusterpool": "cluster-pool",
    },
    "managedBy": {
        "argocd": "helm or kustomize, whichever it renders",
        "argo": "helm or kustomize, whichever it renders",
        "flux": "helm or kustomize, whichever it applies",
    },
    "routingMode": {"vxlan": "tunnel", "geneve": "tunnel", "direct": "native"},
    "bgp": {"bird": "none", "calico": "none"},
}
"""By field: words of other tools, and the word of ipamc."""

HELM = frozenset(
    {"ipam", "operator", "hubble", "kubeProxyReplacement", "k8sServiceHost", "tunnelProtocol", "bpf", "cni"}
)
KUSTOMIZE = frozenset({"resources", "patches", "components", "namePrefix", "configMapGenerator", "bases"})
"""Top-level fields of the values of Cilium's chart, and of a kustomization."""
