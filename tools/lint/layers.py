#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders include only what layers.txt, beside this file, allows.

Includes of our own files are written relative to src/: #include "base/result.h".
"""

import pathlib
import sys

from common import TEST_FILE, Finding, arguments, files, finish, includes, read

TABLE = pathlib.Path(__file__).with_name("layers.txt")
LAST_LAYER_OF_WORLDS = "src/env"


class Layers:
    """The table. Folders are named as in it: "src/base", "apps"."""

    def __init__(self, path):
        self._numbers = {}
        self._worlds = {}
        self._top = set()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            words = line.partition("#")[0].split()
            if words:
                self._add(words, f"{path.name}:{number}")

    def _add(self, words, where):
        folder, kind, *more = words if len(words) > 1 else (*words, "")
        if self.knows(folder):
            sys.exit(f"{where}: {folder} is there twice; keep one line")
        if kind.isdigit() and not more:
            self._numbers[folder] = int(kind)
        elif kind == "world":
            self._worlds[folder] = more
        elif kind == "top" and not more:
            self._top.add(folder)
        else:
            sys.exit(f"{where}: cannot read '{' '.join(words)}'; see the forms at the file's head")

    def knows(self, folder):
        return folder in self._numbers or folder in self._worlds or folder in self._top

    def is_world(self, folder):
        return folder in self._worlds

    def objection(self, user, used, is_test):
        """Why a file in folder `user` may not include one in `used`, or None when it may."""
        if user == used or user in self._top or (is_test and self.is_world(used)):
            return None
        if used in self._top:
            return f"{used} is above everything"
        if user in self._worlds:
            limit = self._numbers[LAST_LAYER_OF_WORLDS]
            if used in self._worlds[user] or self._numbers.get(used, limit + 1) <= limit:
                return None
            return f"a back end includes only {LAST_LAYER_OF_WORLDS} and lower layers"
        if self.is_world(used):
            return f"{used} is a back end, for apps and tests alone"
        if self._numbers[used] < self._numbers[user]:
            return None
        return f"layer {self._numbers[user]} does not see layer {self._numbers[used]}"


def folder_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "src" and len(parts) > 2 else parts[0]


def check_file(layers, root, path):
    user = folder_of(path)
    if not layers.knows(user):
        yield Finding(path, 1, f"{user} has no layer", "add it to tools/lint/layers.txt")
        return
    is_test = bool(TEST_FILE.search(path))
    for line, form, name in includes(read(root, path)):
        used = "src/" + name.partition("/")[0]
        if not layers.knows(used):
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


def main():
    root = arguments(__doc__).root
    layers = Layers(TABLE)
    sources = [path for path in files(root, ".h", ".cc")
               if path.startswith(("src/", "apps/", "bench/", "lib/", "tests/", "fuzz/"))]
    finish(finding for path in sources for finding in check_file(layers, root, path))


if __name__ == "__main__":
    main()
