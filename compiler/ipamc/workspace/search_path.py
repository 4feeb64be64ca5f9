"""Where this process imports modules from: never from the working directory, a stranger's branch perhaps.

`__main__` calls this before it imports anything else. So this module, and the packages around it, import
nothing that is not loaded already when Python starts: not even `__future__`.
"""

import os
import sys


def leave_working_directory() -> None:
    """Take the working directory and relative folders out of the search path of modules.
    `python -m` puts the working directory there, and so does an empty entry of PYTHONPATH. What Python itself
    imports before it calls us is not in our hands: the installed command has the working directory on its
    path only by PYTHONPATH, and `python -P -m ipamc` has not.
    """
    sys.path[:] = search_path()


def search_path() -> list[str]:
    """Return the search path of modules without these; a folder that ipamc itself was imported from stays."""
    strange = {_real(".")} - {os.path.realpath(f"{__file__}/../../..")}
    return [path for path in filter(os.path.isabs, sys.path) if _real(path) not in strange]


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except OSError:  # the working directory was deleted
        return path
