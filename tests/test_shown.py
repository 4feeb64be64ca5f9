"""Every rule that speaks of a server is shown to be true with the real one (`make e2e`), or says why no server of ours can show it."""

from __future__ import annotations

import re

import tests.e2e.agents.test_router
import tests.e2e.agents.test_versions
import tests.e2e.agents.test_waits
import tests.e2e.test_admission
import tests.e2e.test_adopt
import tests.e2e.test_audit
import tests.e2e.test_controller_manager
import tests.e2e.test_evidence
import tests.e2e.test_import
import tests.e2e.test_mode_change
import tests.e2e.test_multi_pool
import tests.e2e.test_nodes
import tests.e2e.test_published_pools
import tests.e2e.test_refused_by_the_apiserver
import tests.e2e.test_refused_by_the_operator
import tests.e2e.test_renumber
import tests.e2e.test_resize
import tests.e2e.test_stored_versions  # noqa: F401 - tests enter themselves into SHOWN
from ipamc.catalogue import catalogue
from ipamc.workspace.disk import assets
from tests.e2e.rules import NO_SERVER_HERE, SHOWN

SPEAKS_OF_A_SERVER = re.compile(
    r"apiserver|operator\b|controller|Kubernetes (?:refuses|allows|accepts|compares)|Cilium (?:takes|counts|waits|routes)"
)


def test_every_claim_about_a_server_is_shown() -> None:
    speaking = {
        entry.code
        for entry in catalogue(assets("rules")).values()
        if SPEAKS_OF_A_SERVER.search(f"{entry.title} {entry.body} {entry.why} {entry.run}")
    }
    assert sorted(speaking - SHOWN.keys() - NO_SERVER_HERE.keys()) == []


def test_what_no_server_here_can_show_is_a_rule_that_none_shows() -> None:
    assert not SHOWN.keys() & NO_SERVER_HERE.keys()
    assert catalogue(assets("rules")).keys() >= SHOWN.keys() | NO_SERVER_HERE.keys()
