"""A YAML file to documents: the parser reads a text without the parts that nobody reads, if that is the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ipamc.read.syntax.document import Document, Unread
from ipamc.read.syntax.encoding import check, decode
from ipamc.read.syntax.yaml import cut_documents, yaml_documents
from ipamc.read.syntax.yaml_cut import cut


def documents_of(
    path: str, data: bytes, fields: Mapping[str, frozenset[str]], unread: Unread
) -> Iterator[Document]:
    """Yield the documents of a file; in place of what nobody reads they may have None, or what another object has.

    `fields` are those of `cut`. Raises Unreadable. A file with findings is read as a whole.
    """
    check(path, data)
    found = cut(data, fields)
    documents = cut_documents(path, found, unread) if found else None
    yield from yaml_documents(path, decode(path, data)) if documents is None else documents
