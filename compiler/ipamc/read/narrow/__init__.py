"""Files in, the parts of them that a question needs out: what is left out is never parsed.

narrow          the parts of a JSON file, and of a YAML file
left_out        what a question leaves out
excerpt         parts of a file that know where they were
"""
