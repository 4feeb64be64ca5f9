"""`python -m tools.website.reference`: write docs/reference/, and the table of the law in docs/concepts/verify.md."""

from tools.website.reference import REFERENCE, law, write

write(REFERENCE)
law.write()
