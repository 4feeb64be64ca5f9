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
    "full": f"people: the place, the line of the file, and the fix. Shows the first {FINDINGS_SHOWN} findings of each code, and the number of the others",
    "concise": "editors and grep: one line per finding, with the same limit",
    "json": "programs: every finding",
    "github": "annotations of a pull request. GitHub keeps 10 errors and 10 warnings per step; the tenth gives the number of further ones in the log",
    "gitlab": "GitLab Code Quality (`artifacts:reports:codequality`); fingerprints stay the same when lines move",
    "sarif": "code scanning with SARIF 2.1.0, with both places of a conflict. At most 25,000 results (GitHub's limit), the worst first",
    "junit": "test reports. An error is a failure, a warning is a case that passes; `ipamc test` writes one case per test",
}
"""The formats of findings, and whom each is for."""

EXITS = (
    ("0", "done"),
    (
        "1",
        "refused because of an input, a rule or a stale lock; or an error of the disk, the network or another program",
    ),
    (
        "2",
        "something changes. Only with an option that requests this code, such as `plan --detailed-exitcode`",
    ),
    ("64", "wrong usage: an unknown option, cluster, kind or code"),
    ("70", "a bug in ipamc. The results of the other clusters are still written and printed"),
    (
        "130, 143, 129",
        "interrupted, or ended by SIGTERM or SIGHUP. No file is half written, and a line on stderr gives the command to run again",
    ),
)
"""Exit codes of all verbs; the page of a verb has its own reasons."""

FILES = (
    (
        "clusters/NAME/ipam.lock",
        "compile, lock, resize, import",
        "which node has which block: one line per block, by address. Only ipamc writes this file",
    ),
    (
        "clusters/NAME/rendered/kustomization.yaml",
        "compile, resize, import",
        "all rendered objects, in the order in which to apply them",
    ),
    (
        "clusters/NAME/rendered/cilium/",
        "compile, resize, import",
        "flags (as Helm values, a kustomize Component, or a ConfigMap), CiliumPodIPPools, CiliumNodeConfigs",
    ),
    ("clusters/NAME/rendered/nodes/SHARD/", "compile, resize, import", "partial Nodes"),
    ("clusters/NAME/rendered/ciliumnodes/SHARD/", "compile, resize, import", "CiliumNodes"),
    (
        "clusters/NAME/rendered/pools/SHARD/",
        "compile, resize, import",
        "a CiliumPodIPPool for each node, in multi-pool mode with `pinning: node`",
    ),
    (
        "clusters/NAME/rendered/seeds/SHARD.yaml",
        "compile, resize, import",
        "the CiliumNodes with which nodes start, in multi-pool mode. Apply each once, before its node joins",
    ),
    (
        "clusters/NAME/rendered/index.jsonl",
        "compile",
        "for an address space: the ranges of each of its clusters",
    ),
    (
        "clusters/NAME/cluster.yaml, ippools.yaml",
        "init, import",
        "the inputs of a new cluster. Afterwards, people edit them",
    ),
    (
        "clusters/NAME/nodes.yaml, ciliumnodes.yaml",
        "init, import",
        "the inventory. `import --refresh` and `ci refresh` update it",
    ),
    ("clusters/.schemas/", "init", "JSON Schemas, for editors"),
    (
        ".gitattributes",
        "init, import",
        "settings for git: ipamc's merge driver merges locks, and rendered files count as generated",
    ),
    (
        ".gitlab-ci.yml, .github/workflows/ipamc.yml",
        "ci gitlab, ci github",
        "the pipeline of GitLab or GitHub",
    ),
    (
        ".github/actions/ipamc/action.yml",
        "ci github",
        "the first step of each GitHub job, which installs ipamc",
    ),
    (
        ".gitlab/ipamc-requirements.txt, .github/ipamc-requirements.txt",
        "ci gitlab, ci github",
        "the packages that the jobs install, with hashes",
    ),
)
"""The files that verbs write by themselves: path, verbs, what is in it."""

