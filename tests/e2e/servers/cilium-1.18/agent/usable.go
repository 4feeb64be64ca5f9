package main

import (
	"net"

	"github.com/cilium/cilium/pkg/ipam/service/ipallocator"
)

func usable(block *net.IPNet, _, _ bool) int {
	return ipallocator.NewCIDRRange(block).Free()
}
