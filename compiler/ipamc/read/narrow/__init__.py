"""Files in, the parts of them that a question needs out: what is left out is never parsed.

narrow          the way in: which files are left out, and which are cut
json_items      the parts of a JSON file
yaml_items      the parts of a YAML file
excerpt         parts of a file that know where they were
"""
