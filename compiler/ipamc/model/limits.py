"""Limits: numbers beyond which ipamc refuses, cuts, omits, gives up, takes another way or waits no longer.

A constant stands under what it limits, with its unit and the reason for its value: measured, a limit of
another program, or what a person reads. `law/` has its own. A new limit comes here, and into
docs/concepts/limits.md if a user can meet it.
"""

from __future__ import annotations

# What is read: files and tables
LARGEST_FILE = 256 << 20  # the most bytes of a file: an inventory of some 600,000 nodes
LARGEST_INPUTS = 1 << 30  # the most bytes of the inputs of a cluster together, and of its rendered files
LARGEST_GIT_OUTPUT = 256 << 20  # the most bytes that one command may print: as many as of a file
LARGEST_TABLE = 64 << 20  # the most bytes of a CSV file: the prefixes of 100,000 nodes take ten
MOST_ROWS_OF_TABLE = 1_000_000  # of a CSV file: ten times the prefixes of the largest clusters
MOST_COLUMNS_OF_TABLE = 200  # the limit if all columns are read
LARGEST_ROUTES = 64 << 20  # the most bytes of a table: some 300,000 routes of FRR as JSON
LONGEST_ROUTE = 4096  # the most characters of a line of text that are read
FILE_HEAD = 1 << 16  # bytes that are looked at of a file that is not read
TEXT_HEAD = 4096  # the bytes in which text that is no input, as of `kubectl get`, is recognized

# What is read: dumps
LARGEST_DUMP = 8 << 30  # the most bytes of one unpacked file of a dump: some two million pods
LARGEST_ITEM = 1 << 30  # bytes of an item, and of a dump in another form than that of `kubectl -o json`
MOST_OBJECTS_OF_DUMP = 2_000_000  # as many pods as the largest accepted dump has
DEEPEST_LISTS = 8  # the most nested lists: each level is decoded again
ZIP_FILES = 100_000  # of a zip with a dump: more is no dump
ZIP_HEAD = 1 << 20  # the first bytes of a file of a zip, in which ipamc looks for its kind
MOST_CALICO_POOLS = 500  # the most IPPools of a dump: all pairs are compared, as Calico itself does for a pod
MOST_CLUSTER_CIDRS = 1_000  # the most ClusterCIDRs of a dump: each is compared with all others
LARGEST_GUESSED_BLOCK = 20  # the shortest prefix of blocks that are guessed from single addresses (crd mode)
SPARSEST_RANGE = 16  # a derived range with more than this many times the addresses of its blocks is split

# What is read: documents
DEEPEST_DOCUMENT = 100  # the most levels of nesting in a document
MOST_NODES = 200_000
"""The most nodes of a cluster, and CiliumNodes; documents of a file, and mappings in one list: twice the
largest measured cluster. They are counted while they are read: a refusal takes no memory for the rest."""
MOST_CONTAINERS = 10_000_000
"""The most mappings and lists of a document, or an item of a JSON List: a million nodes have 3 million.
Each takes some ninety bytes of memory for two bytes of text or more."""
MOST_ALIASED_VALUES = 1_000_000  # that a file's aliases may expand to; 64 characters of text count as one
MOST_ODD_SCALARS = 1_000_000  # ambiguous unquoted scalars of a document, in fields of any kind
MOST_TAG_LINES = 1_000  # the most `%TAG` lines of a file: a YAML parser compares each of them with all others
MOST_DIGITS = 18  # longer integers become floats, which no field accepts; Python refuses some thousand digits
SMALL_TEXT = 1 << 16  # bytes of JSON; the depth of a larger one is counted by its brackets, to save memory
REMEMBERED_ENTRY = 1_000  # bytes of an entry that is remembered as it is: an image, which many nodes have

# What is read: names and selectors
MOST_PATTERN_NAMES = 100_000  # the most names of all patterns of a cluster: as many nodes as the largest have
MOST_NAMES_COUNTED = 10**18
"""Larger numbers of names are not computed: the product of a megabyte of ranges has as many digits."""
LONGEST_LABEL_VALUE = 63
"""The most characters of a label's value (Kubernetes). A DNS subdomain of this length is a valid value."""
LONGEST_SUBDOMAIN = 253  # the most characters of a DNS subdomain (Kubernetes)
LONGEST_SELECTOR = 4 << 20
"""The most characters of a selector, of an object as Python prints it. No object in a cluster can have more:
etcd accepts requests of 1.5 MiB."""
LONGEST_CALICO_SELECTOR = 1024
"""The most characters of a selector in Calico's IPPool. Only Calico's CRD refuses longer text, so the
reader of such pools checks it."""
LONGEST_CALICO_KEY = 512  # the most characters of a label's key in Calico's tokenizer
LONGEST_REWRITTEN_SELECTOR = 1000  # the most characters of a text that is rewritten to what may be meant
DEEPEST_SELECTOR = 200  # the most levels of a tree. A walk takes one or two Python frames for each, of 1,000.
LONGEST_MISTAKEN_CIDR = 200  # the most characters of a text that is tried as other spellings of a CIDR
FOLLOWED_IPV6 = 112
"""The shortest prefix of an IPv6 network: CEL has no 128-bit numbers, so the policy computes in one group."""

