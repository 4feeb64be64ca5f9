"""The bytes of input files in, one Cluster and findings out; places to lines and columns.

Reads no disk and no lock.

syntax/             bytes -> text -> documents: plain values; positions: paths -> lines and columns
kinds/              documents -> items, each with its kind; one module for each dialect: structs -> the model
read                the way through all of these; values -> one Cluster
decode              items -> typed structs: the fast path, and the slow one with findings
values              names, labels, CIDRs and selectors, the same in every dialect
locate              places -> lines and columns
rendered            what an earlier compile rendered, from the texts of `rendered/`; parts: its files and folders
dump/               what kubectl prints -> the values of `model.dump`; what programs and Nodes tell of a cluster
narrow/             which parts of files a question needs: the others are not parsed
"""
