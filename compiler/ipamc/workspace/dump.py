"""Dumps and tables from the disk and from stdin; a dump also with gzip, or as the zip of cilium-sysdump.

The user names these files, so they may be links and pipes. What is in them may be hostile: nothing of a zip
is unpacked to the disk, and nothing is read without a limit. Dumps are read in pieces.

Jobs make a dump of their own by kubectl, one List in JSON. Of Pods it has only the fields that are read here.
Environment variables and arguments of applications, which may be secrets, reach no file of a job.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import urllib.parse
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

import msgspec

from ipamc.model.diagnostics import Diagnostic
from ipamc.model.dump import Dump
from ipamc.model.limits import (
    LARGEST_DUMP,
    LARGEST_ROUTES,
    LARGEST_TABLE,
    PAGE_OBJECTS,
    UNPACKED_RATIO,
    UNPACKED_SMALL,
    ZIP_FILES,
    ZIP_HEAD,
)
from ipamc.model.progress import reached, reading
from ipamc.read.dump import shapes
from ipamc.read.dump.addresses import OF_OTHERS
from ipamc.read.dump.kinds import KINDS, OTHERS
from ipamc.read.dump.read import Source, read_dump
from ipamc.read.rules import DUMP
from ipamc.workspace.failure import EnvironmentFailure, Misnamed

if TYPE_CHECKING:
    from ipamc.importing.machines import Machines
    from ipamc.model.dump import Table as RoutingTable
    from ipamc.read.csv_table import Table, Wanted
    from ipamc.review.live.rights import Listed
    from ipamc.workspace.kubectl import Kube

STDIN = "-"
_CHUNK = 1 << 19  # bytes of a piece: it stays in the processor's cache while its items are decoded
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the first bytes of a zip, and of an empty zip
_GZIP = b"\x1f\x8b"
_KINDS = "|".join(sorted({kind for _, kind in (*KINDS, *OTHERS, *OF_OTHERS)}))
_WANTED = re.compile(rf"""^[ -]*["']?kind["']?: *["']?({_KINDS})(List)?\b""".encode(), re.MULTILINE)
"""Matches the kind near the beginning of those documents of a zip that ipamc reads."""
_NAMED = re.compile(
    r"(k8s-)?(nodes|no|pods|po|services|svc)-|(cilium(nodes|endpoints|nodeconfigs)|cn|cep|cilium-(cm|config))-|"
    r"cilium(-operator-deploy|-daemonset|bgp(advertisements|clusterconfigs|nodeconfigo|peer))|"
    r"[a-z]*(ippools|clustercidrs|servicecidrs|ipamblocks|blockaffinities|ipreservations)\b"
).match
"""Names of typed lists in a zip, whose kind follows the items (cilium-cli, sysdump/constants.go)."""
_OBJECTS = re.compile(rb'\s*\{\s*"(apiVersion|kind|items|metadata)"\s*:').match  # the beginning of such JSON
_OF_CLUSTERS = ("cluster.yaml", "ipam.lock")  # files that clusters have
_SHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # the first bytes of files of Excel and LibreOffice


def load_dump(
    files: Sequence[str], *, nodes: bool = True, every: bool = False, values: str | None = None
) -> tuple[Dump, list[Diagnostic]]:
    """Read dumps (`-` is stdin); return their contents as one, and the warnings.
    With `nodes` a dump without Nodes is refused; `every`: see `read_dump`; `values`: see `with_values`.
    Raises Refused for wrong contents, EnvironmentFailure and OSError for unreadable files.
    """
    dump, found = read_dump(_sources(files), nodes=nodes, every=every)
    if values is None:
        return dump, found
    from ipamc.read.dump.helm_values import with_values

    dump, more = with_values(dump, *_text(values))
    return dump, [*found, *more]


def load_machines(files: Sequence[str], cluster: str, labels: Sequence[str]) -> list[Machines]:
    """Return the machines in tables, in inventories of Ansible and in other files, as objects of a cluster.
    No file is stdin, which has objects. Raises Refused, OSError, EnvironmentFailure.
    """
    from ipamc.importing.machines import COLUMNS, SUFFIXES, of_inventory, of_objects, of_table
    from ipamc.read.ansible import IS_INVENTORY
    from ipamc.read.dump.machines import COMMAND, read_machines

    tables = [path for path in files if path.endswith(SUFFIXES)]
    found = [of_table(load_table(path, COLUMNS, others=True)) for path in tables]
    others = [path for path in files or (STDIN,) if path not in tables]
    named = [path for path in others if Path(path).is_file() and IS_INVENTORY(_start(path, _CHUNK)[1])]
    found += [of_inventory(*_text(path)) for path in named]
    if objects := [path for path in others if path not in named]:
        machines = read_machines(_sources(objects, COMMAND))
        found.append(of_objects(*machines, objects[0], cluster, labels))
    return found


def _text(path: str) -> tuple[str, bytes]:
    """Return how findings show a file, `-` is stdin, and its bytes. Raises OSError, EnvironmentFailure."""
    shown, data = _start(path, LARGEST_TABLE + 1)
    if len(data) > LARGEST_TABLE:
        raise EnvironmentFailure(f"{path} has more than {LARGEST_TABLE:,} bytes")
    return shown, data


def load_table(path: str, wanted: Wanted, *, others: bool = False) -> Table:
    """Read columns of a CSV file, `-` is stdin, up to its limit.
    Raises Refused, OSError, EnvironmentFailure.
    """
    from ipamc.read.csv_table import read_table

    shown, data = _start(path, LARGEST_TABLE + 1)
    if path != STDIN and data.startswith(_SHEETS):
        csv = PurePath(path).with_suffix(".csv")
        raise EnvironmentFailure(
            f"{path} is a spreadsheet, not CSV: save its sheet as {csv} and name that file"
        )
    return read_table(shown, data, wanted, others=others)


def load_routes(files: Sequence[str], dumps: Sequence[str]) -> list[RoutingTable]:
    """Read the routing tables of routers, one a file; `-` is stdin. Raises Refused, OSError,
    EnvironmentFailure. `dumps` are the files of the dump; naming one of them as a table is an error.
    """
    from ipamc.read.routes import read_routes

    if len({*files, *dumps}) < len(files) + len(dumps):
        raise EnvironmentFailure("a routing table is named twice, or is the dump: name each file once")
    return [read_routes(*_start(path, LARGEST_ROUTES + 1)) for path in files]


def _start(path: str, most: int) -> tuple[str, bytes]:
    """Return how findings show a file that the user names, or stdin, and its first bytes."""
    if path == STDIN:
        return "<stdin>", sys.stdin.buffer.read(most)
    with open(path, "rb") as file:  # noqa: PTH123 - as the user types it
        return path, file.read(most)


def refuse_for_cluster(cluster: str, files: Sequence[str], verb: str) -> None:
    """Raise Misnamed if the user typed a dump in the place of the cluster."""
    if Path(cluster).is_file():
        others = [path for path in files if Path(path).is_file()]
        name = next((path for path in files if path not in others and path != STDIN), "NAME")
        typed = shlex.join(["ipamc", *verb.split(), name, cluster, *others])
        raise Misnamed(f"{cluster} is a file, and the cluster comes first: {typed}", cluster)


def refuse_cluster(files: Sequence[str], command: str) -> None:
    """Raise Misnamed if the user typed a cluster in the place of a dump; `command` is for clusters."""
    for word in files:
        if any(Path(path, each).is_file() for path in (word, f"clusters/{word}") for each in _OF_CLUSTERS):
            raise Misnamed(f"{word} is a cluster, not a dump: {command} {shlex.quote(word)}", word)


def _sources(files: Sequence[str], command: str = DUMP) -> Iterator[Source]:
    if len(set(files)) < len(files):
        raise EnvironmentFailure("a file of the dump is named twice: name each once")
    for path in files:
        if path == STDIN:
            reading("stdin")
            yield "<stdin>", _pieces("<stdin>", sys.stdin.buffer)
            continue
        if Path(path).is_dir():
            inside = shlex.join(sorted(map(str, Path(path).glob("*.json")))[:4])
            files_in_it = "name the files in it, or the zip of a sysdump"
            raise EnvironmentFailure(f"{path} is a folder: {files_in_it}{f': {inside}' if inside else ''}")
        if not Path(path).exists():
            raise EnvironmentFailure(f"there is no file {path}: make a dump, {command} > {shlex.quote(path)}")
        with open(path, "rb") as file:  # noqa: PTH123 - as the user types it
            if file.seekable():
                start = file.read(len(_ZIP[0]))
                file.seek(0)
                if start in _ZIP:
                    yield from _of_zip(path, file)
                    continue
            reading(PurePath(path).name, os.fstat(file.fileno()).st_size)
            yield path, _pieces(path, file)


def _pieces(path: str, file: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a file; a gzip is unpacked. Raises EnvironmentFailure."""
    pieces = _within(path, _read(file))
    if (first := next(pieces, b"")).startswith(_ZIP):
        raise EnvironmentFailure(f"{path} is a zip, which ipamc reads only from a file: name the file")
    whole = chain((first,), pieces)
    return _unpacked(path, whole) if first.startswith(_GZIP) else whole


