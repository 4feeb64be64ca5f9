"""Every example: accepted by the real servers, and left as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.api import Api
from tests.e2e.operator import Operator
from tests.e2e.proof import prove
from tests.e2e.site import CLUSTERS, Site

EXAMPLES = sorted(folder.name for folder in CLUSTERS.iterdir() if folder.is_dir())


@pytest.mark.parametrize("running", [True, False], ids=["the operator runs", "it is started later"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_rendered_is_accepted_and_stays(api: Api, operator: Operator, tmp_path: Path, name: str, *, running: bool) -> None:
    site = Site.example(api, tmp_path, name, "{}.{}".format(*operator.version))
    site.join()
    site.compile("--locked")
    prove(site, operator, running=running)
