"""What the jobs of one pipeline applied completely: a small file for each, which the last job reads.

Jobs of one cluster run side by side, so none of them alone knows whether the whole cluster is applied.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from ipamc.workspace import disk, git
from ipamc.workspace.trouble import Trouble

Sha = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{40,64}\Z")]


class Receipt(msgspec.Struct, forbid_unknown_fields=True):
    """What one job applied of one cluster, and the operator had nothing against it."""

    cluster: str
    commit: Sha
    parts: list[str]
    """Empty: all of it."""


def write(folder: str, cluster: str, parts: Sequence[str]) -> str:
    """Write a receipt for what was applied as HEAD has it; return why none is written, or ""."""
    if git.root(".") is None or not (commit := git.commit(".", "HEAD")):
        return "this is no commit of a git repository"
    path = f"{disk.CLUSTERS}/{cluster}"
    if not git.is_clean(".", path):
        return f"{path} is not as it is committed"
    receipt = Receipt(cluster=cluster, commit=commit, parts=sorted(parts))
    name = hashlib.sha256("\n".join([cluster, *receipt.parts]).encode()).hexdigest()[:40]
    disk.replace(str(Path(folder, f"{name}.json")), msgspec.json.encode(receipt).decode() + "\n")
    return ""


def read(folder: str) -> list[Receipt]:
    """Return the receipts of a folder, in order of name; none where there is no such folder.

    Raises Trouble for a file that is none.
    """
    found = []
    for path in sorted(Path(folder).glob("*.json")):
        data = disk.read_bytes(str(path))
        if data is None:
            continue
        try:
            found.append(msgspec.json.decode(data, type=Receipt))
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
            raise Trouble(f"{path} is no receipt of ipamc ci apply: {problem}") from None
    return found


def covered(receipts: Iterable[Receipt], cluster: str, commit: str, parts: Iterable[str]) -> list[str]:
    """Return the parts of a cluster that no receipt for a commit has."""
    ours = [receipt for receipt in receipts if (receipt.cluster, receipt.commit) == (cluster, commit)]
    if any(not receipt.parts for receipt in ours):
        return []
    done = {part for receipt in ours for part in receipt.parts}
    return [part for part in parts if part not in done]
