"""The generated part of the documentation: docs/reference/, from the schemas, the verbs, the catalogue and the version table.

`python -m tools.website.reference` writes it (`make reference`); tests/website/test_reference.py compares byte for byte.
"""

from __future__ import annotations

from pathlib import Path

from tools.website.reference import codes, fields, outputs, verbs, versions
from tools.website.reference.markdown import page

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


def pages() -> dict[str, str]:
    """Return every page by its path below docs/reference/."""
    index = page(
        "# Reference",
        "Everything by name. These pages are generated from the code, and a test compares them with it.",
        "- [Fields](fields/README.md): every field of every document that ipamc reads\n"
        "- [Verbs](verbs/README.md): every verb with its options, examples and exit codes\n"
        "- [Codes](codes/README.md): every rule that a finding can name\n"
        "- [Cilium by version](versions.md): what each minor does, and how that is known\n"
        "- [Outputs](outputs/README.md): JSON, files, exit codes, environment variables",
    )
    return {
        "README.md": index,
        **fields.pages(),
        **verbs.pages(),
        **codes.pages(),
        **versions.pages(),
        **outputs.pages(),
    }


def write(folder: Path) -> None:
    """Write all pages below a folder; remove others."""
    made = pages()
    for path in folder.rglob("*.md"):
        if path.relative_to(folder).as_posix() not in made:
            path.unlink()
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
