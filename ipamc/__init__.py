"""ipamc compiles IP pools, a node inventory and a lock into manifests that Cilium accepts.

The map of the code, top to bottom; a module imports only from lines beneath its own:

    cli/            one module a verb; exit codes; nothing else knows that there is a terminal
    disk            the door to the file system
    report/         diagnostics and tables to text; one module a format
    pipeline        Inputs to Compilation: the whole data flow in one function
    emit            objects to text, one render a file
    arrange         the plan to files: which objects stand in which shard
    targets/        one module a kind of manifest
    review          rules that need the plan: capacity, maxPods, limits of the mode
    allocate        lacking to blocks; space: the free pieces of ranges
    settle          wants and lock to what is kept, returns, is adopted, left, lacking
    assign          which pools serve which node, in a total order
    lock            the lock's text
    check/          rules across the inputs
    versions        what each Cilium and Kubernetes version can do
    read/           documents to the model, one module a dialect
    model  selector/  cidr  diagnostics
"""

__version__ = "0.1.0"
