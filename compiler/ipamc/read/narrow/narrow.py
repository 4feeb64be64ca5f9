"""What a question needs of a cluster's files: all but the Nodes, or but one of them.

`ipamc show` asks how full pools are, `ipamc why NODE` about one node. To parse a dump of 5,000 Nodes, 113 MB of
YAML, takes 9 seconds; to find out that it has nothing else, 0.1, and to cut one Node out of it, 0.3.
"""

from __future__ import annotations

from collections.abc import Mapping

from ipamc.read.narrow.excerpt import Excerpt
from ipamc.read.narrow.json_items import json_pieces
from ipamc.read.narrow.left_out import LeftOut
from ipamc.read.narrow.yaml_items import yaml_pieces


def narrow(sources: Mapping[str, bytes], left_out: LeftOut) -> Mapping[str, bytes]:
    """Return the files without what is left out, as far as that is certain; others as they are.

    The same model comes out of them, but for what is left out. What is found wrong with them has to be told
    of the whole files, which may have more. Where nothing is left out, the same mapping is returned.
    """
    found: dict[str, bytes] = {}
    for path, data in sources.items():
        pieces = (json_pieces if path.endswith(".json") else yaml_pieces)(data, left_out)
        if pieces is None:
            found[path] = data
        elif pieces:
            found[path] = Excerpt(data, pieces)
    return sources if all(found.get(path) is data for path, data in sources.items()) else found
