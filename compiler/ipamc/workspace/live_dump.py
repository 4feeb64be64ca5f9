"""What a refresh or an audit reads of a cluster, by kubectl, as one List in JSON.

Only the fields of Pods that an audit needs are kept. Environment variables and arguments of applications,
which may be secrets, reach no file of a job.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from ipamc.review.live.rights import Listed
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.kubectl import Forbidden, Kube

CHUNK = 500
"""Objects per answer, for the most numerous kinds: kubectl holds a whole answer in memory."""
_PATHS = {"pods": "/api/v1/pods", "ciliumendpoints": "/apis/cilium.io/v2/ciliumendpoints"}
"""The kinds that are read in chunks."""


class _Meta(msgspec.Struct):
    token: str = msgspec.field(default="", name="continue")


class _Items(msgspec.Struct):
    items: list[msgspec.Raw] | None = None
    metadata: _Meta | None = None


class _Container(msgspec.Struct, omit_defaults=True):
    name: str = ""
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None


class _PodMetadata(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str
    namespace: str
    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: list[dict[str, Any]] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class _PodSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    node_name: str | None = None
    host_network: bool | None = None
    containers: list[_Container] | None = None


class _PodStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    phase: str | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    pod_ips: list[dict[str, str]] | None = msgspec.field(default=None, name="podIPs")
    start_time: str | None = None


class _Pod(msgspec.Struct, omit_defaults=True):
    metadata: _PodMetadata
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


def dump(kube: Kube, wanted: Iterable[Listed], system: Collection[str]) -> tuple[bytes, list[str]]:
    """Return a List of the wanted objects that exist, and a line for each named object that is missing and
    for each optional kind that may not be read. Pods of the namespaces `system` keep their command lines.
    Raises Forbidden if the credentials may not read another kind: a dump without it would look like a cluster
    that has no such objects.
    """
    items: list[msgspec.Raw] = []
    missing, forbidden = [], []
    for item in wanted:
        if not item.name:
            try:
                items += _items_of(kube, item, system)
            except Forbidden:
                if not item.optional:
                    raise
                forbidden.append(item.resource)
            continue
        what = f"{item.resource} {item.name} in {item.namespace}"
        asked = ("get", item.full_name, item.name, "-n", item.namespace, "--ignore-not-found", "-o", "json")
        if text := kube.read(what, *asked).strip():
            items.append(msgspec.Raw(text.encode()))
        else:
            missing.append(f"there is no {what}")
    if forbidden:
        roles = f"apply the roles of 'ipamc ci rbac {kube.context}' again"
        missing.append(f"{', '.join(forbidden)} may not be read: {roles}")
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}) + b"\n", missing


def _items_of(kube: Kube, item: Listed, system: Collection[str]) -> Iterator[msgspec.Raw]:
    if item.resource in _PATHS:
        for found in _chunks(kube, item.resource):
            if item.resource == "pods":
                pod = _decoded("pods", found, _Pod)
                if pod.spec and pod.metadata.namespace not in system:
                    pod.spec.containers = None
                fields = {"apiVersion": "v1", "kind": "Pod", **msgspec.structs.asdict(pod)}
            else:
                kind = {"apiVersion": "cilium.io/v2", "kind": "CiliumEndpoint"}
                fields = {**kind, **_decoded(item.resource, found, dict[str, msgspec.Raw])}
            # The items of an answer of the apiserver have no kind.
            yield msgspec.Raw(msgspec.json.encode(fields))
    elif text := kube.read(item.resource, "get", item.full_name, "-A", "-o", "json"):
        yield from _decoded(item.resource, text, _Items).items or ()


def _chunks(kube: Kube, resource: str) -> Iterator[msgspec.Raw]:
    token = ""
    while True:
        query = urllib.parse.urlencode({"limit": CHUNK, **({"continue": token} if token else {})})
        text = kube.read(resource, "get", "--raw", f"{_PATHS[resource]}?{query}")
        page = _decoded(resource, text or "{}", _Items)
        yield from page.items or ()
        before, token = token, page.metadata.token if page.metadata else ""
        if not token:
            return
        if token == before:
            raise EnvironmentFailure(f"{resource}: the cluster answers with the same part of the list again")


def _decoded(what: str, text: str | msgspec.Raw, shape: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=shape)
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise EnvironmentFailure(f"{what}: the cluster answers with something else: {problem}") from None
