package main

import (
	"github.com/cilium/cilium/pkg/k8s"
	ciliumv2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/v2"
	nodetypes "github.com/cilium/cilium/pkg/node/types"
)

func parseCiliumNode(node *ciliumv2.CiliumNode) nodetypes.Node {
	return k8s.ParseCiliumNode(node)
}
