#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every test which the table of waits in docs/fabric.md names is there.

    waits_table.py --document docs/fabric.md PROGRAM...

A row without a test, and a test that no program has, are errors.
"""
import argparse
import pathlib
import re
import subprocess
import sys

BEGIN = "<!-- waits: checked by tests/fabric/waits_table.py -->"
END = "<!-- end of waits -->"


def tests_of(program):
    """Suite.Name of each, without the parameters of suites and tests."""
    listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True,
                            check=True).stdout
    found = set()
    suite = ""
    for line in listed.splitlines():
        name = line.split("#")[0].strip()
        if not line.startswith("  "):
            parts = [part for part in name.rstrip(".").split("/") if part]
            suite = parts
        else:
            found.update(f"{part}.{name.split('/')[0]}" for part in suite)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--document", type=pathlib.Path, required=True)
    parser.add_argument("programs", nargs="+")
    args = parser.parse_args()

    text = args.document.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"{args.document} has no table between '{BEGIN}' and '{END}'")
    rows = [line for line in text.partition(BEGIN)[2].partition(END)[0].splitlines()
            if line.startswith("|")][2:]
    there = set().union(*(tests_of(program) for program in args.programs))
    wrong = []
    for row in rows:
        named = re.findall(r"`([A-Za-z]+\.[A-Za-z]+)`", row.split("|")[-2])
        if not named:
            wrong.append(f"no test: {row}")
        wrong += [f"there is no test {name}: {row}" for name in named if name not in there]
    if not rows or wrong:
        sys.exit("\n".join(wrong) or f"the table in {args.document} has no rows")


if __name__ == "__main__":
    main()