# What is searched or compared: pools and nodes
MOST_CANDIDATES = 5_000_000  # of all nodes; candidates that nodes share count once: some 5 seconds
MOST_LABEL_TESTS = 5_000_000  # besides those that rule a selector out at once: some 5 seconds
MOST_PAIRS_OF_POOLS = 300_000  # that are compared to find pods that both select: about a second
MOST_COMPARED_WORDS = 20_000  # comparisons of words to find similar ones: they take a tenth of a second
MOST_COMPARED_SELECTORS = 2_000_000  # compared pairs; a pool that would need more lists hostnames
MOST_OPPOSITE_VALUES = 100_000  # in opposites of other selectors; a pool that would need more lists hostnames
MOST_CACHED_SELECTORS = 1 << 14  # pools that share a text, as by a YAML alias, share its selector
TESTS_IN_TURN = 8  # tests of labels run one after the other; above it, only those of labels that the node has
SELECTORS_IN_TURN = 4  # each selector is evaluated; above it, an index tells which
KEYS_IN_TURN = 16  # each key is looked up in every node; above it, the node's labels are iterated
OLD_LINES_FOR_INSERTION = 1000
"""At this ratio of old to new lines or above, insert new lines one by one; else sort them all."""
MAP_REASONS = 200_000  # pairs of a pool and a group of nodes; above, `ipamc why` has them for one node
RAREST_LABEL_COLUMN = 16  # a label on fewer than 1 in this many nodes is written as pairs, else as a column

# What is searched or compared: documents of kind Tests
MOST_TESTS = 1000  # the most tests of a cluster: 100 of any kind take 0.02 to 0.3 seconds
MOST_TEST_ITEMS = 1000  # the most CIDRs, selectors and tests of one list: as many as tests
MOST_ROOM_NODES = 100_000  # the most nodes in a test of `room`: as many as the largest clusters have
MOST_TEST_BLOCKS = 2_000_000  # placed for all tests, plus lines in their pools; both families count as one
MOST_TEST_STEPS = 2_000_000  # groups of nodes, prefixes, CIDRs and blocks in all tests: some 10 seconds
MOST_TEST_NAMES = 1_000_000  # compared with misspelt ones, some 4 seconds; later ones get no hint
MOST_TEST_LABELS = 5_000_000  # tests of labels, and pairs of a selector and a group of nodes: some 5 seconds

# What is searched or compared: texts and history
SEARCHED_AROUND = 256
"""Characters on both sides of a place that are searched: a line can be a whole document full of findings."""
SMALL_LOCK = 1 << 19  # bytes of a lock with some 5,000 lines: its names are compared with a misspelt one
LOCKS_FOR_COMPLETION = 64 << 20  # the most bytes of locks that are searched: a shell waits for the words
LARGEST_LOCK_HISTORY = 100 << 20
"""The most bytes of versions of a lock, each counted with the size of the last: git takes about a second."""
MOST_LOCK_VERSIONS = 5000  # the most versions that are listed, the newest: git lists them in one command
DEEPEST_LOCK_SEARCH = 20  # the most commits in a row that are searched for an intact lock, each by git
MOST_COMMITS_SEARCHED = 200  # the most commits searched in all: merges of merges have many paths back
MOST_COMMON_ANCESTORS = 256
"""The most common ancestors that are compared with HEAD, each in some 4 ms: a branch can have any number."""
MOST_WEEKS = 52  # weeks of history that are used: a year, so that every season is in it once
LEAST_WEEKS = 12  # with fewer weeks there is no answer: a quarter of them would be no stretch
LEAST_CHANGES = 5  # with fewer weeks of change there is no answer: a rate of a few is chance
MOST_JUMPS = 2  # the most weeks that are left out as jumps: with more, growth is uneven
FORECAST_REACH = 2  # a history of n weeks allows a forecast of 2n weeks
REASONS_WITH_REMEDIES = 8  # reasons for which remedies are searched, each in O(lines) a few times

