"""What the compiler writes, given to a real kube-apiserver and a real cilium-operator. `make e2e` builds the servers and runs this."""
