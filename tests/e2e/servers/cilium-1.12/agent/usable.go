package main

import (
	"net"

	"github.com/cilium/ipam/service/ipallocator"
)

func usable(block *net.IPNet, _, _ bool) int {
	addresses, err := ipallocator.NewCIDRRange(block)
	if err != nil {
		panic(err)
	}
	return addresses.Free()
}