VARIABLES = (
    (
        "SOURCE_DATE_EPOCH",
        "the time to use as now, in seconds since 1970, for days of quarantine and dates of pages. If unset, the clock",
    ),
    ("NO_COLOR, FORCE_COLOR", "turn colours off, or force them on"),
    ("TERM, COLUMNS", "the capabilities and the width of the terminal"),
    ("CI", "if set, ipamc shows no progress line"),
    ("KUBECTL, KUSTOMIZE", "the command lines of these programs. If unset, the programs on the PATH"),
    ("IPAMC_ENVIRONMENTS", "the default of `ipamc ci matrix --environments`"),
    ("IPAMC_WAIT", "the default of `ipamc apply --wait`"),
    (
        "IPAMC_TOKEN",
        "the token that `ipamc ci comment`, `ci applied`, `ci refresh` and `ci audit` use for the forge",
    ),
    ("GITHUB_TOKEN", "in GitHub Actions, the token to use if `IPAMC_TOKEN` is unset"),
    (
        "GITHUB_ACTIONS, GITLAB_CI",
        "which forge runs the job. ipamc then reads the repository, the branch and the request from the variables that the forge documents",
    ),
    (
        "IPAMC_IMAGE, IPAMC_SOURCE",
        "on GitLab: the image of the jobs, and the commit from which they build ipamc",
    ),
    (
        "IPAMC_ID_TOKEN, ACTIONS_ID_TOKEN_REQUEST_URL, ACTIONS_ID_TOKEN_REQUEST_TOKEN",
        "the ID token that `ipamc ci token` prints on GitLab, and the address and token with which it requests one on GitHub",
    ),
    ("GIT_CONFIG_COUNT", "the number of git settings in the environment, to which ipamc adds its own"),
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
        "The JSON that ipamc prints, its findings, its exit codes, the files that it writes, and the environment variables that it reads.",
        "## JSON outputs",
        table(
            ["command", "contents", "schema"],
            [
                [
                    f"[{code(PRINTED[name])}]({name.replace('_', '-')}.md)",
                    prose(each["description"]),
                    code(f"schemas/{name}.output.json"),
                ]
                for name, each in schemas.items()
            ],
        ),
        "The JSON output of other verbs has no schema yet.",
        "## Findings",
        "ipamc writes findings to stderr, each with a code. [A page](../codes/README.md) and `ipamc explain CODE` explain the codes. `--format` selects the "
        "format. `--report FORMAT=FILE`, which can be repeated, also writes the findings to a file, even if there are none, the compile is refused, or the "
        "disk fails. Paths in `github`, `gitlab`, `sarif` and `junit` are relative to the root of the repository. Every report includes clusters whose "
        "folder cannot be read. A stage of a compile stops at its 10,000th error ([IPC0013](../codes/README.md#ipc0013)).",
        table(["format", "for"], [[code(name), whom] for name, whom in FINDINGS.items()]),
        fence("ipamc compile --locked --check --format github --report sarif=ipamc.sarif", "sh"),
        "## Exit codes",
        table(["code", "meaning"], [[code(number), when] for number, when in EXITS]),
        "The page of [each verb](../verbs/README.md) lists what the verb refuses. If one cluster fails because of a bug, or because the kernel killed its process, "
        "the plan and every report show the failure and still contain the other clusters.",
        "## Files that are written",
        table(
            ["file", "written by", "contents"],
            [[", ".join(map(code, path.split(", "))), by, what] for path, by, what in FILES],
        ),
        "ipamc writes other files only if an option names them: `--write`, `--report`, `--receipt`.",
        "## Environment variables",
        table(
            ["variable", "meaning"],
            [[", ".join(map(code, names.split(", "))), what] for names, what in VARIABLES],
        ),
    )
    return {**made, f"{FOLDER}README.md": index}


def _output(name: str, schema: Schema) -> Iterator[str]:
    defs: Schema = schema.get("$defs", {})
    yield f"# {PRINTED[name]}"
    yield prose(schema["description"])
    yield (
        f"The JSON Schema is `schemas/{name}.output.json` in the repository and in the package. Fields marked *maybe* can be absent. "
        "A linked type has its own section below."
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
    return re.sub(
        r"`[^`]*`|\w+", lambda word: f"[{word[0]}](#{word[0]})" if word[0] in defs else word[0], said
    )
