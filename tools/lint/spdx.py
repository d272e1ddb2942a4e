#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source file that is not empty begins with its licence, on line 1 or right after #!."""

import re

from common import Finding, arguments, files, finish

SUFFIXES = (".h", ".cc", ".c", ".py", ".sh", ".cmake", "CMakeLists.txt", ".proto", ".ts", ".js",
            ".mjs", ".css")
LICENCE_LINE = re.compile(rb"^(?://|#|/\*) SPDX-License-Identifier: Apache-2\.0(?: \*/)?$")


def check_file(root, path):
    with (root / path).open("rb") as source:
        line = source.readline()
        is_script = line.startswith(b"#!")
        if not line or (not is_script and not path.endswith(SUFFIXES)):
            return None
        number = 1
        if is_script:
            line, number = source.readline(), 2
    if LICENCE_LINE.match(line.rstrip(b"\r\n")):
        return None
    return Finding(path, number, "has no licence line",
                   "begin with a comment 'SPDX-License-Identifier: Apache-2.0'")


def main():
    root = arguments(__doc__).root
    findings = (check_file(root, path) for path in files(root))
    finish(finding for finding in findings if finding)


if __name__ == "__main__":
    main()
