package main

import (
	ciliumv2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/v2"
	nodetypes "github.com/cilium/cilium/pkg/node/types"
)

func parseCiliumNode(node *ciliumv2.CiliumNode) nodetypes.Node {
	return nodetypes.ParseCiliumNode(node)
}
