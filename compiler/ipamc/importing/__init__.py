"""Converts a dump of a running cluster to files for ipamc, so that nodes keep their blocks."""
