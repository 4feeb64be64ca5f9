"""Dumps of `kubectl get` and of cilium-sysdump to a `Dump`: the running cluster."""
