"""What ipamc prints for programs, the files that it writes, its exit codes and the variables that it reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from ipamc.workspace.disk import assets
from website.reference.markdown import code, page, prose, table
from website.reference.schema import Schema, fields, type_of

FOLDER = "outputs/"

PRINTED = {
    "plan": "ipamc plan --output json",
    "show": "ipamc show --output json",
    "aggregates": "ipamc show --aggregates --output json",
    "what_if": "ipamc show --what-if CHANGE --output json",
    "runway": "ipamc show --runway --output json",
    "suggest_pool": "ipamc suggest pool --output json",
    "runbook": "ipamc runbook CLUSTER --output json",
    "test": "ipamc test --output json",
}
"""The command of each schema of an output."""

FILES = (
    (
        "clusters/NAME/ipam.lock",
        "compile, lock, resize, import",
        "which node has which block: a line a block, in order of address. Only ipamc writes it",
    ),
    (
        "clusters/NAME/rendered/kustomization.yaml",
        "compile, resize, import",
        "everything, in the order in which it must be applied",
    ),
    (
        "clusters/NAME/rendered/cilium/",
        "compile, resize, import",
        "flags (as Helm values, as a kustomize Component, as a ConfigMap), CiliumPodIPPools, CiliumNodeConfigs",
    ),
    ("clusters/NAME/rendered/nodes/SHARD/", "compile, resize, import", "partial Nodes"),
    ("clusters/NAME/rendered/ciliumnodes/SHARD/", "compile, resize, import", "CiliumNodes"),
    (
        "clusters/NAME/rendered/pools/SHARD/",
        "compile, resize, import",
        "multi-pool mode with `pinning: node`: a CiliumPodIPPool for each node",
    ),
    (
        "clusters/NAME/rendered/seeds/SHARD.yaml",
        "compile, resize, import",
        "multi-pool mode: what a node starts with. Apply it before the node joins, never again",
    ),
    (
        "clusters/NAME/cluster.yaml, ippools.yaml",
        "init, import",
        "the inputs of a new cluster, which people edit from then on",
    ),
    (
        "clusters/NAME/nodes.yaml, ciliumnodes.yaml",
        "init, import",
        "the inventory; `import --refresh` and `ci refresh` write it again",
    ),
    ("clusters/.schemas/", "init", "JSON Schemas, for editors"),
    (
        ".gitattributes",
        "init, import",
        "locks are merged by the merge driver of ipamc, and rendered files are generated",
    ),
    (".gitlab-ci.yml, .github/workflows/ipamc.yml", "ci gitlab, ci github", "the pipeline of a forge"),
)
"""The files that verbs write by themselves: path, verbs, what is in it."""

VARIABLES = (
    (
        "SOURCE_DATE_EPOCH",
        "the second since 1970 that counts as now: days of quarantine, dates of pages. Without it the clock",
    ),
    ("NO_COLOR, FORCE_COLOR", "forbid and demand colours"),
    ("TERM, COLUMNS", "whether the terminal can show more than text, and its width"),
    ("CI", "where it is set, no line of progress is drawn"),
    ("KUBECTL, KUSTOMIZE", "the command lines of these programs, in place of those on the PATH"),
    ("IPAMC_WAIT", "the default of `ipamc ci apply --wait`"),
    (
        "IPAMC_TOKEN",
        "the token with which `ipamc ci comment`, `ci applied` and `ci refresh` talk to the forge",
    ),
    ("GITHUB_TOKEN", "in its place, in GitHub Actions"),
    (
        "GITHUB_ACTIONS, GITLAB_CI",
        "which forge runs the job; then the variables that it documents tell the repository, the branch and the request",
    ),
    ("GIT_CONFIG_COUNT", "is passed on to git, and extended"),
)
"""Environment variables that ipamc reads, and what they do."""


def pages() -> dict[str, str]:
    """Return the pages by path."""
    schemas: dict[str, Schema] = {
        name.removesuffix(".output.json"): json.loads(text)
        for name, text in assets("schemas").items()
        if name.endswith(".output.json")
    }
    made = {
        f"{FOLDER}{name.replace('_', '-')}.md": page(*_output(name, each)) for name, each in schemas.items()
    }
    index = page(
        "# Outputs",
        "What ipamc prints for programs, the files that it writes, its exit codes, and the environment variables that it reads.",
        "## JSON outputs",
        table(
            ["command", "what it tells", "schema"],
            [
                [
                    f"[{code(PRINTED[name])}]({name.replace('_', '-')}.md)",
                    prose(each["description"]),
                    code(f"schemas/{name}.output.json"),
                ]
                for name, each in schemas.items()
            ],
        ),
        "Other verbs that have `--output json` have no schema yet.",
        "## Exit codes",
        "[Each verb](../verbs/README.md#exit-codes) has the same: 0 done, 1 refused or an error of the environment, 2 only where an option asks for it, "
        "64 usage, 70 a bug in ipamc, 130 interrupted, and 128 and its number for another signal.",
        "## Files that are written",
        table(
            ["file", "by", "what is in it"],
            [[", ".join(map(code, path.split(", "))), by, what] for path, by, what in FILES],
        ),
        "Other files are written only where an option names them: `--write`, `--report`, `--receipt`.",
        "## Environment variables",
        table(
            ["variable", "what it does"],
            [[", ".join(map(code, names.split(", "))), what] for names, what in VARIABLES],
        ),
    )
    return {**made, f"{FOLDER}README.md": index}


def _output(name: str, schema: Schema) -> Iterator[str]:
    defs: Schema = schema.get("$defs", {})
    yield f"# {PRINTED[name]}"
    yield prose(schema["description"])
    yield (
        f"The JSON Schema is `schemas/{name}.output.json` in the repository and in the package. A field that is marked *maybe* may be absent. "
        "A type that is a link is a section below."
    )
    yield _fields({**schema, "$defs": defs})
    for part, each in defs.items():
        yield f"## {part}"
        yield prose(each.get("description", ""))
        yield _fields({**each, "$defs": defs}) if each.get("properties") else f"Type: {type_of(each)}"


def _fields(schema: Schema) -> str:
    defs = schema["$defs"]
    rows = [
        [
            code(each.path),
            _linked(type_of(each.schema), defs),
            ("" if each.required else "*maybe* ") + prose(each.description),
        ]
        for each in fields(schema, frozenset(defs), named=True)
    ]
    return table(["field", "type", "meaning"], rows)


def _linked(said: str, defs: Schema) -> str:
    """Return a type with links to the sections of what it names."""
    return re.sub(r"[\w]+", lambda word: f"[{word[0]}](#{word[0]})" if word[0] in defs else word[0], said)
