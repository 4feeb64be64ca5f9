"""What ipamc runs with: Python, the machine, and the libraries as they are installed."""

from __future__ import annotations

import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version


def python() -> str:
    """Return the implementation and version of Python: `CPython 3.12.1`."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def machine() -> str:
    """Return the system, its release and its architecture."""
    return platform.platform()


def libraries() -> dict[str, str]:
    """Return the version of each library that ipamc needs, by name in order; "" for one that is not installed."""
    try:
        needed = requires("ipamc") or []
    except PackageNotFoundError:
        return {}
    names = {match[0] for line in needed if "extra ==" not in line and (match := re.match(r"[\w.-]+", line))}
    return {name: _version(name) for name in sorted(names)}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