# What is placed, and what may change at once
MOST_NODE_BLOCKS = 4096  # blocks of a node in modes with several: they are in one object (see IPC0531)
MOST_BLOCKS = 1_000_000  # of all nodes in these modes: ten for each node of the largest clusters
MOST_CRD_ADDRESSES = 4096
"""The most addresses in one CiliumNode of crd mode (IPC0531): a larger object is slow to patch, and nears
etcd's 1.5 MiB."""
IPV6_BLOCK_BITS = 16  # at most 2^16 blocks: Cilium and Kubernetes use a bitmap (clusterSubnetMaxDiff)
MOST_SHARDS = 1 << 20
"""The most shards of a cluster: one node in each of a million. Names of shards have five digits at most."""
SMALLER_SIZES = 2  # how many smaller block sizes are tried, bit by bit
SMALLER_SIZES_AT_FIRST = 6  # the same before any node has a block: a blockSize may be much too large then
FREE_LEAVERS = 3  # this number of nodes may leave at any percentage, unless it is more than half of all
STRANGE_NODES = 3  # this number of nodes may always show none of their blocks
JOINED_AGAIN = 3  # this number of Nodes may have joined again, whatever their share
OLDEST_DUMP_FOR_RESIZE = 1  # the most days that a dump may be old: pods come and go
MOST_ADDED_NODES = 100_000  # the most nodes to add in one question: as many as the largest clusters have
LARGEST_WAVE = 100_000  # the most nodes in a wave: as many as the largest clusters have
NODES_WITHOUT_LOOP = 12  # a phase with more nodes may have loops: a person copies a dozen commands
NODES_IN_CHECK = 25  # the most nodes whose blocks a check lists; for more, the audit is the check
MOST_SUGGESTIONS = 100  # the most suggestions of a pool: a person reads a few, a program some

# What is printed or cut: findings and names in them. People read the first ones; the rest is counted
MOST_FINDINGS = 10_000
"""The errors after which a stage stops, and the most warnings and notes of one code that a stage lists."""
FINDINGS_SHOWN = 20  # the most findings of one code in a text for people: as a rule they have one cause
VERIFY_SHOWN = 100  # findings that `ipamc verify` shows
MOST_PLACES = 4  # the most nodes or objects of one finding whose places are listed
CALICO_PLACES = 5  # the most places of a finding about Calico
USERS_SHOWN = 3  # the most users of addresses in a finding
BLOCKS_SHOWN = 20  # the most blocks in a finding of a test
CLUSTERS_SHOWN = 20  # the most clusters that are named around one prefix
NODES_IN_COMMAND = 20  # the most nodes that a command names
NODES_SHOWN = 20  # the most nodes that a sentence names
POLICY_NODES_SHOWN = 20  # the most nodes that are listed for a policy
LABELS_SHOWN = 20  # the most labels that are written out
WORDS_SHOWN = 12  # the most words of a list in a message: a dozen
INPUT_SHOWN = 260  # the most characters of a piece of input in a message: enough for the longest valid name
VALUE_SHOWN = 60  # the most characters of a wrong value in a message, which says what the value should be
SELECTOR_SHOWN = 4096  # characters of a selector that is written out: thousands of pools may share one
VALIDATOR_SHOWN = 300  # the most characters of a message; a validator may quote a whole document
ERROR_SHOWN = 300  # characters of an error's text that are printed: a forge may answer with a page of HTML
OUTDATED_SHOWN = 5  # the most outdated files that a message names
OUTCOME_LINES = 20  # the most lines of each kind after an apply

# What is printed or cut: texts for a terminal, of some dozens of lines. JSON has everything
MESSAGE_LINES = 200  # lines of one message; then a number
TEXT_SHOWN = 2000  # the most characters of a text: names in the input may have any length
BEFORE_CARET = 60  # characters of a long line that are kept before the caret
AFTER_CARET = 100  # characters of a long line that are kept after the caret
WIDEST_PLAN_LINE = 140  # the most cells of a line; a longer one is wrapped
POOLS_SHOWN = 30  # pools of one cluster on a terminal; more are shown in a pipe, and by `--all`
RESERVED_SHOWN = 5  # the same for reserved CIDRs of a pool
REJECTED_SHOWN = 10  # the most rejected pools in the text
REASONS_SHOWN = 20  # the most reasons that `ipamc show --what-if` prints
ADDED_SHOWN = 2  # added nodes that are printed with their blocks, before the last one
OTHER_POOLS_SHOWN = 3  # the most other pools that are named
PREFIXES_SHOWN = 6  # the most prefixes of a pool and family in a plan; JSON has all
DEEPEST_SCHEMA = 12  # the most levels of a schema, which may refer to itself
COMMANDS_IN_LINE = 220  # the most characters of commands in a line; longer ones are only in the runbook

