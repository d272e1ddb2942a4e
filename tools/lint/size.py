#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files and lines stay small enough to read: 400 lines (tests may be longer), 100 columns."""

import re

from common import TEST_FILE, Finding, arguments, files, finish, read

MAX_LINES = 400
MAX_COLUMNS = 100
SUFFIXES = (".h", ".cc", ".c", ".py", ".sh", ".cmake", "CMakeLists.txt", ".proto", ".ts", ".js")

# These cannot be broken into two lines.
UNBREAKABLE = re.compile(r"https?://|^\s*#\s*include\b")


def check_file(root, path, max_lines):
    lines = read(root, path).splitlines()
    if len(lines) > max_lines and not TEST_FILE.search(path):
        yield Finding(path, len(lines), f"has {len(lines)} lines of at most {max_lines}",
                      "split it: it holds two ideas")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS and not UNBREAKABLE.search(line):
            yield Finding(path, number, f"has {len(line)} columns of at most {MAX_COLUMNS}",
                          "break the line")


def main():
    options = arguments(__doc__, lambda parser: parser.add_argument(
        "--max-lines", type=int, default=MAX_LINES, metavar="N", help="lines of a file"))
    finish(finding for path in files(options.root, *SUFFIXES)
           for finding in check_file(options.root, path, options.max_lines))


if __name__ == "__main__":
    main()
