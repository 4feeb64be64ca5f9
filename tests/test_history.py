from __future__ import annotations
import os, time
from collections import Counter
import pytest
from hypothesis import settings, HealthCheck
from hypothesis.stateful import run_state_machine_as_test
from tests.history.machine import History
from tests.history.model import MODES

@pytest.mark.parametrize("mode", MODES)
def test_h(mode):
    machine = type(f"History_{mode}", (History,), {"mode": mode, "steps": Counter()})
    start=time.monotonic()
    try:
        run_state_machine_as_test(machine, settings=settings(max_examples=int(os.environ.get("N","30")), stateful_step_count=50, deadline=None, report_multiple_bugs=False,suppress_health_check=list(HealthCheck)))
    finally:
        print(machine.steps, time.monotonic()-start)
