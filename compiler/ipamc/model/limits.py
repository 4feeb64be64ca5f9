"""Limits: numbers beyond which ipamc refuses, cuts, omits, gives up, takes another way or waits no longer.

A constant stands under what it limits, with its unit and the reason for its value: measured, a limit of
another program, or what a person reads. `law/` has its own. A new limit comes here, and into
docs/concepts/limits.md if a user can meet it.
"""

from __future__ import annotations

# What is read: files and tables
LARGEST_FILE = 256 << 20  # the most bytes of a file or an output of git: an inventory of thrice MOST_NODES
LARGEST_INPUTS = 1 << 30
"""Bytes of a cluster's inputs, and of its rendered files: chosen, all are in memory at once."""
LARGEST_TABLE = 64 << 20  # the most bytes of a CSV file: the prefixes of 100,000 nodes take ten
MOST_ROWS_OF_TABLE = 1_000_000  # of a CSV file: ten times the prefixes of the largest clusters
MOST_COLUMNS_OF_TABLE = 200
"""If all columns are read: chosen, as each row keeps a text of each in memory."""
LARGEST_ROUTES = 64 << 20  # the most bytes of a table: some 300,000 routes of FRR as JSON
LONGEST_ROUTE = 4096  # the most characters of a line that are read: chosen, far above a line with a route
FILE_HEAD = 1 << 16
"""Bytes of a file that may be skipped: chosen, most pools fit, and an inventory shows at once."""
TEXT_HEAD = 4096
"""Bytes in which text that is no input, as of `kubectl get`, is recognized: chosen, one line does."""

# What is read: dumps
LARGEST_DUMP = 8 << 30  # the most bytes of one unpacked file of a dump: some two million pods
LARGEST_ITEM = 1 << 30
"""Bytes of an item, and of a dump not as of `kubectl -o json`: chosen, it is in memory as a whole."""
MOST_OBJECTS_OF_DUMP = 2_000_000  # as many pods as the largest accepted dump has
DEEPEST_LISTS = 8  # the most nested lists: chosen, as each level is decoded again; kubectl prints one
UNPACKED_SMALL = 64 << 20  # bytes that a zip or gzip of any size unpacks to: chosen, any machine has them
UNPACKED_RATIO = 100
"""The most bytes that each byte of a larger zip or gzip unpacks to: measured, nodes of a label each have 60,
kubectl's have 8 to 26, blanks 1,000."""
ZIP_FILES = 100_000  # of a zip with a dump: measured, zipfile keeps some 300 bytes of each, 30 MB of all
ZIP_HEAD = 1 << 20
"""Bytes of a file of a zip in which its kind is looked for: chosen, kubectl prints it early."""
MOST_CALICO_POOLS = 500  # the most IPPools of a dump: all pairs are compared, as Calico itself does for a pod
MOST_CLUSTER_CIDRS = 1_000  # ClusterCIDRs of a dump: each is compared with all others, half a million pairs
LARGEST_GUESSED_BLOCK = 20
"""Shortest prefix of blocks guessed from single addresses (crd mode): a /20 has MOST_CRD_ADDRESSES."""
SPARSEST_RANGE = 16
"""A derived range with more than this many times the addresses of its blocks is split. Chosen: a larger
number claims more that may be somebody else's, a smaller one writes more CIDRs."""

# What is read: documents
DEEPEST_DOCUMENT = 100
"""Levels of nesting: a validator takes several Python frames, of 1,000, for each; a manifest has a dozen."""
MOST_NODES = 200_000
"""The most nodes of a cluster, and CiliumNodes; documents of a file, and mappings in one list: twice the
largest measured cluster. They are counted while they are read: a refusal takes no memory for the rest."""
MOST_CONTAINERS = 10_000_000
"""The most mappings and lists of a document, or an item of a JSON List: a million nodes have 3 million.
Each takes some ninety bytes of memory for two bytes of text or more."""
MOST_ALIASED_VALUES = 1_000_000
"""The most values that a file's aliases may expand to; 64 characters of text count as one. Chosen: aliases
of aliases make billions of a few lines."""
MOST_ODD_SCALARS = 1_000_000
"""Ambiguous unquoted scalars of a document: chosen, as each is kept until its field is known."""
MOST_TAG_LINES = 1_000  # the most `%TAG` lines of a file: a YAML parser compares each of them with all others
MOST_DIGITS = 18  # longer integers become floats, which no field accepts; Python refuses some thousand digits
SMALL_TEXT = 1 << 16
"""Bytes of JSON whose depth is seen in an indented copy, which is fastest; a larger one takes memory."""
REMEMBERED_ENTRY = 1_000
"""Bytes of an entry that is remembered as it is, to save its pattern: an image, which many nodes have."""

