"""How the jobs of a pipeline get ipamc: an index, a wheel, a commit or an image; `ipamc ci requirements`.

Each way names its content: a hash, a commit or a digest. A name that can be moved, as a tag or a branch, is
refused, because jobs with credentials run what is installed.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import click
from msgspec import Struct

from ipamc import __version__
from ipamc.cli.command import DONE, Verb
from ipamc.cli.options import checked, write_option
from ipamc.cli.terminal import say
from ipamc.workspace import disk, git
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.remote import plain_url

MARK = "# Written by 'ipamc ci "
"""The start of a file that ipamc may write again."""
SOURCE = """\
# After these, install ipamc from its commit, for which pip needs no hash:
#   pip install --no-index --no-deps --no-build-isolation '{}'
"""

Command = Callable[..., int]

_WHEEL = f"ipamc-{__version__}-py3-none-any.whl"
_NO_WAY = (
    f"the jobs have no way to get ipamc {__version__}, so no file is written: give --wheel, --git, --image "
    "or --sha256, or put the wheel from 'pip wheel --no-deps .' in a clone of ipamc into ci/"
)
_PATH = re.compile(r"[A-Za-z0-9_+./-]+").fullmatch
_COMMIT = re.compile(r"(?:git\+)?(.+)@([0-9a-f]{40})").fullmatch
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._:/-]*@sha256:[0-9a-f]{64}").fullmatch
_VARIABLES = re.compile(r"(?:[A-Za-z0-9_.-]+:)?\$\{[A-Z][A-Z0-9_]*\}").fullmatch


class Install(Struct, frozen=True, kw_only=True):
    """How jobs get ipamc: the choice that the options made."""

    hashes: tuple[str, ...] = ()  # of ipamc's own wheel; empty: keep those in the file
    wheel: str = ""  # what pip installs in place of `ipamc==VERSION`
    index: str = ""  # where pip looks for packages; "" for its default
    source: str = ""  # a commit, as pip names it
    image: str = ""  # an image that has ipamc: jobs install nothing

    def requirements(self, before: str, command: str) -> str:
        """Return the requirements file that `command` writes. `before` is its present text.
        Raises UsageError where jobs could not get ipamc.
        """
        files = disk.assets("templates/ci")
        index = f"--index-url {self.index}\n" if self.index else ""
        head = f"{MARK}{command}'. pip refuses files with another hash.\n"
        if self.source:
            own, more = SOURCE.format(self.source), files["requirements-build.txt"]
        else:
            # A wheel cannot contain its own hash: the author of the pipeline gives it.
            name, more = self.wheel or f"ipamc=={__version__}", ""
            listed = "".join(f" \\\n    --hash=sha256:{text}" for text in self.hashes)
            if not listed:
                hashes = r"((?: \\\n    --hash=sha256:[0-9a-f]{64})+)"
                known = re.search(rf"^{re.escape(name)}{hashes}$", before, re.MULTILINE)
                listed = known[1] if known else ""
            if not listed:
                raise click.UsageError(_NO_WAY)
            own = f"{name}{listed}\n"
        return f"{head}{own}{index}{files['requirements.txt']}{more}"


def _hashes(value: tuple[str, ...]) -> tuple[str, ...]:
    if odd := next((text for text in value if not re.fullmatch("[0-9a-f]{64}", text)), None):
        raise click.BadParameter(f"{odd!r} is not a SHA-256: 64 hexadecimal digits in lower case")
    return value


def _index(value: str | None) -> str:
    found = plain_url(value, ("https", "http")) if value else None
    if value and (found is None or found.query):
        raise click.BadParameter(
            f"{value!r} is not the URL of an index: write one such as https://example.org/simple"
        )
    user, at, _ = found.netloc.rpartition("@") if found else ("", "", "")
    if at and not _VARIABLES(user):
        instead = "use a variable of the job, as in https://user:${NAME}@example.org/simple"
        raise click.BadParameter(f"a password in the URL gets into git: {instead}")
    return value or ""


def _commit(value: str | None) -> str:
    if not value:
        return ""
    parts = _COMMIT(value)
    if not parts:
        instead = "give URL@ and the 40 digits of 'git rev-parse HEAD'"
        raise click.BadParameter(f"{value!r} names no commit, and a branch or a tag can move: {instead}")
    found = plain_url(parts[1], ("https", "ssh", "file"))
    if found is None or "@" in found.netloc.removeprefix("git@"):
        one = "a repository without a password, such as https://example.org/ipamc.git"
        raise click.BadParameter(f"{parts[1]!r} is not the URL of {one}")
    return f"git+{parts[1]}@{parts[2]}"


def _digest(value: str | None) -> str:
    if value and not _IMAGE(value):
        instead = "give NAME@sha256:DIGEST, as 'docker push' and 'docker buildx imagetools inspect' print it"
        raise click.BadParameter(f"{value!r} has no digest, and a tag can move: {instead}")
    return value or ""


_HELP = {
    "--wheel": "Install this wheel of ipamc: a committed file, by its path from the top of the repository, "
    "or a URL of your artifact store, with --sha256.",
    "--git": "Build ipamc from this commit of its repository. Jobs need git and access to it.",
    "--index": "Install packages from this index, which also needs the dependencies of ipamc.  "
    "[default: pip's, pypi.org]",
    "--sha256": "The SHA-256 of ipamc's wheel, as in the release or from 'sha256sum'; jobs install no "
    "other file. Repeatable.",
    "--image": "Run the jobs in this image with ipamc, git and kubectl (see Containerfile); "
    "they install nothing.",
}


def _option(name: str, *called: str, **more: Any) -> Callable[[Command], Command]:
    return click.option(name, *called, help=_HELP[name], **more)


def install_options(*, image: bool) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of every way, and passes the chosen one as `install`."""

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def run(*, image: str = "", **given: Any) -> int:
            ways = {name: given.pop(name) for name in ("wheel", "source", "index", "hashes")}
            return command(install=_chosen(**ways, image=image), **given)

        made: Command = run
        if image:
            made = _option("--image", metavar="NAME@DIGEST", callback=checked(_digest))(made)
        made = _option("--sha256", "hashes", multiple=True, metavar="HASH", callback=checked(_hashes))(made)
        made = _option("--index", metavar="URL", callback=checked(_index))(made)
        made = _option("--git", "source", metavar="URL@COMMIT", callback=checked(_commit))(made)
        return _option("--wheel", metavar="PATH|URL")(made)

    return add


