"""`python -m website.reference`: write docs/reference/."""

from website.reference import REFERENCE, write

write(REFERENCE)
