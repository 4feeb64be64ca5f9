"""From a dump of a running cluster to the files of one that ipamc compiles, with the blocks that its nodes have."""
