"""The page as one document: tables, data, script and style, under a policy that lets nothing else in.

It loads nothing, and sends nothing: the policy allows this script and this style by their hashes, and no
connection, image, frame or form. Text of users is escaped by the template, or is in the JSON of `data`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

import jinja2
from markupsafe import Markup
from msgspec import Struct

from ipamc.report.page import summary
from ipamc.report.page.data import Part, document
from ipamc.report.terminal_text import visible

_TEMPLATE = "page.html.j2"


class About(Struct, frozen=True, kw_only=True):
    """What the page says of itself."""

    title: str
    subtitle: str
    day: str
    """Today, ISO 8601."""
    plan: bool = False
    """Each cluster has two versions, before and after."""
    failures: Sequence[str] = ()
    """Lines about clusters that are not on the page."""
    text: str = ""
    """Shown above the maps, as it is."""


def render(parts: Sequence[Part], assets: Mapping[str, str], about: About) -> str:
    """Return the page of some clusters.

    `assets` are the files of `page/` by name: scripts are joined by name, `style.css`, `dark.css`, and the template.
    """
    script = "\n".join(assets[name] for name in sorted(assets) if name.endswith(".js"))
    # The dark theme is in both of its places: CSS has no name for a list of declarations.
    declarations = assets["dark.css"].partition("{")[2].rpartition("}")[0].strip()
    style = assets["style.css"].replace("/* dark.css */", declarations)
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return _template(assets[_TEMPLATE]).render(
        policy=policy,
        title=visible(about.title),
        subtitle=visible(about.subtitle),
        style=Markup(style),  # noqa: S704 - ours
        script=Markup(script),  # noqa: S704 - ours
        data=Markup(document(parts, day=about.day, plan=about.plan)),  # noqa: S704 - without < and >
        text=about.text,
        failures=[visible(line) for line in about.failures],
        **summary.summary(parts),
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@lru_cache(maxsize=1)
def _template(text: str) -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(text)
