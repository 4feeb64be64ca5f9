"""The entry point of a process: the installed command, and `python -P -m ipamc`.

Without -P, Python looks for modules of its own in the working directory before any line of ours runs.
"""

import gc
import sys

from ipamc.workspace import leave_working_directory

_AT_ONCE = 50_000
"""The number of new containers before the collector looks for cycles among them; by default it is 700."""


def main() -> int:
    """Run ipamc with the arguments of the process; return the exit code.
    The collector of cycles runs less often, and not at all when the process ends: it would walk 36 times
    through everything that was imported, and find nothing. That was a sixth of the time of a small cluster.
    """
    gc.set_threshold(_AT_ONCE)
    try:
        leave_working_directory()
        from ipamc.cli import main as run  # noqa: PLC0415 - nothing is imported before the search path is clean
        from ipamc.workspace.signals import stop_in_order  # noqa: PLC0415 - as above

        stop_in_order()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted while starting: nothing was written; run it again\n")
        return 130
    try:
        return run()
    finally:
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
