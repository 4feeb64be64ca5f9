"""The ResourceList that a KRM function returns: the objects, and the findings as its results."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from ipamc.model.diagnostics import Located, Severity
from ipamc.read.parts import BINDING, KUSTOMIZATION, is_looked_at
from ipamc.read.rendered import Rendered
from ipamc.read.resource_list import INDICES, LOCAL, LOCK, PATHS, STATE, VERSIONS, Object, ResourceList, place
from ipamc.render.yaml import quoted, scalar

_WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "info"}


def published(data: Mapping[str, str]) -> dict[str, bytes]:
    """Return the files of `rendered/` in a state's texts, by path."""
    alone = {PurePosixPath(path).name: path for path in BINDING}
    texts = {alone.get(key) or f"{key.removesuffix('.yaml').replace('.', '/')}.yaml": key for key in data}
    return {path: data[key].encode() for path, key in texts.items() if is_looked_at(path)}


def state(lock: str, files: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of a state: the lock, and the files of `rendered/` that the next compile reads."""
    looked_at = {path: text for path, text in files.items() if is_looked_at(path)}
    return {LOCK: lock, **{path.replace("/", "."): text for path, text in sorted(looked_at.items())}}


def compiled(came: ResourceList, files: Mapping[str, str], lock: str) -> list[Object]:
    """Return a package's objects after a compile: the received ones, then manifests in order of apply.
    Objects that an earlier run rendered are replaced. Inputs and the state stay, as `local-config`, if they
    came from files, to which the orchestrator writes them back. Otherwise they are omitted: kustomize applies
    all it gets back, and refuses an inventory's Node beside the rendered one.
    """
    inputs = {id(source.item) for source in came.sources.values()}
    kept = []
    for item in came.items:
        read = item is came.state or id(item) in inputs
        if came.is_rendered(item) or (read and not item.path):
            continue
        if item is came.state and came.writes:
            kept.append(_local({**item.value, "data": state(lock, files)}))
        else:
            kept.append(_local(item.value) if read else item.value)
    if came.writes and came.state is None:
        metadata = {"name": STATE, "annotations": _at(came.state_path, 0)}
        head = {"apiVersion": "v1", "kind": "ConfigMap"}
        kept.append(_local({**head, "metadata": metadata, "data": state(lock, files)}))
    # Manifests are the output of `kustomize build` of the rendered files, in its order.
    tree = Rendered({path: text.encode() for path, text in files.items()})
    for path in _listed(tree, PurePosixPath("."), frozenset()):
        for index, value in enumerate(tree.documents(path)):
            metadata = value["metadata"]
            notes = {**metadata.get("annotations", {}), **_at(f"{came.rendered}/{path}", index)}
            kept.append({**value, "metadata": {**metadata, "annotations": notes}})
    return kept


def _local(value: Object) -> Object:
    metadata = value.get("metadata") or {}
    notes = metadata.get("annotations") or {}
    return {**value, "metadata": {**metadata, "annotations": {**notes, LOCAL: "true"}}}


def _listed(tree: Rendered, folder: PurePosixPath, above: Collection[PurePosixPath]) -> Iterator[str]:
    (document,) = tree.documents(str(folder / KUSTOMIZATION))
    for name in document.get("resources", ()):
        path = folder / name
        if str(path) in tree.texts:
            yield str(path)
        elif path not in above:
            yield from _listed(tree, path, {*above, path})


def _at(path: str, index: int) -> dict[str, str]:
    return {PATHS[0]: path, INDICES[0]: str(index), PATHS[1]: path, INDICES[1]: str(index)}


def results(came: ResourceList, findings: Sequence[Located]) -> list[Object]:
    """Return findings as results, each with its object, file and field."""
    made: list[Object] = []
    for finding in (each for each in findings if not each.acknowledged):
        item, keys = place(came, finding.at)
        text = f"{finding.code}: {finding.message}"
        about: dict[str, object] = {}
        if item is not None:
            metadata = item.value.get("metadata")
            metadata = metadata if isinstance(metadata, dict) else {}
            reference = {key: str(item.value.get(key, "")) for key in ("apiVersion", "kind")}
            reference["name"] = str(metadata.get("name", ""))
            reference |= {"namespace": str(metadata["namespace"])} if metadata.get("namespace") else {}
            about |= {"resourceRef": reference, **({"field": {"path": keys}} if keys else {})}
            about |= {"file": {"path": item.path, "index": item.index}} if item.path else {}
        tags = {"code": finding.code, "docs": f"ipamc explain {finding.code}"}
        tags |= {"help": finding.help} if finding.help else {}
        made.append({"message": text, "severity": _WORDS[finding.severity], **about, "tags": tags})
    return made


def dumps(items: Sequence[Object], found: Sequence[Object]) -> str:
    """Return a ResourceList as YAML that YAML 1.1 and 1.2 readers parse alike."""
    document: Object = {"apiVersion": VERSIONS[0], "kind": "ResourceList", "items": list(items)}
    if found:
        document["results"] = list(found)
    return "".join(f"{line}\n" for line in _yaml(document, ""))


def _yaml(value: Any, indent: str) -> Iterator[str]:
    """Yield the lines of a mapping or list in block style; each begins with `indent`."""
    members = [("-", each) for each in value]
    if isinstance(value, dict):
        members = [(f"{_scalar(str(key))}:", each) for key, each in value.items()]
    for head, each in members:
        if isinstance(each, dict | list) and each:
            if head == "-":
                first, *rest = _yaml(each, indent + "  ")
                yield f"{indent}- {first[len(indent) + 2 :]}"
                yield from rest
            else:
                yield f"{indent}{head}"
                yield from _yaml(each, indent if isinstance(each, list) else indent + "  ")
        elif isinstance(each, str) and _is_literal(each):
            yield f"{indent}{head} |"
            yield from (f"{indent}  {line}" if line else "" for line in each[:-1].split("\n"))
        else:
            yield f"{indent}{head} {_scalar(each)}"


def _is_literal(text: str) -> bool:
    """Return whether a text can be a literal block: lines of printable ASCII without a leading space."""
    if not text.endswith("\n") or text.endswith("\n\n") or text[0] in " \n":
        return False
    return text.isascii() and all(line.isprintable() for line in text[:-1].split("\n"))


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return repr(value) if "." in repr(value) else repr(value).replace("e", ".0e")  # YAML 1.1 wants a dot
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    return quoted(value) if isinstance(value, str) else scalar(value)