# What is read: names and selectors
LARGEST_CLUSTER = 100_000
"""Nodes of the largest measured cluster: as many can patterns name, tests of `room` place, questions add,
and a wave move."""
MOST_NAMES_COUNTED = 10**18
"""Larger numbers of names are not computed: the product of a megabyte of ranges has as many digits."""
LONGEST_LABEL_VALUE = 63
"""The most characters of a label's value (Kubernetes). A DNS subdomain of this length is a valid value."""
LONGEST_SUBDOMAIN = 253  # the most characters of a DNS subdomain (Kubernetes)
LONGEST_SELECTOR = 4 << 20
"""The most characters of a selector, of an object as Python prints it. No object in a cluster can have
more: etcd accepts requests of 1.5 MiB."""
LONGEST_CALICO_SELECTOR = 1024
"""The most characters of a selector in Calico's IPPool. Only Calico's CRD refuses longer text, so the
reader of such pools checks it."""
LONGEST_CALICO_KEY = 512  # characters of a label's key (libcalico-go's tokenizer: maxLabelLength)
LONGEST_REWRITTEN_SELECTOR = 1000
"""Of a text that is rewritten to what may be meant: chosen, a person reads the result."""
DEEPEST_SELECTOR = 200  # the most levels of a tree. A walk takes one or two Python frames for each, of 1,000.
LONGEST_MISTAKEN_CIDR = 200
"""Of a text that is tried as other spellings of a CIDR: chosen, what a person typed is shorter."""
FOLLOWED_IPV6 = 112
"""The shortest prefix of an IPv6 network: CEL has no 128-bit numbers, so one group is computed."""

# What is searched or compared: pools and nodes
MOST_CANDIDATES = 5_000_000  # of all nodes; candidates that nodes share count once: some 5 seconds
MOST_LABEL_TESTS = 5_000_000  # besides those that rule a selector out at once: some 5 seconds
MOST_PAIRS_OF_POOLS = 300_000  # that are compared to find pods that both select: about a second
MOST_COMPARED_WORDS = 20_000  # comparisons of words to find similar ones: they take a tenth of a second
MOST_COMPARED_SELECTORS = 2_000_000
"""Compared pairs: chosen, pools times pools; a pool that needs more lists hostnames."""
MOST_OPPOSITE_VALUES = 100_000
"""In opposites of other selectors: chosen for files; a pool that needs more lists hostnames."""
MOST_CACHED_SELECTORS = 1 << 14
"""Pools that share a text, as by an alias, share its selector: chosen, above a cluster's pools."""
TESTS_IN_TURN = 8  # tests of labels in turn: measured, 8 take 1.5 µs, by label 2.2; 32 take the same
SELECTORS_IN_TURN = 4
"""Each selector is evaluated; above it, an index tells which: chosen, so few need no index."""
KEYS_IN_TURN = 16
"""Each key is looked up in every node; above it, its labels are iterated: chosen, it has about as many."""
OLD_LINES_FOR_INSERTION = 1000
"""At this ratio of old to new lines or above, insert new lines one by one; else sort them all. Measured:
100 among 100,000 are inserted in 2 ms, and sorted in 12."""
MAP_REASONS = 200_000
"""Pairs of a pool and a group of nodes: chosen for the page's size; `ipamc why` has those of a node."""
RAREST_LABEL_COLUMN = 16
"""A label on fewer than 1 in so many nodes is pairs, else a column: chosen for the page."""

# What is searched or compared: documents of kind Tests
MOST_TESTS = 1000  # of a cluster, and items of one list: 100 tests of any kind take 0.02 to 0.3 seconds
MOST_TEST_BLOCKS = 2_000_000
"""The most blocks placed for all tests, plus lines in their pools; both families count as one. Chosen: as
many as MOST_TEST_STEPS."""
MOST_TEST_STEPS = 2_000_000  # groups of nodes, prefixes, CIDRs and blocks in all tests: some 10 seconds
MOST_TEST_NAMES = 1_000_000  # compared with misspelt ones, some 4 seconds; later ones get no hint
MOST_TEST_LABELS = 5_000_000  # tests of labels, and pairs of a selector and a group of nodes: some 5 seconds

