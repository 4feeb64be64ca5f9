// What Cilium's agent makes of Nodes, CiliumNodes and blocks, by its own functions: objects on stdin, answers on stdout, both JSON.
package main

import (
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"reflect"

	"github.com/cilium/cilium/pkg/cidr"
	"github.com/cilium/cilium/pkg/k8s"
	ciliumv2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/v2"
	slimv1 "github.com/cilium/cilium/pkg/k8s/slim/k8s/api/core/v1"
	nodetypes "github.com/cilium/cilium/pkg/node/types"
	"github.com/cilium/cilium/pkg/option"
	"github.com/cilium/cilium/pkg/source"
)

type question struct {
	// The agent's option annotate-k8s-node.
	Annotate    bool
	Nodes       []*slimv1.Node
	CiliumNodes []*ciliumv2.CiliumNode
	Blocks      []string
	// The fields allowFirstIP and allowLastIP of a block's CiliumPodIPPool, which 1.20 has.
	AllowFirst, AllowLast bool
}

type answer struct {
	Nodes       []blocks
	CiliumNodes []blocks
	// How many addresses of a block pods can have.
	Usable map[string]int
}

// The blocks out of which a node's pods get addresses, and those that are only routed to it.
type blocks struct {
	IPv4, IPv6 string
	Secondary  []string
}

func main() {
	var asked question
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		panic(err)
	}
	option.Config.AnnotateK8sNode = asked.Annotate
	told := answer{Usable: map[string]int{}}
	for _, node := range asked.Nodes {
		told.Nodes = append(told.Nodes, of(parseNode(node)))
	}
	for _, node := range asked.CiliumNodes {
		parsed := parseCiliumNode(node)
		told.CiliumNodes = append(told.CiliumNodes, of(&parsed))
	}
	for _, block := range asked.Blocks {
		_, network, err := net.ParseCIDR(block)
		if err != nil {
			panic(err)
		}
		told.Usable[block] = usable(network, asked.AllowFirst, asked.AllowLast)
	}
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		panic(err)
	}
}

// From 1.18 on ParseNode wants a logger first.
func parseNode(node *slimv1.Node) *nodetypes.Node {
	arguments := []reflect.Value{reflect.ValueOf(node), reflect.ValueOf(source.Kubernetes)}
	parse := reflect.ValueOf(k8s.ParseNode)
	if parse.Type().NumIn() == 3 {
		logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
		arguments = append([]reflect.Value{reflect.ValueOf(logger)}, arguments...)
	}
	return parse.Call(arguments)[0].Interface().(*nodetypes.Node)
}

func of(node *nodetypes.Node) blocks {
	found := blocks{IPv4: text(node.IPv4AllocCIDR), IPv6: text(node.IPv6AllocCIDR)}
	for _, each := range append(node.IPv4SecondaryAllocCIDRs, node.IPv6SecondaryAllocCIDRs...) {
		found.Secondary = append(found.Secondary, text(each))
	}
	return found
}

func text(block *cidr.CIDR) string {
	if block == nil {
		return ""
	}
	return block.String()
}
