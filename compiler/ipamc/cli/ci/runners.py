"""The runners of a pipeline: labels of GitHub or tags of GitLab, for all clusters or by their names.

They are options of the command that writes a pipeline, and so part of its file: no request chooses one by the
files of a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from typing import Any

import click

from ipamc.cli.options import Function, checked
from ipamc.model.selector.label_syntax import subdomain_problem

Runners = tuple[tuple[str, tuple[str, ...]], ...]
"""Labels by a pattern of clusters' names: the first that fits."""

_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:@+-]*").fullmatch  # it is written into YAML and shells


def of_runners(texts: Iterable[str]) -> Runners:
    """Return labels by pattern, of texts such as `a,b` and `prod-*=a,b`; what has no pattern comes last.
    Raises ValueError for malformed text.
    """
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        pattern, equals, labels = text.rpartition("=")
        given = tuple(labels.split(","))
        if not all(map(_LABEL, given)) or (equals and subdomain_problem(pattern.replace("*", "x"))):
            raise ValueError(f"{text!r} does not have the form self-hosted,linux or prod-*=self-hosted,prod")
        found[pattern or "*"] = (*found.get(pattern or "*", ()), *given)
    return tuple(sorted(found.items(), key=lambda item: item[0] == "*"))


def runner_of(runners: Runners, name: str = "") -> tuple[str, ...]:
    """Return the labels for a cluster; without a name, those of jobs that are no cluster's."""
    return next((labels for pattern, labels in runners if fnmatchcase(name, pattern)), ())


def for_template(runner: Collection[str], apply_runner: Collection[str]) -> dict[str, Any]:
    """Return what the template of a pipeline has of the texts of both options."""
    plain, apply = of_runners(runner), of_runners(apply_runner)
    options = [("runner", text) for text in runner] + [("apply-runner", text) for text in apply_runner]
    return {
        "runner": runner_of(plain),
        "apply_runner": runner_of((*apply, *plain)),
        "per_cluster": any(pattern != "*" for pattern, _ in apply),
        "runner_options": options,
    }


def runner_options(word: str, label: str) -> Callable[[Function], Function]:
    """Return a decorator that adds --WORD and --apply-WORD, as `runner` and `apply_runner`: texts."""

    def add(command: Function) -> Function:
        more: dict[str, Any] = {"multiple": True, "callback": checked(_texts)}
        plain = f"The {label}s of the runners for the jobs, comma-separated."
        other = "The same for jobs with access to a cluster: to all clusters, or to those whose names match "
        other += f"the pattern.  [default: as --{word}]"
        kind = f"[PATTERN=]{label.upper()},…"
        command = click.option(f"--apply-{word}", "apply_runner", metavar=kind, help=other, **more)(command)
        return click.option(f"--{word}", "runner", metavar=f"{label.upper()},…", help=plain, **more)(command)

    return add


def _texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        of_runners(texts)
    except ValueError as problem:
        raise click.BadParameter(str(problem)) from None
    return texts
