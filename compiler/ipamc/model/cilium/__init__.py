"""What each Cilium minor does and how that is known: a version in, an answer out; knows no lock."""
