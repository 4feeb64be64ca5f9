"""Files in, the parts of them that a question needs out: what is left out is never parsed.

narrow          what a question leaves out; the other parts of a JSON file, and of a YAML file
excerpt         parts of a file that know where they were
"""