# What is printed or cut: comments, pictures, pages
LONGEST_PLAN_COMMENT = 60_000  # the most characters of a comment: GitHub takes 65,536, and bots add text
ROWS_TRIED = (100_000, 2_000, 1_000, 500, 200, 100, 50, 20, 10, 5, 2, 1, 0)
"""The most rows per list, tried one after the other until the comment fits."""
LEAST_ROWS = 5  # findings and names that are never omitted
NAMES_IN_LINE = 1_000  # characters of clusters' names in a command; longer lists go into a file
OPEN_ROWS = 10  # a table of changes with more rows is folded
MAP_ROWS = 120  # the most rows of all maps of a plan; a line counts the other rows with changes
MAP_OFFERS = 20  # the most pools that are listed for a group without reasons
LONGEST_SUBJECT = 200  # characters of a commit's subject; longer ones are cut

# What other programs take: GitHub and GitLab
LONGEST_COMMENT = 65_000
"""Characters of a comment: GitHub takes 65,536, GitLab more. `ipamc plan` stays below this by itself."""
GITHUB_JOBS = 256  # jobs of one matrix in one run (GitHub: usage limits)
GITLAB_JOBS = 200  # jobs of one `parallel: matrix` (GitLab, CI/CD YAML reference)
TARGET_IN_JOB = 200
"""Characters of a target in a job's name.
Where a name has more than 255, GitLab silently creates no pipeline (gitlab-org/gitlab#584573)."""
SHARDS_OF_JOB = 8  # the most shards that one job applies; a cluster with more gets a job for each shard
GITHUB_ANNOTATIONS = 10  # annotations of a kind that GitHub keeps of a step
SARIF_RESULTS = 25_000  # results of a run: GitHub refuses a file with more, and shows the first 5,000
FORGE_PAGES = 200  # pages of comments or issues that are read
LARGEST_ANSWER = 64 << 20
"""The most bytes of an answer: more than a page of the longest comments has (GitHub: 100 of 65,536
characters, GitLab: 10 of 1,000,000; a character has at most 6 bytes in JSON)."""
PATHS_IN_COMMAND = 500  # paths in one command of git: systems limit its length

# What other programs take: the apiserver, NetBox, routers
LARGEST_OBJECT = 1_400_000  # bytes of an object: etcd accepts requests of 1.5 MiB (--max-request-bytes)
LARGEST_CONFIG_MAP = 1 << 20  # the most bytes of a ConfigMap (Kubernetes: MaxSecretSize, 1 MiB)
LONGEST_EXPRESSION = 100_000  # the most characters of an expression: the limit of cel-go's parser
LONGEST_TEXT_OF_POLICY = 90_000  # characters of a text: kube-apiserver accepts expressions of 100,000
PAGE_OBJECTS = 500  # objects per answer, for the most numerous kinds: kubectl holds a whole answer in memory
NODES_LISTED_ALONE = 8  # the most nodes whose pods are listed per node; above, all pods are listed once
NAMES_IN_COMMAND = 100  # names in one `kubectl delete`
NETBOX_DESCRIPTION = 200  # the most characters of a description in NetBox
PREFIX_LIST_NAME = 63  # the most characters of a name: FRR allows 128, Junos 255

# How long one waits, in seconds where no other unit is named
LONGEST_WAIT = 86_400  # the longest time to wait that `ci apply` takes: a day
ERROR_WAITS = 3  # waiting times that an error may last: operators since 1.19 correct some themselves
KUBECTL_SECONDS = 600  # that one run of kubectl or kustomize may take; `ipamc ci apply --help` says so
WATCH_PAUSE = 2.0  # between a watch that ended early and a new list: the apiserver may be restarting
WATCH_EARLY = 0.5  # that a watch may end too early: client and server both measure
WATCH_GRACE = 30  # extra seconds until ipamc itself ends a watch that the apiserver does not end
RETRY_PAUSE = 0.5  # until the same is sent again
GIT_SECONDS = 600  # how long git may talk to a remote repository
REQUEST_SECONDS = 60  # the most seconds of a request, from the look-up of the host to the last byte
FORGE_SECONDS = 300  # to read all pages of comments or issues
PIPELINE_SECONDS = 60  # in which GitLab starts the pipeline of a push
PIPELINE_PAUSE = 3.0  # between two queries for the pipeline
CLEAN_UP_SECONDS = 2.0  # that a process has to clean up before it is killed
ORPHAN_SECONDS = 1.0  # that a task has to clean up, once the parent process is gone
STATUS_DELAY = 1.0  # of work before anything is shown
DUMP_SLACK = 600  # a dump may be older than a commit by this: kubelets write each five minutes; clocks differ
YOUNG_POD = 300  # before the end of a dump in which a pod may be newer than kinds that were listed before it
