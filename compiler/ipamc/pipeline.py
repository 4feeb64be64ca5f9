"""The whole compiler in one function: text in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from ipamc.assertions import run
from ipamc.check import address_space, admission, check, check_plan, network
from ipamc.check.acknowledged import Acknowledging, hides_nothing
from ipamc.check.capacity import config_map_too_large, nearly_full
from ipamc.check.drift import find_drift, pin_not_held
from ipamc.check.pools import check_ranges
from ipamc.check.published import check_adopt, check_mode_change, check_published, check_waiting
from ipamc.check.published_ranges import check_published_ranges
from ipamc.check.selection import check_selection, with_cilium_alone
from ipamc.lock.consent import with_selected
from ipamc.lock.file import dumps, load, mode_of
from ipamc.model.assertion import Assertion
from ipamc.model.cilium.versions import taken_for
from ipamc.model.cluster import AddressSpace, Cluster, Scheme, SpaceMode, Version
from ipamc.model.diagnostics import Diagnostic, Located, Log, Refused, Span
from ipamc.model.lock import Consent, Lock
from ipamc.model.plan import Plan
from ipamc.model.progress import phase
from ipamc.model.space import ClusterPrefixes, Surveyed
from ipamc.place import spaces
from ipamc.place.allocate.allocate import allocate
from ipamc.place.allocate.maximum import up_to_maximum
from ipamc.place.candidates import assign, shared_pools
from ipamc.place.quarantine import released_on
from ipamc.place.reconcile.reconcile import reconcile
from ipamc.read import space_index
from ipamc.read.locate import Texts, locate
from ipamc.read.parts import INDEX
from ipamc.read.read import read_folder, read_shared
from ipamc.read.rendered import Rendered
from ipamc.read.rules import index_unreadable
from ipamc.render.arrange import arrange
from ipamc.render.verify import verify
from ipamc.render.yaml import emit

S = TypeVar("S", bound=Scheme)


class Inputs(Struct, frozen=True, kw_only=True):
    """Everything that a compile depends on. Nothing else changes its output."""

    name: str  # the folder's name; the Cluster's `metadata.name` must equal it
    folder: str  # the folder, as the user would type it; a finding about the whole folder shows it
    sources: Mapping[str, bytes]  # input documents by path, as the user would type it
    shared: Mapping[str, bytes] = field(default_factory=dict)
    """Documents of kind Tests beside the clusters, by path."""
    not_shared: tuple[Diagnostic, ...] = ()  # findings about such files that are irregular
    passed_over: tuple[Diagnostic, ...] = ()
    """Findings about files of the folder whose names are not those of inputs."""
    skip_tests: bool = False  # do not run the tests: the plan is read, and not written
    lock_path: str
    lock: bytes | None  # None: there is no lock file
    rendered: bool = False  # there is a `rendered/` beside the lock
    lost: bool = False  # there is no lock, the last commit has one, and nobody removed it by git
    published: Mapping[str, bytes] = field(default_factory=dict)
    """Files of `rendered/` that show which blocks may be in use, by path below it: see `is_looked_at`."""
    schemas: Mapping[str, str] = field(default_factory=dict)
    """JSON Schema texts by file name: for input documents, and for rendered objects."""
    spaces: Mapping[str, bytes] = field(default_factory=dict)
    """The indexes of address spaces beside the cluster, by path."""
    surveyed: Surveyed = ()
    """For an address space: the clusters beside it that belong to it, and those that may."""
    templates: Mapping[str, str] = field(default_factory=dict)  # Jinja2 texts by file name
    consent: Consent = field(default_factory=Consent)
    today: str = ""
    """ISO 8601 day in UTC, written into the lines of leavers; "" if nothing is compiled."""
    locked: bool = False  # the lock is read-only: a stale one is refused
    dumped: frozenset[str] = frozenset()  # the kinds of the dump from which an import just made the sources
    assume: Version | None = None
    """The known minor to assume in this run for a Cilium that is newer than all known ones."""

    def index_of(self, space: str) -> space_index.Index | None:
        """Return the index of an address space with which its members are compared, or None."""
        for path, text in self.spaces.items():
            if space_index.space_of(path) == space:
                found = space_index.load_index(text, space)
                return found if isinstance(found, space_index.Index) else None
        return None

    @property
    def indexed(self) -> list[space_index.IndexLine]:
        """The lines of the index that an earlier compile of an address space wrote."""
        text = self.published.get(INDEX)
        found = space_index.load_index(text, self.name) if text else self.index_of(self.name)
        return [line for _, line in found.lines] if found and not isinstance(found, str) else []

    @property
    def before(self) -> Rendered:
        """The output of an earlier compile, with which the cluster may run."""
        return Rendered(self.published, f"{self.folder}/rendered")


class Compilation(Struct, frozen=True, kw_only=True):
    """The result of a compile."""

    files: Mapping[str, str]  # text by path below `rendered/`
    lock: str
    plan: Plan
    diagnostics: tuple[Located, ...]  # warnings and notes, located, in order of file, line and column
    index: Mapping[str, tuple[space_index.IndexLine, ...]] = field(default_factory=dict)
    """The cluster's new lines in the indexes of address spaces, by path of the index, where they change."""


