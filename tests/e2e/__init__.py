"""What the compiler writes, given to a real kube-apiserver and a real cilium-operator. `make e2e` builds the servers and runs this."""

import pytest

pytest.register_assert_rewrite("tests.e2e.proof")  # so that its failures show both sides
