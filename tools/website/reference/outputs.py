"""What ipamc prints for programs, the files that it writes, its exit codes and the variables that it reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from ipamc.model.limits import FINDINGS_SHOWN
from ipamc.workspace.disk import assets
from tools.website.reference.markdown import code, fence, page, prose, table
from tools.website.reference.schema import Schema, fields, type_of

FOLDER = "outputs/"

PRINTED = {
    "plan": "ipamc plan --output json",
    "show": "ipamc show --output json",
    "aggregates": "ipamc aggregates --output json",
    "what_if": "ipamc forecast --what-if CHANGE --output json",
    "runway": "ipamc forecast --output json",
    "suggest_pool": "ipamc suggest pool --output json",
    "runbook": "ipamc runbook CLUSTER --output json",
    "test": "ipamc test --output json",
}
"""The command of each schema of an output."""

FINDINGS = {
    "full": f"people: the place, the line, the way out. The first {FINDINGS_SHOWN} findings of a code, and how many more",
    "concise": "editors and grep: a line a finding, as few of a code",
    "json": "programs: every finding",
    "github": "annotations of a pull request. GitHub keeps 10 errors and 10 warnings of a step: the tenth says how many more the log has",
    "gitlab": "Code Quality (`artifacts:reports:codequality`); fingerprints stay when lines move",
    "sarif": "code scanning, SARIF 2.1.0, with both ends of a conflict; at most 25,000 results, GitHub's limit, the worst first",
    "junit": "test reports: errors are failures, warnings are cases that pass; `ipamc test` has a case for each test",
}
"""The formats of findings, and whom each is for."""

EXITS = (
    ("0", "done"),
    (
        "1",
        "refused: an input, the policy, a stale lock; or an error of the disk, the network or another program",
    ),
    ("2", "only where an option asks for it, as `plan --detailed-exitcode`: something changes"),
    ("64", "usage: an unknown option, cluster, kind or code"),
    ("70", "a bug in ipamc; what became of the other clusters is written and printed all the same"),
    (
        "130, 143, 129",
        "interrupted, or ended by SIGTERM or SIGHUP: every file is whole, and a line says what to run again",
    ),
)
"""Exit codes of all verbs; the page of a verb has its own reasons."""

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
        "clusters/NAME/rendered/index.jsonl",
        "compile",
        "of an address space: which ranges each of its clusters has",
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
    (
        ".github/actions/ipamc/action.yml",
        "ci github",
        "what each job of GitHub does first: it installs ipamc",
    ),
    (
        ".gitlab/ipamc-requirements.txt, .github/ipamc-requirements.txt",
        "ci gitlab, ci github",
        "what its jobs install, with hashes",
    ),
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
    ("IPAMC_ENVIRONMENTS", "the default of `ipamc ci matrix --environments`"),
    ("IPAMC_WAIT", "the default of `ipamc apply --wait`"),
    (
        "IPAMC_TOKEN",
        "the token with which `ipamc ci comment`, `ci applied`, `ci refresh` and `ci audit` talk to the forge",
    ),
    ("GITHUB_TOKEN", "in its place, in GitHub Actions"),
    (
        "GITHUB_ACTIONS, GITLAB_CI",
        "which forge runs the job; then the variables that it documents tell the repository, the branch and the request",
    ),
    (
        "IPAMC_IMAGE, IPAMC_SOURCE",
        "on GitLab: the image of the jobs, and the commit that they build ipamc from",
    ),
    (
        "IPAMC_ID_TOKEN, ACTIONS_ID_TOKEN_REQUEST_URL, ACTIONS_ID_TOKEN_REQUEST_TOKEN",
        "the id token that `ipamc ci token` prints on GitLab, and where it asks for one on GitHub",
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
        "## Findings",
        "Findings go to stderr, each with a code that [a page](../codes/README.md) and `ipamc explain CODE` explain. `--format` chooses how they look; "
        "`--report FORMAT=FILE`, as often as you like, writes them to files as well: also where there are none, where the compile was refused, and where "
        "the disk failed. Paths in `github`, `gitlab`, `sarif` and `junit` are relative to the root of the repository. A cluster whose folder cannot be "
        "read is in every report: none passes for a clean one. A stage of a compile stops at its 10,000th error ([IPC0013](../codes/README.md#ipc0013)).",
        table(["format", "for"], [[code(name), whom] for name, whom in FINDINGS.items()]),
        fence("ipamc compile --locked --check --format github --report sarif=ipamc.sarif", "sh"),
        "## Exit codes",
        table(["code", "when"], [[code(number), when] for number, when in EXITS]),
        "[Each verb](../verbs/README.md) says what it refuses. A cluster that fails, by a bug or because the kernel killed its process, hides no other: it is "
        "a failure in the plan and in every report.",
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
