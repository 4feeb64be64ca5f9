"""Clusters on the disk and in git commits: folders and revisions come in, `Source`s and texts go out.

This is the only room that does I/O: files, git, kubectl, HTTP, processes, environment variables, the clock.
It prints nothing and knows no options.

`__main__` cleans the module search path before it imports anything else. So this module, and the package
around it, import nothing that is not loaded already when Python starts.
"""

import os
import sys


def leave_working_directory() -> None:
    """Remove the working directory and relative folders from the module search path.
    `python -m` puts the working directory there, and so does an empty entry of PYTHONPATH. Imports of Python
    itself before this call are out of reach: the installed command has the working directory on its path only
    by PYTHONPATH, and `python -P -m ipamc` has not. A folder from which ipamc itself was imported stays.
    """
    strange = {_real(".")} - {os.path.realpath(f"{__file__}/../../..")}
    sys.path[:] = [path for path in filter(os.path.isabs, sys.path) if _real(path) not in strange]


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except OSError:  # the working directory was deleted
        return path
