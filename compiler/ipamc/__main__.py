"""`python -m ipamc`."""

import sys

from ipamc.cli import main

if __name__ == "__main__":
    sys.exit(main())
