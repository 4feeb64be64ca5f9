"""Which refusals come from a kube-apiserver that still has policies of an earlier commit."""

from __future__ import annotations

import pytest

from ipamc.review.live.admission import is_late
from ipamc.review.live.objects import Object

POLICY: Object = {
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "ipamc-red-enforce-ciliumnodes-0"},
    "spec": {"variables": [{"name": "commit", "expression": "'4ab6'"}]},
}
SAYS = (
    "The ciliumnodes \"n1\" is invalid: : ValidatingAdmissionPolicy '{0}' with binding '{0}' denied request: "
    "git gives n1 10.1.0.0/27, not 10.1.0.160/27{1}"
)
OURS, OTHER = "ipamc-red-enforce-ciliumnodes-0", "ipamc-blue-enforce-ciliumnodes-0"


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        pytest.param(SAYS.format(OURS, " (commit 30c6)"), True, id="as the policy was before"),
        pytest.param(SAYS.format(OURS, " (commit 4ab6)"), False, id="as the policy is"),
        pytest.param(SAYS.format(OURS, ""), True, id="as kubectl alone applied it"),
        pytest.param(SAYS.format(OTHER, " (commit 30c6)"), False, id="another cluster's policy"),
        pytest.param(
            f"{SAYS.format(OURS, ' (commit 4ab6)')}\n{SAYS.format(OURS, ' (commit 30c6)')}",
            True,
            id="one object of two",
        ),
        pytest.param("error: Apply failed with 1 conflict", False, id="a conflict"),
    ],
)
def test_a_refusal_by_an_earlier_policy_is_late(refusal: str, *, expected: bool) -> None:
    assert is_late(refusal, [POLICY]) is expected
