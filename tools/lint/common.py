# SPDX-License-Identifier: Apache-2.0
"""What the lints share: which files there are, C++ text without comments, and how to report.

A lint is a program `NAME.py [--root DIR]`. It prints one line per finding,
`path:line: what is wrong; what to do instead`, and exits with 1 when there is one.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

# Samples are wrong on purpose; the others are not ours.
SKIPPED_FOLDERS = {".git", ".cache", "__pycache__", "node_modules", "build", "dist"}
SAMPLES = "tools/lint/samples/"

TEST_FILE = re.compile(r"_(test|testing|fuzz)\.(h|cc|py)$|^(tests|testing|fuzz)/")


@dataclass(order=True, frozen=True)
class Finding:
    path: str
    line: int
    what: str
    instead: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.what}; {self.instead}"


def arguments(description, extra=None):
    """Parses the command line; `extra` may add options to the parser."""
    parser = argparse.ArgumentParser(description=description.strip().splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=REPOSITORY, metavar="DIR",
                        help="the tree to check (default: this repository)")
    if extra:
        extra(parser)
    parsed = parser.parse_args()
    parsed.root = parsed.root.resolve()
    if not parsed.root.is_dir():
        parser.error(f"{parsed.root} is not a folder; give --root a source tree")
    return parsed


def finish(findings):
    """Prints the findings in order and exits."""
    findings = sorted(set(findings))
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)


def files(root, *suffixes):
    """Paths relative to root, as strings with '/', of all our files with one of the suffixes.

    In a git checkout these are the tracked files and those git would offer to add; elsewhere all.
    """
    paths = _git_files(root) if (root / ".git").exists() else None
    if paths is None:
        paths = _walked_files(root)
    return sorted(path for path in paths
                  if path.endswith(suffixes or "") and not path.startswith(SAMPLES)
                  and (root / path).is_file())


def _git_files(root):
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return set(filter(None, os.fsdecode(listing).split("\0")))


def _walked_files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders
                      if name not in SKIPPED_FOLDERS and not name.startswith("build-")]
        for name in names:
            yield (pathlib.Path(folder) / name).relative_to(root).as_posix()


def read(root, path):
    return (root / path).read_text(encoding="utf-8", errors="replace")


_COMMENT_OR_LITERAL = re.compile(
    r"""//(?:\\\n|[^\n])*                               # line comment, perhaps continued
      | /\*.*?\*/                                       # block comment
      | R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"    # raw string
      | "(?:\\.|[^"\\\n])*"                             # string
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'             # character, not a digit separator
    """, re.VERBOSE | re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?!define\b)\w+[^\n]*", re.MULTILINE)


def code_only(text):
    """C++ text with comments, literals and directives but #define made blank.

    Line numbers and columns stay as they are.
    """
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    return _DIRECTIVE.sub(blank, _COMMENT_OR_LITERAL.sub(blank, text))


def includes(text):
    """Yields (line, form, name) of each #include that is not in a comment; form is '"' or '<'."""
    without_comments = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text,
                              flags=re.DOTALL)
    for number, line in enumerate(without_comments.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(1), match.group(2)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def body_of(code, begin):
    """What is between the brace before `begin` and its partner."""
    depth = 1
    for match in re.compile(r"[{}]").finditer(code, begin):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return code[begin:match.start()]
    return code[begin:]