def _read(file: IO[bytes]) -> Iterator[bytes]:
    total = 0
    while chunk := file.read(_CHUNK):
        yield chunk
        reached(total := total + len(chunk))


def _within(path: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pass pieces on. Raises EnvironmentFailure above LARGEST_DUMP bytes."""
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > LARGEST_DUMP:
            more = f"more than {LARGEST_DUMP:,} bytes"
            raise EnvironmentFailure(f"{path} has {more}: make a dump of fewer kinds")
        yield piece


def _unpacked(path: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the contents of a gzip of any number of members.
    Raises EnvironmentFailure if it is damaged or cut off.
    """
    engine = zlib.decompressobj(wbits=31)
    read = unpacked = 0
    try:
        for piece in pieces:
            packed = piece
            read += len(piece)
            while packed:
                if engine.eof:
                    engine = zlib.decompressobj(wbits=31)
                chunk = engine.decompress(packed, _CHUNK)
                _refuse_bomb(path, unpacked := unpacked + len(chunk), read)
                yield chunk
                packed = engine.unused_data.lstrip(b"\0") if engine.eof else engine.unconsumed_tail
    except zlib.error as problem:
        raise EnvironmentFailure(f"{path} is a damaged gzip: {problem}") from None
    if not engine.eof:
        raise EnvironmentFailure(f"{path} is a truncated gzip: make it again")


def _refuse_bomb(path: str, unpacked: int, packed: int) -> None:
    """Raise EnvironmentFailure for a size, announced or counted, that no dump unpacks to."""
    most = min(LARGEST_DUMP, max(UNPACKED_SMALL, UNPACKED_RATIO * packed))
    if unpacked > most:
        raise EnvironmentFailure(f"{path} unpacks to more than {most:,} bytes: name files of it, unpacked")


def _of_zip(path: str, file: IO[bytes]) -> Iterator[Source]:
    """Yield the documents of a zip: its YAML and JSON files of kinds that ipamc reads, by name."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > ZIP_FILES:
                raise EnvironmentFailure(
                    f"{path} has {len(members):,} files, more than {ZIP_FILES:,}: it is not a dump"
                )
            for name in (member.filename for member in members):
                parts = PurePosixPath(name.replace("\\", "/")).parts
                if ".." in parts or name.startswith(("/", "\\")) or (parts and parts[0].endswith(":")):
                    climbs = f"has a file {name!r} outside its own folder"
                    raise EnvironmentFailure(f"{path} {climbs}: it is not a sysdump")
            total = 0
            for member in sorted(members, key=lambda member: member.filename):
                if member.is_dir() or not member.filename.endswith((".yaml", ".yml", ".json")):
                    continue
                total += member.file_size
                _refuse_bomb(path, total, os.fstat(file.fileno()).st_size)
                with archive.open(member) as opened:
                    start = opened.read(ZIP_HEAD)
                    named = _NAMED(PurePosixPath(member.filename).name)
                    if named or _OBJECTS(start) or _WANTED.search(start):
                        shown = f"{path}/{member.filename}"
                        reading(f"{PurePath(path).name}: {member.filename}", member.file_size)
                        # zipfile yields no more bytes than the size that the zip names.
                        yield shown, chain((start,), _read(opened))
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as problem:
        raise EnvironmentFailure(f"{path} is a damaged zip: {problem}") from None


_PATHS = {"pods": "/api/v1/pods", "ciliumendpoints": "/apis/cilium.io/v2/ciliumendpoints"}
"""The kinds that are read in chunks."""


class _Meta(msgspec.Struct):
    token: str = msgspec.field(default="", name="continue")


class _Items(msgspec.Struct):
    items: list[msgspec.Raw] | None = None
    metadata: _Meta | None = None


def dump(kube: Kube, wanted: Iterable[Listed], system: Collection[str]) -> tuple[bytes, list[str]]:
    """Return a List of the wanted objects that exist, and a line for each named object that is missing and
    for each optional kind that may not be read. Pods of the namespaces `system` keep their command lines.
    Raises Forbidden if the credentials may not read another kind: a dump without it would look like a cluster
    that has no such objects.
    """
    from ipamc.workspace.kubectl import Forbidden

    items: list[msgspec.Raw] = []
    missing, forbidden = [], []
    for item in wanted:
        try:
            found = list(_items_of(kube, item, system))
        except Forbidden:
            if not item.optional:
                raise
            forbidden.append(item.resource)
            continue
        items += found
        if item.name and not (found or item.optional):
            missing.append(f"there is no {item.resource} {item.name} in {item.namespace}")
    if forbidden:
        roles = f"apply the roles of 'ipamc ci rbac {kube.name}' again"
        missing.append(f"no permission to read {', '.join(forbidden)}: {roles}")
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}) + b"\n", missing


def _items_of(kube: Kube, item: Listed, system: Collection[str]) -> Iterator[msgspec.Raw]:
    if item.name:
        asked = ("get", item.full_name, item.name, "-n", item.namespace, "--ignore-not-found", "-o", "json")
        if text := kube.read(f"{item.resource} {item.name} in {item.namespace}", *asked).strip():
            yield msgspec.Raw(text.encode())
    elif item.resource in _PATHS:
        for found in _chunks(kube, item.resource):
            if item.resource == "pods":
                pod = _decoded("pods", found, shapes.Pod)
                pod.metadata.annotations = None  # they may be secrets
                if pod.spec and pod.metadata.namespace not in system:
                    pod.spec.containers = None
                fields = {"apiVersion": "v1", "kind": "Pod", **_present(msgspec.to_builtins(pod))}
            else:
                kind = {"apiVersion": "cilium.io/v2", "kind": "CiliumEndpoint"}
                fields = {**kind, **_decoded(item.resource, found, dict[str, msgspec.Raw])}
            # The items of an answer of the apiserver have no kind.
            yield msgspec.Raw(msgspec.json.encode(fields))
    elif text := kube.read(item.resource, "get", item.full_name, "-A", "-o", "json"):
        yield from _decoded(item.resource, text, _Items).items or ()


def _present(value: Any) -> Any:
    """Return a plain value without nulls."""
    if isinstance(value, dict):
        return {key: _present(member) for key, member in value.items() if member is not None}
    return list(map(_present, value)) if isinstance(value, list) else value


def _chunks(kube: Kube, resource: str) -> Iterator[msgspec.Raw]:
    token = ""
    while True:
        query = urllib.parse.urlencode({"limit": PAGE_OBJECTS, **({"continue": token} if token else {})})
        text = kube.read(resource, "get", "--raw", f"{_PATHS[resource]}?{query}")
        page = _decoded(resource, text or "{}", _Items)
        yield from page.items or ()
        before, token = token, page.metadata.token if page.metadata else ""
        if not token:
            return
        if token == before:
            raise EnvironmentFailure(f"{resource}: the cluster returns the same page of the list again")


def _decoded(what: str, text: str | msgspec.Raw, shape: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=shape)
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise EnvironmentFailure(f"{what}: unexpected answer of the cluster: {problem}") from None