class TestRun(Struct, frozen=True, kw_only=True):
    """The tests of a cluster, and their results."""

    results: tuple[run.TestResult, ...]
    """Tests of the cluster, then shared tests for other clusters. Their findings are located."""
    places: tuple[Span, ...]  # the place of each


def load_cluster(inputs: Inputs) -> tuple[Cluster, Lock]:
    """Read a cluster and its lock as `load_folder` does. Raises Refused, TypeError for an address space."""
    cluster, lock = load_folder(inputs)
    if isinstance(cluster, AddressSpace):
        raise TypeError(f"{inputs.folder} is an address space")
    return cluster, lock


def load_folder(inputs: Inputs) -> tuple[AddressSpace | Cluster, Lock]:
    """Read a cluster or an address space and its lock, and check them; place nothing, read no tests.
    Raises Refused.
    """
    log = Log()
    with _located(inputs, log):
        cluster, lock = _load(inputs, log, tests=False)
        if not isinstance(cluster, AddressSpace):
            return cluster, lock
        if not inputs.surveyed:
            return spaces.with_others(cluster, inputs.indexed), lock
        return spaces.with_members(cluster, lock, _members(inputs, lock), inputs.indexed), lock


def _load(inputs: Inputs, log: Log, *, tests: bool) -> tuple[AddressSpace | Cluster, Lock]:
    log.add(inputs.passed_over)
    # Text -> model, from any dialect.
    kind = "AddressSpace" if mode_of(inputs.lock) == SpaceMode.SPACE else "Cluster"
    what = inputs.name, inputs.folder, inputs.sources, inputs.schemas
    cluster = log.keep(read_folder(*what, spaces=inputs.spaces, tests=tests, kind=kind))
    if isinstance(cluster, Cluster):
        # A Cilium that is newer than all known ones is treated as another only by consent.
        cluster = taken_for(cluster, inputs.assume)
    # What earlier compiles promised.
    phase("reading the lock")
    known = inputs.lock_path, cluster, inputs.consent
    lost = inputs.lost and not inputs.dumped
    lock, found = load(inputs.lock, *known, rendered=inputs.rendered, committed=lost)
    if isinstance(cluster, Cluster):
        # Nodes as kubectl prints them: without Cilium they get no block.
        cluster = log.keep(with_cilium_alone(cluster, lock))
    # Pools are disjoint, and the versions support what the cluster needs.
    log.acknowledge = Acknowledging(cluster, lock.lines).mark
    about = check(cluster) if isinstance(cluster, Cluster) else check_ranges(cluster.pools)
    log.add((*about, *found))
    return cluster, lock


