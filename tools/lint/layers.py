#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders include only what tools/lint/layers.txt allows, and open only the namespace it names.

Includes of our own files are written relative to src/: #include "base/result.h". Those of apps/,
bench/, lib/ and loadgen/ are written relative to the root: #include "apps/common/command.h".
"""

import pathlib
import re
import sys
from dataclasses import dataclass

from common import (TEST_FILE, Finding, arguments, body_of, code_only, files, finish, includes,
                    line_of, read)

TABLE = "tools/lint/layers.txt"
LAST_LAYER_OF_WORLDS = "src/env"
ANY_NAMESPACE = "-"
ROOTS = ("src/", "apps/", "bench/", "lib/", "loadgen/", "tests/", "testing/", "fuzz/")

NAMESPACE = re.compile(r"\bnamespace\s+(cairn(?:::\w+)*)\s*\{")
DEFINE = re.compile(r"^[ \t]*#[ \t]*define\b(?:\\\n|[^\n])*", re.MULTILINE)
FORWARD = re.compile(r"""\s*(?:template\s*<[^;{}]*>\s*)?
                         (?:(?:class|struct|union)\s+\w+
                           |enum\s+(?:class\s+|struct\s+)?\w+\s*(?::\s*[\w:]+\s*)?)\s*;""",
                     re.VERBOSE)


@dataclass(frozen=True)
class Line:
    """A line of the table."""
    number: int          # in the file
    kind: str            # "layer", "world" or "top"
    layer: int           # of the kind "layer"
    namespace: str
    more: tuple          # folders that may be included although they are not lower
    less: tuple          # folders that may not be included although they are lower
    for_tests: bool      # test files of every folder may include it


def is_within(folder, outer):
    return folder == outer or folder.startswith(outer + "/")


class Layers:
    """The table. Folders are named as in it: "src/base", "apps"."""

    def __init__(self, path):
        self._lines = {}
        for number, text in enumerate(path.read_text().splitlines(), 1):
            words = text.partition("#")[0].split()
            if words:
                self._add(words, number, f"{path.name}:{number}")
        if (LAST_LAYER_OF_WORLDS not in self._lines
                and any(line.kind == "world" for line in self._lines.values())):
            sys.exit(f"{path.name}: has worlds and no {LAST_LAYER_OF_WORLDS}; add its line")

    def _add(self, words, number, where):
        folder, kind, namespace, *rest = words if len(words) > 2 else (words[0], "", "")
        if folder in self._lines:
            sys.exit(f"{where}: {folder} is there twice; keep one line")
        if not (kind.isdigit() or kind in ("world", "top")) or (kind == "top" and rest):
            sys.exit(f"{where}: cannot read '{' '.join(words)}'; see the forms at the file's head")
        self._lines[folder] = Line(
            number=number, kind="layer" if kind.isdigit() else kind,
            layer=int(kind) if kind.isdigit() else 0, namespace=namespace,
            more=tuple(word for word in rest if word != "tests" and word[0] != "-"),
            less=tuple(word[1:] for word in rest if word[0] == "-"),
            for_tests="tests" in rest)

    def folders(self):
        """Yields (folder, line number) as the table has them."""
        for folder, line in self._lines.items():
            yield folder, line.number

    def has_line(self, folder):
        return folder in self._lines

    def nearest(self, folder):
        """The folder itself or the nearest one around it that has a line; None: there is none."""
        while folder and folder not in self._lines:
            folder = folder.rpartition("/")[0]
        return folder or None

    def namespace(self, folder):
        return self._lines[folder].namespace

    def objection(self, user, used, is_test):
        """Why a file in folder `user` may not include one in `used`, or None when it may."""
        by, of = self._lines[user], self._lines[used]
        if user == used or by.kind == "top" or (is_test and of.for_tests):
            return None
        if any(is_within(used, folder) for folder in by.more):
            return None
        if of.kind == "top":
            return f"{used} is above everything"
        if any(is_within(used, folder) for folder in by.less):
            return f"the table keeps {used} from it"
        if by.kind == "world":
            limit = self._lines[LAST_LAYER_OF_WORLDS].layer
            if of.kind == "layer" and of.layer <= limit:
                return None
            return f"a back end includes only {LAST_LAYER_OF_WORLDS} and lower layers"
        if of.kind == "world":
            return f"{used} is a back end, for tests and those who name it in the table"
        if of.layer < by.layer:
            return None
        return f"layer {by.layer} does not see layer {of.layer}"


def folder_of(path):
    return path.rpartition("/")[0]


def check_table(layers, sources):
    for folder, line in layers.folders():
        if not any(path.startswith(folder + "/") for path in sources):
            yield Finding(TABLE, line, f"{folder} has no sources", "remove its line")


def check_includes(layers, root, path, user):
    is_test = bool(TEST_FILE.search(path))
    for line, form, name in includes(read(root, path)):
        used = layers.nearest(folder_of("src/" + name)) or layers.nearest(folder_of(name))
        if not used:
            if form == '"' and user.startswith("src/"):
                yield Finding(path, line, f'"{name}" names no folder of src/',
                              'write includes of our files relative to src/, others in <>')
            continue
        if form == "<":
            # <base/x.h> would find our file too, and is not how ours are written.
            if (root / "src" / name).exists():
                yield Finding(path, line, f"<{name}> is one of our files", f'write "{name}"')
            continue
        objection = layers.objection(user, used, is_test)
        if objection:
            yield Finding(path, line, f"{user} includes {used}: {objection}",
                          "take it through an interface of a lower layer, or move the code")


def check_namespaces(own, root, path):
    code = DEFINE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()),
                      code_only(read(root, path)))
    for match in NAMESPACE.finditer(code):
        name = match.group(1)
        if name != own and FORWARD.sub("", body_of(code, match.end())).strip():
            yield Finding(path, line_of(code, match.start()),
                          f"opens {name}, and its folder has {own}",
                          f"write it in {own}, or move it; forward declarations may stay")


def check_file(layers, root, path):
    folder = folder_of(path)
    user = layers.nearest(folder)
    # A folder of src/ is one room, so it has a line of its own.
    if not user or (folder.startswith("src/") and not layers.has_line(folder)):
        yield Finding(path, 1, f"{folder} has no layer", f"add it to {TABLE}")
        return
    yield from check_includes(layers, root, path, user)
    if layers.namespace(user) != ANY_NAMESPACE:
        yield from check_namespaces(layers.namespace(user), root, path)


def main():
    root = arguments(__doc__).root
    table = pathlib.Path(root / TABLE)
    if not table.is_file():
        sys.exit(f"{table} is not there; give --root a source tree that has one")
    layers = Layers(table)
    sources = [path for path in files(root, ".h", ".cc") if path.startswith(ROOTS)]
    finish([*check_table(layers, sources),
            *(finding for path in sources for finding in check_file(layers, root, path))])


if __name__ == "__main__":
    main()
