"""ipamc compiles IP pools, a node inventory and a lock into manifests that Cilium accepts.

The rooms, top to bottom; a module imports only from rooms beneath its own (`[tool.importlinter]`, and a test checks it):

    cli/          verbs, options, exit codes; nothing else prints. cli/ci/: what pipelines call
    catalogue     every rule by its code
    workspace/    clusters on disk and in git revisions: the only room that does I/O (disk, git, kubectl)
    report/       findings, plans, tables to text: one module a format
    review/       questions about a plan: what changes (diff/), why a node has its block, who holds an address
    pipeline      the whole data flow in one function; address_space: several clusters
    render/       plan to objects to YAML, verified. render/targets/: one module a kind of manifest
    place/        candidates, then reconcile (lock against inventory), then allocate (new blocks)
    check/        every rule: on the inputs, on the plan, on what was published
    lock/         the file: format, rules, consent, look-up, utilisation. lock/merge/: merges
    read/         text to model. read/syntax/: text to documents; read/kinds/: one module a dialect
    model/        values that all stages share. model/selector/; model/cilium/: what each version does
"""

__version__ = "0.1.0"
