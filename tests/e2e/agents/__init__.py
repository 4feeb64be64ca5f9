"""Real cilium-agents with the real datapath, pods that ping, and a router that speaks BGP, on one kernel. `make e2e-agents` builds them and runs this.

A node is a network and a mount namespace on a bridge (`machine`, `node`), a pod a network namespace that the real CNI plugin connects (`pod`), the router
a namespace with GoBGP (`router`). kube-apiserver, operator and cluster's folder are those of `tests/e2e`. All of it runs inside namespaces that `.ci/isolated`
makes, and ends with them.
"""

import pytest

pytest.register_assert_rewrite("tests.e2e.agents.lab")  # so that its failures show both sides