def compile_cluster(inputs: Inputs) -> Compilation:
    """Run all stages of the compiler in order. Pure. Raises Refused with all diagnostics.
    The folder of an address space is compiled by `compile_space`.
    """
    log = Log()
    with _located(inputs, log):
        cluster, lock = _load(inputs, log, tests=not inputs.skip_tests)
        if isinstance(cluster, AddressSpace):
            return compile_space(cluster, lock, inputs, log)
        before = inputs.before
        plan = _plan(cluster, lock, inputs, before, log)
        # The tests in documents of kind Tests.
        phase("testing")
        if plan.cluster.tests:
            log.keep(run.run_tests(plan, inputs.today))
        # The cluster's addresses, compared with the others of its address space.
        index = _beside_others(inputs, plan, log)
        others = None
        if cluster.masquerade:
            space = inputs.index_of(cluster.address_space)
            others = space.others(inputs.name) if space else None
            log.add(network.check_masquerading(plan, others))
        # Plan -> objects by file -> text by file.
        phase("rendering")
        arranged = arrange(plan, before, others or ())
        files = emit(arranged, inputs.templates)
        # Limits of the apiserver, and errors of templates.
        phase("checking what was rendered")
        policies = admission.policy_too_large(cluster, files) if cluster.admission.used else ()
        log.add((*config_map_too_large(cluster, files), *policies))
        log.add(verify(arranged, files, inputs.schemas, f"{inputs.folder}/rendered"))
        if not inputs.skip_tests:
            log.add(hides_nothing(cluster, plan.lock.lines, log.diagnostics))
    found = locate(log.acknowledge(log.diagnostics), texts_of(inputs))
    return Compilation(files=files, lock=dumps(plan.lock), plan=plan, diagnostics=found, index=index)


def plan_edit(cluster: Cluster, lock: Lock, inputs: Inputs) -> Plan:
    """Plan a cluster as an edit leaves it, by every rule up to the plan; render nothing. Raises Refused."""
    log = Log()
    with _located(inputs, log):
        log.add(check(cluster))
        return _plan(cluster, lock, inputs, inputs.before, log)


def compile_space(space: AddressSpace, lock: Lock, inputs: Inputs, log: Log) -> Compilation:
    """Run the stages from an address space as read to its index. Raises Refused."""
    plan = _plan_space(space, lock, inputs, log)
    phase("testing")
    if plan.scheme.tests:
        log.keep(run.run_tests(plan, inputs.today))
    # Members -> the addresses that each occupies now.
    lines = spaces.index_lines(_members(inputs, plan.lock))
    files = {INDEX: space_index.dump_index(inputs.name, lines)}
    found = locate(log.diagnostics, texts_of(inputs))
    return Compilation(files=files, lock=dumps(plan.lock), plan=plan, diagnostics=found)


def run_tests_only(inputs: Inputs) -> TestRun:
    """Run a compile up to the tests; render nothing, and refuse nothing because of a failed test.
    Raises Refused if there is no plan to test, or some tests cannot run.
    """
    log = Log()
    with _located(inputs, log):
        cluster, lock = _load(inputs, log, tests=True)
        if isinstance(cluster, AddressSpace):
            plan = _plan_space(cluster, lock, inputs, log)
        else:
            plan = _plan(cluster, lock, inputs, inputs.before, log)
        phase("testing")
        made, found = run.run_tests(plan, inputs.today)
        if len(made) < len(plan.scheme.tests):
            log.add(found)
    results = (*made, *run.elsewhere(plan.scheme, _shared(inputs, Log())))
    sources = texts_of(inputs)
    texts = Texts(sources, [result.test.at for result in results])
    located = (
        replace(result, findings=locate(result.findings, sources), idle=locate(result.idle, sources))
        for result in results
    )
    return TestRun(results=tuple(located), places=tuple([texts.span(each.test.at) for each in results]))


def _plan(cluster: Cluster, lock: Lock, inputs: Inputs, before: Rendered, log: Log) -> Plan:
    """Run the stages up to a plan that may be rendered. `before` remembers the files that it has read."""
    consent, today = with_selected(cluster, inputs.consent), inputs.today
    cluster = _with_shared_tests(cluster, inputs, log)
    log.add(check_mode_change(cluster, lock, inputs.lock, before))
    # Node -> its pools in order, with sizes.
    phase("placing")
    wants = assign(cluster)
    # Selectors select nodes.
    log.add(check_selection(cluster, wants))
    # Rendered files that cannot change.
    phase("reading what was rendered")
    shared = shared_pools(cluster, wants, before.pools)
    log.add(check_published(cluster, wants, shared, lock, before))
    phase("placing")
    # Node -> its held, pending and quarantined lines, and what it still needs.
    locked, dumped = inputs.locked, inputs.dumped
    reconciled = reconcile(
        cluster, wants, lock, consent, today, locked=locked, shared=shared, rendered=before, dumped=dumped
    )
    state = log.keep(reconciled)
    # What nodes need -> blocks.
    plan = log.keep(allocate(cluster, wants, state, today))
    if cluster.groups:
        plan = log.keep(up_to_maximum(plan, state, today))
    log.acknowledge = Acknowledging(cluster, plan.lock.lines).mark
    # Capacity, maxPods, limits of the mode, drift.
    phase("checking")
    released = released_on(cluster, plan.lock, today)
    drifted = find_drift(plan)
    plan = replace(plan, disputed=drifted.disputed())
    log.add((*check_plan(plan, released, drifted), *check_published_ranges(plan, before)))
    # CIDRs that the operator was given, and still gives out.
    log.add((*check_adopt(plan, before), *check_waiting(plan, released, before)))
    return plan