def _chosen(wheel: str | None, source: str, index: str, hashes: tuple[str, ...], image: str) -> Install:
    """Return the way that the options select. Raises UsageError if they contradict each other."""
    ways = [name for name, value in (("--wheel", wheel), ("--git", source), ("--image", image)) if value]
    if len(ways) > 1:
        raise click.UsageError(f"{' and '.join(ways)} are different ways to get ipamc: omit all but one")
    if hashes and (source or image):
        raise click.UsageError(
            f"--sha256 is the hash of a wheel, which {ways[0]} does not use: omit --sha256"
        )
    if index and image:
        raise click.UsageError("jobs in an image install nothing: omit --index, or --image")
    beside = f"ci/{_WHEEL}"
    if not (ways or hashes) and disk.read_bytes(beside) is not None:
        wheel = beside
    if wheel:
        wheel, hashes = _wheel(wheel, hashes)
    return Install(hashes=hashes, wheel=wheel or "", index=index, source=source, image=image)


def _wheel(wheel: str, hashes: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the wheel as pip installs it, and its hashes."""
    path, remote = PurePath(wheel), "://" in wheel
    if remote:
        url = plain_url(wheel, ("https", "http"))
        if url is None or "@" in url.netloc:
            raise click.UsageError(f"--wheel {wheel}: not a URL of https without a user and a password")
        if not hashes:
            sha = "--sha256 HASH: run 'sha256sum' on the file on a machine that you trust"
            raise click.UsageError(f"--wheel URL needs {sha}")
        path = PurePath(url.path)
    if path.name != _WHEEL:
        raise click.UsageError(
            f"--wheel: {path.name!r} is not {_WHEEL}, the wheel of this ipamc: run the ipamc of that wheel, "
            "or build this wheel by 'pip wheel --no-deps .' in the repository of ipamc"
        )
    if remote:
        return f"ipamc @ {wheel}", hashes
    if path.is_absolute() or ".." in path.parts or not _PATH(wheel):
        copy = "copy the wheel into it, for example into ci/"
        raise click.UsageError(f"--wheel {wheel}: jobs have only the files of the repository: {copy}")
    data = disk.read_bytes(wheel)
    if data is None:
        raise click.UsageError(
            f"--wheel {wheel}: no such file: write its path from the top of the repository"
        )
    digest = hashlib.sha256(data).hexdigest()
    if hashes and digest not in hashes:
        raise click.UsageError(f"--wheel {wheel}: its SHA-256 is {digest}, which does not match --sha256")
    if git.is_ignored(".", wheel):
        instead = f"move it, or run git add --force {wheel}"
        raise click.UsageError(
            f"--wheel {wheel}: git ignores this file, so jobs would not have it: {instead}"
        )
    return f"./{path.as_posix()}", (digest,)


@click.command(cls=Verb)
@install_options(image=False)
@write_option("Write this file.  [default: -, which is stdout]", default="-")
def requirements(*, install: Install, path: str) -> int:
    """Print what a job installs, for pip: ipamc and all that it needs, with versions and hashes.

    Use it for pipelines that 'ipamc ci github' and 'ipamc ci gitlab' do not write; these write the same file
    with theirs. For a release on pypi.org, give only --sha256.

    Examples:
        ipamc ci requirements --wheel ci/ipamc-0.1.0-py3-none-any.whl --write ci/requirements.txt
            # for jobs that install a committed wheel
        ipamc ci requirements --git https://git.example.org/ipamc.git@COMMIT
            # for jobs that build ipamc from a commit; the first lines show how
        pip install --only-binary :all: --require-hashes -r ci/requirements.txt
            # what a job runs, at the top of the repository
    Exit codes:
        1: the file is not one that ipamc wrote, or an I/O or environment error
    """
    text = install.requirements("" if path == "-" else disk.read_text(path), "requirements")
    put(path, text, "ipamc ci requirements")
    return DONE


def put(path: str, text: str, command: str) -> None:
    """Write a file, unless another program wrote it; print the result. `-` is stdout."""
    if path == "-":
        click.echo(text, nl=False)
        return
    before = disk.read_text(path)
    if before and not before.startswith(MARK):
        instead = f"include the file of '{command} --write FILE' in yours"
        raise EnvironmentFailure(f"{path} was not written by ipamc: move it, or {instead}")
    say(f"{path}: {'written' if disk.replace(path, text) else 'unchanged'}")
