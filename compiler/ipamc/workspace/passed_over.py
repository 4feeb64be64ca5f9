"""Files of a cluster's folder that are no inputs by their names, and look as if they were meant to be."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ipamc.model.diagnostics import Diagnostic, Place
from ipamc.workspace import disk, safe_read

_HEAD = 1 << 16
"""Bytes of a file that are looked at; a larger file is read up to here."""
# Patterns are compiled when the first such file is there: most clusters have none.
_OBJECT = rb"""(?:\xef\xbb\xbf)?(?:\s|\#[^\n]*\n|---[^\n]*\n|\{)*["']?(?:apiVersion|kind)["']?\s*:"""
_KIND = (
    rb"""\bkind["']?\s*:\s*["']?(Cluster|IPPool|ClusterCIDR|NodeInventory|Node|CiliumNode|Tests)(?:List)?\b"""
)
_PACKED = r"\.(?:ya?ml|json)\.(?:gz|bz2|xz|zst|zip)$"
_BACKUP = r"(?P<name>.*\.(?:yaml|yml|json))(?:\.(?:bak|orig|old|save|tmpl|txt|rej)|~)$"


def passed_over(folder: str) -> tuple[Diagnostic, ...]:
    """Return a warning for each file whose name ends otherwise than an input's, and which has objects that ipamc reads.

    Notes, scripts and what else people keep beside are not named. No link is followed, and of what is no regular
    file nothing is read. Costs a look at the beginning of each such file.
    """
    found = (_look(path) for path in disk.other_files(folder))
    return tuple(finding for finding in found if finding)


def _look(path: Path) -> Diagnostic | None:
    from ipamc.read.rules import not_an_input

    shown, what, name = path.as_posix(), "", path.name
    if path.is_symlink():
        target = Path(os.readlink(path))  # noqa: PTH115 - it may lead nowhere
        if target.suffix not in disk.SUFFIXES:
            return None
        what, name = f"is a link to {target.name}", ""
    elif re.search(_PACKED, path.name, re.IGNORECASE):
        what, name = "is packed", ""
    elif head := safe_read.head(shown, _HEAD):
        kind = re.search(_KIND, head) if re.match(_OBJECT, head, re.VERBOSE) else None
        if not kind:
            return None
        what = f"has a {kind[1].decode()}"
        known = re.match(_BACKUP, path.name, re.IGNORECASE)
        suffix = ".json" if head.lstrip().startswith(b"{") else ".yaml"
        name = known["name"] if known else path.with_suffix(suffix).name
    if not what:
        return None
    free = bool(name) and not os.path.lexists(path.with_name(name))
    return not_an_input(
        Place(shown), path.name, what, f"{shown.removesuffix(path.name)}{name}" if free else ""
    )
