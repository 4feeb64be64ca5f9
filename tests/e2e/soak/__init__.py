"""Random histories of a live cluster: edits, compiles, applies, and what operators, agents and people do in between."""
