"""Environment variables and the clock, where they are data."""

from __future__ import annotations

import datetime
import os
import re

from ipamc.report.terminal_text import visible
from ipamc.workspace.trouble import Trouble


def variable(name: str) -> str:
    """Return the value of an environment variable; "" where it is not set."""
    return os.environ.get(name, "")


def today() -> str:
    """Return the day in UTC, ISO 8601: of SOURCE_DATE_EPOCH where it is set, else of the clock.

    ipamc asks for the time only here.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.datetime.now(datetime.UTC).date().isoformat()
    if not re.fullmatch(r"\d{1,12}", epoch, re.ASCII):
        raise Trouble(f"SOURCE_DATE_EPOCH is {visible(epoch)!r}, which is not a number of seconds since 1970")
    try:
        return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        raise Trouble(f"SOURCE_DATE_EPOCH is {epoch}, after the year 9999") from None
