"""README and documentation are true: each command that a page shows is played as printed, and prints what the page shows.

`pytest tests/test_pages.py -k NAME --update` writes what they print into the page.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.page_story import ROOT, Shell, agrees, commands, pages, played


@pytest.mark.deep(part=20)
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_is_printed(page: Path, tmp_path: Path, update: bool) -> None:  # noqa: FBT001 - a fixture
    text = page.read_text()
    with Shell(tmp_path) as shell:
        now = played(text, shell)
    if update:
        page.write_text(now)
        return
    assert now == text


PAGE = """\
```yaml title="a/b.yaml"
a: 1
```

1. Then

   ```console
   $ cat a/b.yaml
   a: 1
   $ cd a && X=2
   $ printf '%s\\n' 1 \\
     2 3 $X; basename $PWD
   1
   …
   a
   ```

<!-- needs: kubectl -->
<!-- instead: touch pods -->
```console
$ kubectl get pods > pods
```

```console
$ ls pods no-pods; cat <<END
not a command
END
ls: cannot access 'no-pods': No such file or directory
pods
not a command
```
"""


def test_a_story_keeps_its_folder_and_its_files(tmp_path: Path) -> None:
    with Shell(tmp_path) as shell:
        now = played(PAGE, shell)
    assert now == PAGE


@pytest.mark.parametrize("wrong", ["a: 1\n   $ cd", "   …\n   a\n", "pods\nnot"])
def test_a_page_that_is_wrong_is_mended(wrong: str, tmp_path: Path) -> None:
    assert PAGE.count(wrong) == 1
    with Shell(tmp_path) as shell:
        now = played(PAGE.replace(wrong, wrong.replace("a", "b").replace("p", "q")), shell)
    assert now != PAGE.replace(wrong, wrong.replace("a", "b").replace("p", "q"))


@pytest.mark.parametrize(("program", "printed"), [("cat", "1"), ("no-such-program", "2")])
def test_a_block_is_played_where_its_program_is(program: str, printed: str, tmp_path: Path) -> None:
    page = f"<!-- if: {program} -->\n```console\n$ echo 1\n2\n```\n\n```console\n$ echo 1\n2\n```\n"
    with Shell(tmp_path) as shell:
        now = played(page, shell)
    assert now == page.replace("2\n", f"{printed}\n", 1)[::-1].replace("2\n"[::-1], "1\n"[::-1], 1)[::-1]


def test_a_block_begins_with_a_command() -> None:
    with pytest.raises(AssertionError, match="output without a command"):
        list(commands("1 pod\n$ ls\n"))


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\n", "a\n", True),
        ("a\n…\nb\n", "a\n1\n2\nb\n", True),
        ("a\n…\nb\n", "a\nb\n", True),
        ("a\n…\nb\n", "a\n1\n", False),
        ("a (.*)\n", "a 1\n", False),
        ("…\n", "", True),
    ],
)
def test_an_ellipsis_stands_for_any_lines(shown: str, printed: str, same: bool) -> None:  # noqa: FBT001 - a column
    assert agrees(shown, printed) is same
