"""`python -I FOLDER --base REV`: the checker alone, from a copy of this folder."""

import os
import sys
from argparse import ArgumentParser
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from time import time

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent))  # this folder is a package by its own name
files, verify = (import_module(f"{here.name}.{name}") for name in ("files", "verify"))
options = ArgumentParser(prog=f"python -I {here.name}", description=verify.__doc__)
options.add_argument("names", nargs="*", metavar="CLUSTER", help="a cluster to verify; by default all")
options.add_argument("--base", required=True, metavar="REV", help="the commit to compare with")
options.add_argument("--folder", default="clusters", help="the folder of the clusters")
options.add_argument("--gates", default="release,delete-cluster", help="the labels that are missing")
given = options.parse_args()
day = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH") or time()), UTC).date().isoformat()
try:
    sides = files.commit(given.folder, given.base), files.disk(given.folder)
    found, _ = verify.verify(given.folder, *sides, day, given.gates.split(","), given.names)
except verify.Finding as finding:
    found = [finding]
sys.exit("\n".join(map(str, found)) or 0)
