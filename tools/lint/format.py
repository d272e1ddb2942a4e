#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every .h and .cc file is as clang-format-19 would write it."""

import re
import subprocess

from common import Finding, arguments, files, finish

FORMATTER = "clang-format-19"


def main():
    root = arguments(__doc__).root
    sources = files(root, ".h", ".cc")
    if not sources:
        finish([])
    result = subprocess.run([FORMATTER, "--dry-run", "-Werror", *sources],
                            capture_output=True, text=True, cwd=root)
    findings = {}
    for path, line in re.findall(r"^([^:\n]+):(\d+):\d+: error:", result.stderr, re.MULTILINE):
        findings.setdefault(path, Finding(path, int(line), "is not formatted",
                                          f"run {FORMATTER} -i {path}"))
    if result.returncode != 0 and not findings:
        raise SystemExit(f"{FORMATTER} failed: {result.stderr.strip()}")
    finish(findings.values())


if __name__ == "__main__":
    main()
