"""A kubectl and a kustomize that keep what is applied as files of a folder, and that may be killed in the middle of a call.

`kubectl.py FOLDER …`: each object is a file of its own there, written whole. Where FOLDER has a file `dies` with a number, the call of that
number kills itself; an apply has then taken a half of its objects.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

MANAGED = [
    {
        "manager": "ipamc",
        "operation": "Apply",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {}},
    }
]


def main(state: Path, arguments: list[str]) -> None:
    """Answer one call."""
    dies = _dies(state)
    if dies and "apply" not in arguments:
        os.kill(os.getpid(), signal.SIGKILL)
    if arguments[0] == "build":
        print("---\n".join(built(Path(arguments[1]))))  # noqa: T201 - the answer
        return
    words = arguments[2:]  # after --context NAME
    if words[0] == "apply":
        items = json.load(sys.stdin)["items"]
        for number, item in enumerate(items):
            if dies and number >= len(items) // 2:
                os.kill(os.getpid(), signal.SIGKILL)
            _keep(state, item)
            group = ".cilium.io" if item["kind"].startswith("Cilium") else ""
            print(f"{item['kind'].lower()}{group}/{item['metadata']['name']} serverside-applied")  # noqa: T201 - as above
    elif words[:2] == ["get", "crds"]:
        print("".join(f"{name}   True\n" for name in words[2:] if "." in name and name[0] != "-"), end="")  # noqa: T201 - as above
    elif words[0] == "get":
        _get(state, words[1], words)


def _dies(state: Path) -> bool:
    path = state / "dies"
    if not path.exists():
        return False
    left = int(path.read_text())
    path.write_text(str(left - 1))
    return left == 0


def built(folder: Path) -> list[str]:
    """Return the texts of a kustomization, in the order of its files."""
    found: list[str] = []
    for name in (
        (folder / "kustomization.yaml").read_text().partition("resources:")[2].replace("- ", "").split()
    ):
        path = folder / name
        found += built(path) if path.is_dir() else [path.read_text()]
    return found


def _keep(state: Path, item: dict[str, Any]) -> None:
    objects = state / "objects"
    objects.mkdir(exist_ok=True)
    path = objects / f"{item['kind']}.{item['metadata']['name']}.json"
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(item, sort_keys=True))
    beside.replace(path)


def _get(state: Path, kind: str, words: list[str]) -> None:
    wanted = re.sub(r"s?(\..*)?$", "", kind)
    texts = [path.read_text() for path in sorted((state / "objects").glob("*.json"))]
    found = [item for item in map(json.loads, texts) if item["kind"].lower() == wanted]
    if words[-1].startswith("jsonpath"):
        names = [] if wanted == "pod" else sorted(item["metadata"]["name"] for item in found)
        print("".join(f"{name}\tuid-{name}\t\t\t\n" for name in names), end="")  # noqa: T201 - as above
        return
    if wanted in {"configmap", "deployment"}:
        named = [item for item in found if item["metadata"]["name"] == words[2]]
        print(json.dumps(named[0]) if named and wanted == "configmap" else "")  # noqa: T201 - as above
        return
    items = [{**item, "metadata": {**item["metadata"], "managedFields": MANAGED}} for item in found]
    print(json.dumps({"items": items}))  # noqa: T201 - as above


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
