"""The bytes of input files in, one Cluster and findings out; places to lines and columns.

Reads no disk and no lock.

syntax/             bytes -> text -> documents: plain values; positions: paths -> lines and columns
kinds/              documents -> items, each with its kind; one module for each dialect: structs -> the model
read                the way through all of these; values -> one Cluster
decode              items -> typed structs: the fast path, and the slow one with findings
values              names, labels, CIDRs, selectors, families of pools: what dialects share
locate              places -> lines and columns
rendered            the manifests of an earlier compile, from texts
hints               what was meant by a refused word
rules               the findings
dump/               dumps of a running cluster; csv_table: tables of prefixes
"""

from ipamc import on_demand

on_demand(__name__, "hints", "node_names", "space_index")