# What is searched or compared: texts and history
SEARCHED_AROUND = 256
"""Characters on both sides of a place that are searched: a line can be a document full of findings."""
SMALL_LOCK = 1 << 19
"""Bytes of a lock with some 5,000 lines: chosen, as each of its names is compared with a misspelt one."""
LOCKS_FOR_COMPLETION = 64 << 20
"""The most bytes of locks that are searched: chosen, as a shell waits for the words."""
LARGEST_LOCK_HISTORY = 100 << 20
"""Bytes of versions of a lock, each counted with the size of the last: git takes about a second."""
MOST_LOCK_VERSIONS = 5000
"""Versions that are listed, the newest, by one command of git: chosen, thirteen a day for a year."""
DEEPEST_LOCK_SEARCH = 20
"""Commits in a row searched for an intact lock: chosen, the next compile notices a broken one."""
MOST_COMMITS_SEARCHED = 200  # commits searched in all: chosen, as merges of merges have many paths back
MOST_COMMON_ANCESTORS = 256
"""Common ancestors that are compared with HEAD, each in some 4 ms: a branch can have any number."""
MOST_WEEKS = 52  # weeks of history that are used: a year, so that every season is in it once
LEAST_WEEKS = 12  # with fewer weeks there is no answer: a quarter of them would be no stretch
LEAST_CHANGES = 5  # with fewer weeks of change there is no answer: a rate of a few is chance
MOST_JUMPS = 2  # the most weeks that are left out as jumps: with more, growth is uneven
FORECAST_REACH = 2  # a history of n weeks allows a forecast of 2n: chosen, so long growth is taken to last
REASONS_WITH_REMEDIES = 8
"""Reasons for which remedies are searched: chosen, as each takes O(lines) a few times."""

# What is placed, and what may change at once
MOST_NODE_BLOCKS = 4096  # blocks of a node in modes with several: they are in one object (see IPC0531)
MOST_BLOCKS = 1_000_000  # of all nodes in these modes: ten for each node of the largest clusters
MOST_CRD_ADDRESSES = 4096
"""The most addresses in one CiliumNode of crd mode (IPC0531): a larger object is slow to patch, and nears
etcd's 1.5 MiB."""
IPV6_BLOCK_BITS = 16
"""At most 2^16 blocks: Cilium and Kubernetes use a bitmap (cidr_set.go: clusterSubnetMaxDiff)."""
MOST_SHARDS = 1 << 20
"""The most shards of a cluster: one node in each of a million. Names of shards have five digits at most."""
LEAST_HOST_BITS = 4  # of a ClusterCIDR (node-ipam-controller, validation/validation.go; IPC0212)
LEAST_BITS = 2  # of a block: a smaller one has no usable address before Cilium 1.17 (IPC0552)
SMALLER_SIZES = 2  # smaller block sizes that are tried, bit by bit: chosen, a quarter has room for most pods
SMALLER_SIZES_AT_FIRST = 6  # the same before any node has a block: a blockSize may be much too large then
FEW_NODES = 3
"""This number of nodes may leave, show none of their blocks, or have joined again, whatever the share.
Chosen: in a cluster of a few nodes, each is a large share."""
OLDEST_DUMP_FOR_RESIZE = 1
"""Days that a dump may be old: chosen, one made yesterday will do; pods come and go."""
NODES_WITHOUT_LOOP = 12  # a phase with more nodes may have loops: chosen, a person copies a dozen commands
NODES_IN_CHECK = 25  # nodes whose blocks a check lists: chosen, a screen; for more, the audit is the check
MOST_SUGGESTIONS = 100  # the most suggestions of a pool: chosen, a person reads a few, a program some

