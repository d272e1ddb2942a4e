#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each header under src/ compiles alone, and twice in one file.

With --compile-commands the flags are those of a file in the header's own folder, so that this sees
what the build sees, and headers that the build has compiled alone already are left out: those with
#pragma once that a source of the same name includes before anything else. Without it the flags are
the plain ones below. Precompiled headers (cmake/CairnPrecompiled.cmake) would include for a header
what it forgot: they are taken out of the flags, and the build that tells of those left out is the
one for arm64 (tests/arm64), which has none.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess

from common import Finding, arguments, files, finish, includes, read

COMPILER = "clang++-19"
PLAIN_FLAGS = ["-std=c++23", "-Wall", "-Wextra", "-Werror"]
JOBS = 2
DIAGNOSTIC = re.compile(r"(?P<path>[^:\n]+):(?P<line>\d+):\d+: (?:fatal )?error: (?P<text>.*)")


def flags_of(command):
    """A compile command without its compiler, its files, precompiled headers and dependencies."""
    flags = []
    words = iter(command)
    for word in words:
        if word in ("-o", "-MF", "-MT", "-MQ", "-c", "-include-pch"):
            next(words, None)
        elif flags or word.startswith("-"):
            if word not in ("-MD", "-MMD"):
                flags.append(word)
    return flags


def sources_of(database):
    """The files that the build compiles."""
    if not database or not database.exists():
        return set()
    return {pathlib.Path(entry["directory"], entry["file"])
            for entry in json.loads(database.read_text())}


def flags_by_folder(root, database):
    """Maps a folder, such as "src/base", to the flags of one file in it; "" is any folder."""
    found = {"": PLAIN_FLAGS + ["-I", str(root / "src")]}
    if not database or not database.exists():  # cmake writes none for a tree without sources
        return found
    for entry in json.loads(database.read_text()):
        path = pathlib.Path(entry["directory"], entry["file"])
        if path.is_relative_to(root / "src"):
            folder = "/".join(path.relative_to(root).parts[:2])
            command = entry.get("arguments") or shlex.split(entry["command"])
            if not path.stem.endswith("_test"):
                found[folder] = flags_of(command)
            found.setdefault(folder, flags_of(command))
            found[""] = found[folder]
    return found


def is_built_alone(root, path, sources):
    """Whether one of `sources` begins with the header, so that the build has checked it."""
    source = path.removesuffix(".h") + ".cc"
    if root / source not in sources or "\n#pragma once\n" not in read(root, path):
        return False
    _line, form, name = next(iter(includes(read(root, source))), (0, "", ""))
    return form == '"' and f"src/{name}" == path


def check_header(root, path, flags):
    name = path.removeprefix("src/")
    program = f'#include "{name}"\n#include "{name}"\n'
    if path.endswith("_testing.h"):  # which tests include, and so may include testing/
        flags = [*flags, "-I", str(root)]
    command = [COMPILER, *flags, "-fsyntax-only", "-fno-color-diagnostics", "-x", "c++", "-"]
    result = subprocess.run(command, input=program, capture_output=True, text=True, cwd=root)
    if result.returncode == 0:
        return None
    first = DIAGNOSTIC.search(result.stderr)
    if not first:
        return Finding(path, 1, "does not compile alone", result.stderr.strip())
    where = os.path.relpath(root / first["path"], root)
    line = int(first["line"]) if where == path else 1
    return Finding(path, line, f"does not compile alone: {first['text']}",
                   "include what it uses, and #pragma once")


def main():
    options = arguments(__doc__, lambda parser: parser.add_argument(
        "--compile-commands", type=pathlib.Path, metavar="FILE",
        help="compile_commands.json to take the flags from"))
    root = options.root
    flags = flags_by_folder(root, options.compile_commands)
    sources = sources_of(options.compile_commands)
    headers = [path for path in files(root, ".h")
               if path.startswith("src/") and not is_built_alone(root, path, sources)]
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        findings = pool.map(
            lambda path: check_header(
                root, path, flags.get("/".join(path.split("/")[:2]), flags[""])), headers)
        finish(finding for finding in findings if finding)


if __name__ == "__main__":
    main()
