#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files and lines stay small enough to read: 400 lines (tests may be longer), 100 columns."""

import re

from common import TEST_FILE, Finding, arguments, files, finish, read

MAX_LINES = 400
# Those that were longer when the limit came: each may have so many lines, and not become longer.
LONGER = {
    "bench/leapio/paper.cc": 452,
    "lib/handle.cc": 417,
    "src/door/vhost_user/driver.cc": 427,
    "src/fabric/host/uri.cc": 404,
    "src/model/flash/precondition.cc": 416,
    "src/server/box/box.cc": 476,
    "src/world/uring/stream.cc": 403,
}
MAX_COLUMNS = 100
SUFFIXES = (".h", ".cc", ".c", ".py", ".sh", ".cmake", "CMakeLists.txt", ".proto", ".ts", ".js")

# These cannot be broken into two lines.
UNBREAKABLE = re.compile(r"https?://|^\s*#\s*include\b")


def check_file(root, path, max_lines):
    lines = read(root, path).splitlines()
    limit = max(max_lines, LONGER.get(path, 0))
    if len(lines) > limit and not TEST_FILE.search(path):
        yield Finding(path, len(lines), f"has {len(lines)} lines of at most {limit}",
                      "split it: it holds two ideas")
    if path in LONGER and len(lines) <= max_lines:
        yield Finding(path, len(lines), f"has no more than {max_lines} lines",
                      "remove it from LONGER in tools/lint/size.py")
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