# What is printed or cut: findings and names in them. People read the first ones; the rest is counted
MOST_FINDINGS = 10_000
"""The errors after which a stage stops, and the most warnings and notes of one code that a stage lists.
Chosen: hostile input could cause any number, and each takes memory."""
FINDINGS_SHOWN = 20  # findings of one code in a text for people: chosen, as a rule they have one cause
VERIFY_SHOWN = 100  # findings that `ipamc verify` shows: chosen, of three lines each; it has no other output
MOST_PLACES = 4
"""Nodes or objects of one finding whose places are listed: chosen, as each takes lines of source."""
USERS_SHOWN = 3  # users of addresses in a finding: chosen, half a line each
NAMES_SHOWN = 20  # nodes, blocks, pools or labels that a sentence or command names: chosen, some lines
NODES_IN_COMMAND = 500  # nodes that a command names: chosen, a shell takes 128 KB, and nobody reads more
WORDS_SHOWN = 12  # words of a list in a message: chosen, a line or two
INPUT_SHOWN = 260  # the most characters of a piece of input in a message: enough for the longest valid name
VALUE_SHOWN = 60
"""Characters of a wrong value in a message: chosen, most of a line; the message says what it should be."""
SELECTOR_SHOWN = 4096
"""Characters of a selector that is written out: chosen, as thousands of pools may share one."""
ERROR_SHOWN = 300  # characters of an error's text that are printed: a forge may answer with a page of HTML
OUTDATED_SHOWN = 5  # outdated files that a message names: chosen, as one command renews all

# What is printed or cut: texts for a terminal, of some dozens of lines. JSON has everything
MESSAGE_LINES = 200  # lines of one message; then a number: chosen, text of other programs may have any length
TEXT_SHOWN = 2000  # characters of a text: chosen, a screen; names in the input may have any length
BEFORE_CARET = 60
"""Characters of a long line before the caret: chosen, both together are two lines of 80 cells."""
AFTER_CARET = 100  # the same after it: what is wrong begins there
WIDEST_PLAN_LINE = 140  # cells of a line; a longer one is wrapped: chosen, columns are aligned up to here
POOLS_SHOWN = 30
"""Pools of one cluster on a terminal: chosen, a screen; more are shown in a pipe, and by `--all`."""
RESERVED_SHOWN = 5  # the same for reserved CIDRs of a pool: chosen, as each pool has its own
REJECTED_SHOWN = 10  # rejected pools in the text: chosen, each takes a line
LINES_SHOWN = 20  # lines of each kind after an apply, reasons of `ipamc forecast --what-if`: chosen, a screen
ADDED_SHOWN = 2  # added nodes printed with their blocks, before the last one: chosen, they show the pattern
OTHER_POOLS_SHOWN = 3  # other pools that are named: chosen, the first fits best
PREFIXES_SHOWN = 6  # prefixes of a pool and family in a plan: chosen, a line or two; JSON has all
DEEPEST_SCHEMA = 12  # the most levels of a schema: chosen, as it may refer to itself
COMMANDS_IN_LINE = 220
"""Characters of commands in a line: chosen, three of 80 cells; longer ones are in the runbook."""

# What is printed or cut: comments, pictures, pages
LONGEST_PLAN_COMMENT = 60_000  # the most characters of a comment: GitHub takes 65,536, and bots add text
ROWS_TRIED = (100_000, 2_000, 1_000, 500, 200, 100, 50, 20, 10, 5, 2, 1, 0)
"""The most rows per list, tried one after the other until the comment fits. Chosen: in large steps, as each
try writes the comment anew."""
LEAST_ROWS = 5  # findings and names that are never omitted: chosen, nobody judges a plan without any
NAMES_IN_LINE = 1_000
"""Characters of clusters' names in a command: chosen, a dozen lines; longer lists go into a file."""
OPEN_ROWS = 10  # a table of changes with more rows is folded: chosen, so that several fit on a screen
MAP_ROWS = 120  # rows of all maps of a plan: chosen, some screens; a line counts the others with changes
LONGEST_SUBJECT = 200
"""Characters of a commit's subject: chosen, some three times a usual one; it is text of anybody."""

