"""Environment variables, the clock, and the versions of the libraries and system, as data."""

from __future__ import annotations

import datetime
import os
import re
import shlex
import shutil

from ipamc.report.terminal_text import visible
from ipamc.workspace.failure import EnvironmentFailure


def variable(name: str) -> str:
    """Return the value of an environment variable; "" where it is not set."""
    return os.environ.get(name, "")


def today() -> str:
    """Return the day in UTC, ISO 8601, of SOURCE_DATE_EPOCH or the clock. Nothing else reads the clock."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.datetime.now(datetime.UTC).date().isoformat()
    if not re.fullmatch(r"\d{1,12}", epoch, re.ASCII):
        raise EnvironmentFailure(
            f"SOURCE_DATE_EPOCH is {visible(epoch)!r}, which is not a number of seconds since 1970"
        )
    try:
        return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        raise EnvironmentFailure(f"SOURCE_DATE_EPOCH is {epoch}, after the year 9999") from None


def utc(second: int) -> str:
    """Return a second since 1970 as RFC 3339 in UTC, as Kubernetes writes times: such texts sort by time."""
    return f"{datetime.datetime.fromtimestamp(second, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def program(name: str) -> str | None:
    """Return the path of a program on the PATH; None if it is not found.
    Relative folders of the PATH, "" among them, are skipped, and on Windows the working directory: a
    stranger's file of this name may be there. A name with a slash is the user's choice, and stays as it is.
    """
    if os.path.dirname(name):  # noqa: PTH120 - pathlib drops a leading ./
        return name
    folders = filter(os.path.isabs, os.get_exec_path())
    found = (shutil.which(os.path.join(folder, name)) for folder in folders)  # noqa: PTH118 - texts
    return next(filter(None, found), None)


def command(name: str, default: str) -> list[str]:
    """Return the words of the command line in a variable, or `default`.
    Raises EnvironmentFailure if not found.
    """
    try:
        words = shlex.split(variable(name) or default)
    except ValueError as problem:
        raise EnvironmentFailure(f"{name} is not a command line: {str(problem).lower()}") from None
    if not words or not words[0]:
        raise EnvironmentFailure(f"{name} names no program: unset it, or set it, as in {name}={default}")
    found = program(words[0])
    if found is None:
        raise EnvironmentFailure(f"there is no {words[0]} here: install it, or name it in ${name}")
    return [found, *words[1:]]


def runtime() -> dict[str, str]:
    """Return the implementation and version of Python, and the system, its release and its architecture."""
    import platform

    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {"python": python, "platform": platform.platform()}


def libraries() -> dict[str, str]:
    """Return the version of each library that ipamc needs, by name; "" if it is not installed."""
    from importlib.metadata import PackageNotFoundError, distributions, requires

    try:
        needed = requires("ipamc") or []
    except PackageNotFoundError:
        return {}
    names = {match[0] for line in needed if "extra ==" not in line and (match := re.match(r"[\w.-]+", line))}
    return {name: next((each.version for each in distributions(name=name)), "") for name in sorted(names)}
