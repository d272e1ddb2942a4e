#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A folder is small enough to look over, and a README names what is in it.

Folders of src/, apps/, lib/, loadgen/ and testing/ hold at most 64 sources. Each folder of src/ and
testing/ that holds sources has a README.md of at most 40 lines, or its parent has one. The first
column of a table there names every header once: `thing.h`, or `folder/thing.h` in the parent's. The
table of src/README.md has a row for each folder of src/. Wherever else such a README names a
header, there is such a header. So it is with READMEs of apps/, bench/, lib/ and loadgen/, which
name headers of the folders in them as well.
"""

import collections
import re

from common import Finding, arguments, files, finish, read

MAX_FILES = 64
MAX_README_LINES = 40
ROOTS = ("src/", "apps/", "lib/", "loadgen/", "testing/")
NAMED = ("src/", "testing/")  # where READMEs name every header
SOME = ("apps/", "bench/", "lib/", "loadgen/")  # where they name some
MAP = "src/README.md"

HEADER = re.compile(r"`([\w./-]+\.h)`")
FOLDER = re.compile(r"`([\w./-]+/)`")


def folder_of(path):
    return path.rpartition("/")[0]


class Readme:
    """What a README names, with the lines where it does."""

    def __init__(self, root, path):
        self.path = path
        self.folder = folder_of(path)
        lines = list(enumerate(read(root, path).splitlines(), 1))
        self.length = len(lines)
        self.headers = [(number, name) for number, line in lines
                        for name in HEADER.findall(line)]
        first_cells = [(number, line.split("|")[1]) for number, line in lines
                       if line.startswith("|")]
        self.header_rows = self._rows(HEADER, first_cells)
        self.folder_rows = self._rows(FOLDER, first_cells)

    @staticmethod
    def _rows(pattern, cells):
        """Maps a name in a first cell to the lines that have it."""
        rows = collections.defaultdict(list)
        for number, cell in cells:
            for name in pattern.findall(cell):
                rows[name].append(number)
        return rows


def check_sizes(sources, max_files):
    count = collections.Counter(folder_of(path) for path in sources)
    for folder, number in count.items():
        if number > max_files:
            yield Finding(folder, 1, f"has {number} sources of at most {max_files}",
                          "split it: it holds two ideas")


def check_named_once(readme, rows, name, what):
    numbers = rows.get(name, ())
    if not numbers:
        yield Finding(readme.path, 1, f"no table names `{name}` in its first column",
                      f"add a row that says what the {what} is")
    for number in numbers[1:]:
        yield Finding(readme.path, number, f"`{name}` has a row in line {numbers[0]} too",
                      "keep one")


def check_exists(readme, every_source):
    for number, name in readme.headers:
        is_below = readme.path.startswith(SOME) and any(
            path.startswith(readme.folder) and path.endswith(f"/{name}") for path in every_source)
        if not is_below and not every_source & {f"{readme.folder}/{name}", f"src/{name}", name}:
            yield Finding(readme.path, number, f"there is no `{name}`",
                          "name a header by its path from this folder or from src/, or not at all")


def check_folder(folder, headers, readmes):
    """`headers` are those that lie in the folder itself."""
    readme, prefix = readmes.get(f"{folder}/README.md"), ""
    if not readme and folder_of(folder) != "src":
        readme, prefix = readmes.get(f"{folder_of(folder)}/README.md"), folder.split("/")[-1] + "/"
    if not readme:
        yield Finding(folder, 1, "has no README.md, nor has the folder around it",
                      "write one: what it is, its headers, where to start")
        return
    for header in headers:
        yield from check_named_once(readme, readme.header_rows, prefix + header, "header")


def check_map(folders, readmes):
    readme = readmes.get(MAP)
    if not readme:
        yield Finding(MAP, 1, "is not there", "write a table with a row for each folder of src/")
        return
    names = {folder.removeprefix("src/") + "/" for folder in folders
             if folder.startswith("src/")}
    for name in names:
        yield from check_named_once(readme, readme.folder_rows, name, "folder")
    for name, numbers in readme.folder_rows.items():
        if not any(other.startswith(name) for other in names):
            yield Finding(MAP, numbers[0], f"there is no `{name}`", "remove its row")


def main():
    options = arguments(__doc__, lambda parser: parser.add_argument(
        "--max-files", type=int, default=MAX_FILES, metavar="N", help="sources in a folder"))
    root = options.root
    every_source = files(root, ".h", ".cc")
    sources = [path for path in every_source if path.startswith(ROOTS)]
    readmes = {path: Readme(root, path) for path in files(root, "README.md")
               if path.startswith(NAMED + SOME)}
    headers = {folder_of(path): [] for path in sources if path.startswith(NAMED)}
    for path in sources:
        if path.startswith(NAMED) and path.endswith(".h"):
            headers[folder_of(path)].append(path.rpartition("/")[2])

    findings = [*check_sizes(sources, options.max_files), *check_map(headers, readmes)]
    for folder, names in headers.items():
        findings += check_folder(folder, names, readmes)
    for readme in readmes.values():
        findings += check_exists(readme, set(every_source))
        may_be_long = readme.path == MAP or readme.path.startswith(SOME)
        if not may_be_long and readme.length > MAX_README_LINES:
            findings.append(Finding(readme.path, readme.length,
                                    f"has {readme.length} lines of at most {MAX_README_LINES}",
                                    "say less; a page of docs/ has room for more"))
    finish(findings)


if __name__ == "__main__":
    main()
