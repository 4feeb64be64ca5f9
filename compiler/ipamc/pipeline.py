"""The whole compiler in one function: text in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct, field
from msgspec.structs import replace

from ipamc import address_space
from ipamc.assertions import run
from ipamc.check import admission, check, check_plan, masquerade
from ipamc.check.capacity import config_map_too_large
from ipamc.check.published import check_adopt, check_mode_change, check_published
from ipamc.check.published_ranges import check_published_ranges
from ipamc.check.selection import check_selection
from ipamc.lock.file import dumps, load
from ipamc.model.assertion import Assertion
from ipamc.model.cidr import Block
from ipamc.model.cilium.versions import taken_for
from ipamc.model.cluster import Cluster, Version
from ipamc.model.diagnostics import Diagnostic, Located, Log, Refused, Span
from ipamc.model.lock import Consent, Lock
from ipamc.model.plan import Plan
from ipamc.model.progress import phase
from ipamc.model.space import ClusterPrefixes, Surveyed
from ipamc.place import spaces
from ipamc.place.allocate.allocate import allocate
from ipamc.place.candidates import assign, shared_pools
from ipamc.place.quarantine import released_on
from ipamc.place.reconcile.reconcile import reconcile
from ipamc.read import space_index
from ipamc.read.locate import Texts, locate
from ipamc.read.parts import INDEX
from ipamc.read.read import read, read_shared
from ipamc.read.rendered import Rendered
from ipamc.read.rules import index_unreadable
from ipamc.render.arrange import arrange
from ipamc.render.verify import verify
from ipamc.render.yaml import emit


class Inputs(Struct, frozen=True, kw_only=True):
    """Everything that a compile depends on. Nothing else changes its output."""

    name: str  # the folder's name; the Cluster's `metadata.name` must equal it
    folder: str  # the folder, as the user would type it; a finding about the whole folder shows it
    sources: Mapping[str, bytes]  # input documents by path, as the user would type it
    shared: Mapping[str, bytes] = field(default_factory=dict)
    """Documents of kind Tests that stand beside the clusters, likewise."""
    not_shared: tuple[Diagnostic, ...] = ()  # findings about such files that are no inputs
    passed_over: tuple[Diagnostic, ...] = ()
    """Findings about files of the folder that are no inputs by their names."""
    untested: bool = False  # the tests are not made: the plan is looked at, and not written
    lock_path: str
    lock: bytes | None  # None: there is no lock file
    rendered: bool = False  # there is a `rendered/` beside the lock
    published: Mapping[str, bytes] = field(default_factory=dict)
    """Files of `rendered/` that tell what may run now, by path below it: see `is_looked_at`."""
    schemas: Mapping[str, str] = field(default_factory=dict)
    """JSON Schema texts by file name: for input documents, and for rendered objects."""
    spaces: Mapping[str, bytes] = field(default_factory=dict)
    """The indexes of address spaces beside the cluster, by path."""
    surveyed: Surveyed = ()
    """Of an address space: the clusters beside it that are of it, and those that may be."""
    templates: Mapping[str, str] = field(default_factory=dict)  # Jinja2 texts by file name
    members: tuple[Block, ...] | None = None
    """The addresses of the other clusters of its address space, by address, where what is rendered depends on
    them; None: nobody looked for them, or one of them cannot be read."""
    consent: Consent = field(default_factory=Consent)
    today: str = ""
    """ISO 8601 day in UTC, with which the lines of leavers are marked; "" where nothing is compiled."""
    locked: bool = False  # the lock is read-only: a stale one is refused
    assume: Version | None = None
    """The minor that a Cilium newer than the known ones is taken for, in this run."""

    def index_of(self, space: str) -> space_index.Index | None:
        """Return the index of an address space, with which its members are compared, if there is one."""
        for path, text in self.spaces.items():
            if space_index.space_of(path) == space:
                found = space_index.load_index(text, space)
                return found if isinstance(found, space_index.Index) else None
        return None

    @property
    def before(self) -> Rendered:
        """What an earlier compile rendered: the cluster may run with it."""
        return Rendered(self.published, f"{self.folder}/rendered")


class Compilation(Struct, frozen=True, kw_only=True):
    """The result of a compile."""

    files: Mapping[str, str]  # text by path below `rendered/`
    lock: str
    plan: Plan
    diagnostics: tuple[Located, ...]  # warnings and notes, located, in order of file, line and column
    index: Mapping[str, tuple[space_index.IndexLine, ...]] = field(default_factory=dict)
    """The lines that address spaces are to have of this cluster, by path of the index, where they differ."""


class MadeTests(Struct, frozen=True, kw_only=True):
    """The tests of a cluster, and what became of them."""

    results: tuple[run.TestResult, ...]
    """Tests of the cluster, then those of files beside it for other clusters. Their findings are located."""
    places: tuple[Span, ...]  # where each of them stands


def load_cluster(inputs: Inputs) -> tuple[Cluster, Lock]:
    """Read a cluster and its lock, and check them; place nothing, read no tests. Raises Refused."""
    with _located(inputs):
        return _load(inputs, Log(), tests=False)


def _load(inputs: Inputs, log: Log, *, tests: bool) -> tuple[Cluster, Lock]:
    log.add(inputs.passed_over)
    # Text -> model, whatever dialect it came in.
    read_cluster = log.keep(
        read(inputs.name, inputs.folder, inputs.sources, inputs.schemas, spaces=inputs.spaces, tests=tests)
    )
    # A Cilium that is newer than what is known is taken for another by consent alone.
    cluster = taken_for(read_cluster, inputs.assume)
    # Pools are disjoint, and the versions have what the cluster asks for.
    log.add(check(cluster))
    # What earlier compiles promised.
    phase("reading the lock")
    lock = log.keep(load(inputs.lock, inputs.lock_path, cluster, inputs.consent, rendered=inputs.rendered))
    return cluster, lock


def _shared(inputs: Inputs, log: Log) -> tuple[Assertion, ...]:
    """Return the tests of files beside the cluster, also those that do not hold for it."""
    return log.keep(read_shared(inputs.shared, inputs.schemas)) if inputs.shared else ()


def compile_cluster(inputs: Inputs) -> Compilation:
    """Do everything that the compiler does, in order. Pure. Raises Refused with all diagnostics."""
    log = Log()
    with _located(inputs):
        plan, before = _plan(inputs, log)
        # What the documents of kind Tests demand.
        phase("testing")
        if plan.cluster.tests:
            log.keep(run.run_tests(plan, inputs.today))
        if plan.cluster.is_space:
            # Members -> what each of them occupies now.
            lines = spaces.index_lines(spaces.with_given(_members(inputs), plan.lock.lines))
            files, index = {INDEX: space_index.dump_index(inputs.name, lines)}, {}
        else:
            # What the cluster occupies, among the others of its address space.
            index = _beside_others(inputs, plan, log)
            # Plan -> objects by file -> text by file.
            space = inputs.index_of(plan.cluster.address_space)
            others = None
            if plan.cluster.masquerade:
                others = space.others(inputs.name) if space else inputs.members
                log.add(masquerade.check_masquerading(plan, others))
            phase("rendering")
            arranged = arrange(plan, before, others or ())
            files = emit(arranged, inputs.templates)
            # What the apiserver has no room for, and what no template may do.
            phase("checking what was rendered")
            policies = admission.policy_too_large(plan.cluster, files) if plan.cluster.admission.used else ()
            log.add((*config_map_too_large(plan.cluster, files), *policies))
            log.add(verify(arranged, files, inputs.schemas, f"{inputs.folder}/rendered"))
    found = locate(log.diagnostics, _texts(inputs))
    return Compilation(files=files, lock=dumps(plan.lock), plan=plan, diagnostics=found, index=index)


def make_tests(inputs: Inputs) -> MadeTests:
    """Do what a compile does until the tests are made; render nothing, and refuse nothing by a failed test.
    Raises Refused where there is no plan to test, or some tests cannot be made.
    """
    log = Log()
    with _located(inputs):
        plan, _ = _plan(inputs, log)
        phase("testing")
        made, found = run.run_tests(plan, inputs.today)
        if len(made) < len(plan.cluster.tests):
            log.add(found)
    results = (*made, *run.elsewhere(plan.cluster, _shared(inputs, Log())))
    sources = _texts(inputs)
    texts = Texts(sources, [result.test.at for result in results])
    located = (
        replace(result, findings=locate(result.findings, sources), idle=locate(result.idle, sources))
        for result in results
    )
    return MadeTests(results=tuple(located), places=tuple([texts.span(each.test.at) for each in results]))


def _plan(inputs: Inputs, log: Log) -> tuple[Plan, Rendered]:
    """Do everything up to a plan that may be rendered."""
    before = inputs.before
    cluster, lock = _load(inputs, log, tests=not inputs.untested)
    if not inputs.untested and (cluster.tests or inputs.shared or inputs.not_shared):
        # All tests that hold for the cluster.
        log.add(inputs.not_shared)
        cluster = replace(cluster, tests=tuple(log.keep(run.of_cluster(cluster, _shared(inputs, log)))))
    if cluster.is_space:
        # Pools of clusters are its nodes.
        log.add(address_space.check_members(cluster, inputs.surveyed))
        log.add(address_space.check_together(spaces.with_given(_members(inputs), lock.lines)))
        cluster = spaces.with_members(cluster, lock, _members(inputs), _former(inputs))
    log.add(check_mode_change(cluster, lock, inputs.lock, before))
    # Node -> its pools in order, with sizes.
    phase("placing")
    wants = assign(cluster)
    # Selectors select somebody.
    log.add(check_selection(cluster, wants))
    # What was rendered before and cannot change.
    phase("reading what was rendered")
    shared = shared_pools(cluster, wants, before.pools)
    log.add(check_published(cluster, wants, shared, lock, before))
    phase("placing")
    # Node -> its held, pending and quarantined lines, and what it still needs.
    consent, today = inputs.consent, inputs.today
    reconciled = reconcile(
        cluster, wants, lock, consent, today, locked=inputs.locked, shared=shared, rendered=before
    )
    state = log.keep(reconciled)
    # What nodes need -> blocks.
    plan = log.keep(allocate(cluster, wants, state, today))
    # Capacity, maxPods, limits of the mode, drift.
    phase("checking")
    released = released_on(cluster, plan.lock, today)
    log.add((*check_plan(plan, released), *check_published_ranges(plan, before)))
    # What the operator was told it may give out, and still does.
    log.add(check_adopt(plan, before))
    return plan, before


def _members(inputs: Inputs) -> list[ClusterPrefixes]:
    every = (found for found in inputs.surveyed if isinstance(found, ClusterPrefixes))
    return [found for found in every if found.space == inputs.name]


def _former(inputs: Inputs) -> Iterator[space_index.IndexLine]:
    """Yield the lines of the index that an earlier compile of a space wrote."""
    found = space_index.load_index(inputs.published.get(INDEX, b""), inputs.name)
    return (line for _, line in found.lines) if isinstance(found, space_index.Index) else iter(())


def _beside_others(inputs: Inputs, plan: Plan, log: Log) -> dict[str, tuple[space_index.IndexLine, ...]]:
    """Compare a cluster with the indexes of address spaces; return its lines where they are to differ.
    Lines of ranges that a space gave are the space's own to change.
    """
    changed: dict[str, tuple[space_index.IndexLine, ...]] = {}
    for path, text in inputs.spaces.items():
        name, space = space_index.space_of(path), plan.cluster.address_space
        found = space_index.load_index(text, name)
        if not isinstance(found, space_index.Index):
            log.add([index_unreadable(path, found)] if name == space else [])
            continue
        before = found.of(inputs.name)
        own: Iterable[space_index.IndexLine] = ()
        if found.space == space:
            mine = address_space.prefixes_of(
                plan.cluster, address_space.held_lines(plan.lock), inputs.lock_path, inputs.lock
            )
            log.add(address_space.check_index(mine, path, found))
            own = spaces.index_lines(
                [replace(mine, prefixes=tuple(one for one in mine.prefixes if not one.number))]
            )
        now = [*(line for line in before if line.range), *own]
        if set(now) != set(before):
            changed[path] = tuple(now)
    return changed


def _texts(inputs: Inputs) -> Mapping[str, bytes]:
    beside = [found.texts for found in inputs.surveyed if isinstance(found, ClusterPrefixes)]
    if not (inputs.shared or beside):
        return inputs.sources
    return {**inputs.shared, **{path: text for own in beside for path, text in own.items()}, **inputs.sources}


@contextmanager
def _located(inputs: Inputs) -> Iterator[None]:
    """Give every finding of a Refused its line and column."""
    try:
        yield
    except Refused as refused:
        raise Refused(locate(refused.diagnostics, _texts(inputs))) from None
