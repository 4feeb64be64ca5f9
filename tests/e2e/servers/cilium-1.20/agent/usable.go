package main

import (
	"net"
	"net/netip"

	"github.com/cilium/cilium/pkg/ipam/service/ipallocator"
)

// The same options as cidrRangeOpts in pkg/ipam/pool.go.
func usable(block *net.IPNet, first, last bool) int {
	var options []ipallocator.CIDRRangeOption
	if first {
		options = append(options, ipallocator.WithAllowFirstIP())
	}
	if last {
		options = append(options, ipallocator.WithAllowLastIP())
	}
	return ipallocator.NewCIDRRange(netip.MustParsePrefix(block.String()), options...).Free()
}