# What other programs take: GitHub and GitLab
LONGEST_COMMENT = 65_000
"""Characters of a comment: GitHub takes 65,536, GitLab more. `ipamc plan` stays below this by itself."""
GITHUB_JOBS = 256  # jobs of one matrix in one run (GitHub: usage limits)
GITLAB_JOBS = 200  # jobs of one `parallel: matrix` (GitLab, CI/CD YAML reference)
TARGET_IN_JOB = 200
"""Characters of a target in a job's name. Where a name has more than 255, GitLab silently creates no
pipeline (gitlab-org/gitlab#584573)."""
SHARDS_OF_JOB = 8
"""Shards that one job applies: chosen, each job has to start; with more, each shard gets one."""
GITHUB_ANNOTATIONS = 10  # annotations of a kind that GitHub keeps of a step
SARIF_RESULTS = 25_000  # results of a run: GitHub refuses a file with more, and shows the first 5,000
FORGE_PAGES = 200  # pages of comments or issues that are read: chosen, of 100 issues each
LARGEST_ANSWER = 64 << 20
"""The most bytes of an answer: more than a page of the longest comments has (GitHub: 100 of 65,536
characters, GitLab: 10 of 1,000,000; a character has at most 6 bytes in JSON)."""
PATHS_IN_COMMAND = 500
"""Paths in one command of git: 500 of 4,096 bytes, Linux's longest, are its 2 MiB for all arguments."""

# What other programs take: the apiserver, NetBox, routers
LARGEST_OBJECT = 1_400_000
"""Bytes of an object: etcd accepts requests of 1.5 MiB (--max-request-bytes), managedFields included."""
LARGEST_CONFIG_MAP = 1 << 20
"""The most bytes of a ConfigMap (Kubernetes, pkg/apis/core/types.go: MaxSecretSize, 1 MiB)."""
LONGEST_EXPRESSION = 100_000
"""Characters of an expression (cel-go, parser/options.go: expressionSizeCodePointLimit)."""
LONGEST_TEXT_OF_POLICY = 90_000
"""Characters of a text: below LONGEST_EXPRESSION, with room for the rest of it."""
PAGE_OBJECTS = 500  # objects per answer, which kubectl holds as a whole: as many as its --chunk-size
NODES_LISTED_ALONE = 8
"""Nodes whose pods are listed per node: chosen, as each starts kubectl; above, all pods are listed once."""
NAMES_IN_COMMAND = 100
"""Names in one `kubectl delete`: 100 of 253 characters stay below the 32,767 of a command on Windows."""
NETBOX_DESCRIPTION = 200
"""Characters of a description in NetBox (netbox/models/__init__.py: max_length of PrimaryModel)."""
PREFIX_LIST_NAME = 63
"""The most characters of a name: chosen, FRR allows 128, Junos 255, and a person types it."""

# How long one waits, in seconds where no other unit is named
LONGEST_WAIT = 86_400
"""The longest time to wait that `apply` takes: chosen, a day; the job holds its runner."""
ERROR_WAITS = 3  # waiting times that an error may last: operators since 1.19 correct some themselves
KUBECTL_SECONDS = 600
"""Of one run of kubectl or kustomize, as `ipamc apply --help` says: chosen, one that hangs ends."""
WATCH_PAUSE = 2.0  # between a watch that ended early and a new list: the apiserver may be restarting
WATCH_EARLY = 0.5  # that a watch may end too early: client and server both measure
WATCH_GRACE = 30  # extra until ipamc ends a watch that the apiserver does not end: chosen, for a slow network
RETRY_PAUSE = 0.5  # until the same is sent again: chosen, the apiserver knows new kinds and policies soon
GIT_SECONDS = 600  # how long git may talk to a remote repository: chosen, as long as kubectl
REQUEST_SECONDS = 60
"""Of a request, from the look-up of the host to the last byte: chosen, one that trickles ends."""
FORGE_SECONDS = 300
"""To read all pages of comments or issues: chosen, as each page alone may take REQUEST_SECONDS."""
PIPELINE_SECONDS = 60  # in which GitLab starts the pipeline of a push: chosen, it does so in the background
PIPELINE_PAUSE = 3.0  # between two queries for the pipeline: chosen, twenty queries in all
CLEAN_UP_SECONDS = 2.0
"""That a process has to clean up before it is killed: chosen, as Ctrl-C should end a run at once."""
ORPHAN_SECONDS = 1.0
"""That a task has to clean up, once the parent process is gone: chosen, nobody waits for it."""
STATUS_DELAY = 1.0  # of work before anything is shown: chosen, as most runs are over by then
DUMP_SLACK = 600  # a dump may be older than a commit by this: kubelets write each five minutes; clocks differ
YOUNG_POD = 300
"""Before a dump's end in which a pod may be newer than kinds listed earlier: chosen, a dump takes minutes."""
