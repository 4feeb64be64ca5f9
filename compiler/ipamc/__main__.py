"""Where a process of ipamc begins: the installed command, and `python -P -m ipamc`.

Without -P, Python looks for modules of its own in the working directory before any line of ours runs.
"""

import sys

from ipamc.workspace.search_path import leave_working_directory


def main() -> int:
    """Run ipamc with the arguments of the process; return the exit code."""
    try:
        leave_working_directory()
        from ipamc.cli import main as run  # noqa: PLC0415 - nothing is imported before the search path is clean
        from ipamc.workspace.signals import stop_in_order  # noqa: PLC0415 - as above

        stop_in_order()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted while starting: nothing was written; run it again\n")
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
