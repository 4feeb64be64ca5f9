"""Dry runs that test policies, and refusals by policies of an earlier commit."""

from __future__ import annotations

import pytest

from ipamc.review.live.objects import Object, is_late, name_of, probes
from ipamc.review.live.rights import apply_rights

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


@pytest.mark.parametrize("resource", ["nodes", "ciliumnodes", "ciliumpodippools"])
def test_a_job_may_create_what_it_probes_also_where_nothing_of_the_kind_is_rendered(resource: str) -> None:
    rules = [{"resources": [resource]}]
    policy = {**POLICY, "spec": {**POLICY["spec"], "matchConstraints": {"resourceRules": rules}}}
    (probe,) = probes([policy])
    (rule,) = (
        each
        for each in apply_rights([policy], "kube-system", "kubernetes", prune=False)
        if each.names == (name_of(probe),)
    )
    group = probe["apiVersion"].rpartition("/")[0]
    assert (rule.group, rule.resource, rule.verbs) == (group, resource, ("create", "patch"))