def _plan_space(space: AddressSpace, lock: Lock, inputs: Inputs, log: Log) -> Plan:
    """Run the stages up to the ranges that an address space gives."""
    consent, today = with_selected(space, inputs.consent), inputs.today
    space = _with_shared_tests(space, inputs, log)
    # Pools of clusters are its nodes.
    log.add(address_space.check_members(space, inputs.surveyed))
    members = _members(inputs, lock)
    log.add(address_space.check_together(members))
    space = spaces.with_members(space, lock, members, inputs.indexed)
    log.add(address_space.check_renamed(space, lock, members, consent))
    log.add(check_mode_change(space, lock, inputs.lock, inputs.before))
    phase("placing")
    wants = assign(space)
    state = log.keep(reconcile(space, wants, lock, consent, today, locked=inputs.locked))
    plan = log.keep(allocate(space, wants, state, today))
    phase("checking")
    log.add((*pin_not_held(plan), *nearly_full(space, released_on(space, plan.lock, today))))
    return plan


def _with_shared_tests(scheme: S, inputs: Inputs, log: Log) -> S:
    """Return a cluster or an address space with all tests that apply to it."""
    if inputs.skip_tests or not (scheme.tests or inputs.shared or inputs.not_shared):
        return scheme
    log.add(inputs.not_shared)
    return replace(scheme, tests=tuple(log.keep(run.of_cluster(scheme, _shared(inputs, log)))))


def _shared(inputs: Inputs, log: Log) -> tuple[Assertion, ...]:
    """Return the tests of files beside the cluster, including those for other clusters."""
    return log.keep(read_shared(inputs.shared, inputs.schemas)) if inputs.shared else ()


def _members(inputs: Inputs, lock: Lock) -> list[ClusterPrefixes]:
    """Return the members of an address space, with the ranges that its lock gives them."""
    every = (found for found in inputs.surveyed if isinstance(found, ClusterPrefixes))
    mine = [found for found in every if found.space == inputs.name]
    return spaces.with_given(mine, lock.lines, inputs.consent)


def _beside_others(inputs: Inputs, plan: Plan, log: Log) -> dict[str, tuple[space_index.IndexLine, ...]]:
    """Compare a cluster with the indexes of address spaces; return its lines there that must change.
    Lines of ranges that a space gave can change only in the space.
    """
    changed: dict[str, tuple[space_index.IndexLine, ...]] = {}
    space = plan.cluster.address_space
    if space and space not in map(space_index.space_of, inputs.spaces):
        log.add(address_space.without_index(plan.cluster))
    for path, text in inputs.spaces.items():
        name = space_index.space_of(path)
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


def texts_of(inputs: Inputs) -> Mapping[str, bytes]:
    """Return the texts that places of findings refer to, by path."""
    beside = [found.texts for found in inputs.surveyed if isinstance(found, ClusterPrefixes)]
    if not (inputs.shared or beside):
        return inputs.sources
    return {**inputs.shared, **{path: text for own in beside for path, text in own.items()}, **inputs.sources}


@contextmanager
def _located(inputs: Inputs, log: Log) -> Iterator[None]:
    """Add line and column to every finding of a Refused, and mark those that are acknowledged."""
    try:
        yield
    except Refused as refused:
        raise Refused(locate(log.acknowledge(refused.diagnostics), texts_of(inputs))) from None
