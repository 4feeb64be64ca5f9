"""ipamc compiles IP pools, a node inventory and a lock into manifests that Cilium accepts.

The map of the code, top to bottom; a module imports only from lines beneath its own (`[tool.importlinter]` has it in full, and a test checks it):

    cli/              one module a verb; exit codes; nothing else knows that there is a terminal
    catalogue         every rule by its code, for `ipamc explain`
    disk  git         the doors: the only modules that open files, and that run git
    report/           diagnostics, tables and plans to text; one module a format
    difference/       two sides to a Difference: what a plan tells; what of it is refused
    pipeline  address_space   Inputs to Compilation: the whole data flow in one function; what other clusters claim
    emit  limits      objects to text, one render a file; what is too large then
    fleet             clusters to CI jobs, within the limits of the forges
    verify            the text that was rendered, against its schemas
    arrange           the plan to files: which objects stand in which shard
    targets/          one module a kind of manifest
    review published  rules that need the plan, and what was rendered before
    trace vacancy     how a node came to its blocks; what an address is that nobody holds
    sight             the pools as one node sees them, and what decided
    allocate          lacking to blocks: pins, then newcomers by name
    shortage  pins    who got nothing and why; pins placed
    space reclaim blockers   the free pieces of ranges, walked lazily; lines that may be used again; what is in the way
    settle            wants and lock to what is kept, returns, is adopted, left, lacking
    adopt holding leave      evidence of live nodes; whether a block may stay; whether so many can have left
    assign            which pools serve which node, in a total order
    lookup            questions to a lock's text that need not read all of it
    lock  lock_rules  the lock's text, and what it must be
    check/            rules across the inputs: a rule's docstring is its entry in the catalogue
    masks territory utilisation   sums over pools and lines
    read/             documents to the model, one module a dialect
    versions claims capability   questions about Cilium minors; which minor does what, and how we know; what differs by name
    model             what the compiler knows, frozen
    selector/ cidr diagnostics
"""

__version__ = "0.1.0"
