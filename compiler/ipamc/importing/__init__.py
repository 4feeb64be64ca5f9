"""From a dump of a running cluster to the files of one that ipamc compiles: its nodes keep their blocks."""
