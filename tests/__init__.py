"""Tables for arithmetic, properties for laws, case files for behaviour, real programs for truth."""
