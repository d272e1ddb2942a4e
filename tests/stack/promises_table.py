#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the table of promises in docs/drive.md against the tests that there are.

    promises_table.py --program build/tests/stack/promises_test
                      --program build/tests/stack/boxes_test
                      --document docs/drive.md [--write]

A promise is a test of a suite that is instantiated as "Promises" over services or pairs of them. A
test that is not in COLUMNS, a service without a row and a row without its tests are errors; --write
puts the right table into the document.
"""
import argparse
import collections
import pathlib
import subprocess
import sys

# The fact that a test states, and what the column is called.
COLUMNS = {
    "AFlushCoversWhatCompletedBeforeItThoughOthersFail": "flush",
    "DurableChangesLastAsSoonAsTheyAreDone": "durable",
    "DiscardedAndZeroedBlocksReadAsZeroes": "discard, write-zeroes",
    "NoBlockIsTorn": "torn block",
    "AKillBeforeItHarmsNoBlock": "killed, then power loss",
    "AKillAloneTakesNothingUntold": "killed",
    "AnIoErrorAtAnyStepHarmsNoBlock": "EIO from below",
    "NoSpaceAtAnyStepHarmsNoBlock": "ENOSPC from below",
    "OfTwoOpenersTheFirstStopsAndTheSecondLosesNothing": "two openers",
    "UnstableMemoryHarmsNothingButWhatIsWrittenFromIt": "unstable memory",
    "KeepsWhatWasFlushed": "boxes restart",
    "TakesNothingOfAnEmptyBoxForData": "a box comes back empty",
    "TakesNothingOfABoxForDataThatIsEmptyWhenBothRestart": "and its host restarts too",
}
# Whose drives below are of its own machine.
LOCAL = {"channels"}
OF_BOXES = {"KeepsWhatWasFlushed", "TakesNothingOfAnEmptyBoxForData",
            "TakesNothingOfABoxForDataThatIsEmptyWhenBothRestart"}
# Of stacks with a mirror or parity among their services.
OF_COPIES = {"TakesNothingOfABoxForDataThatIsEmptyWhenBothRestart"}
BEGIN = "<!-- promises: made by tests/stack/promises_table.py --write -->"
END = "<!-- end of promises -->"


def promises_of(programs):
    """By fact, the names of the stacks it is tested for."""
    stacks = collections.defaultdict(set)
    for program in programs:
        listed = subprocess.run([program, "--gtest_list_tests", "--gtest_filter=Promises/*"],
                                capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            if line.startswith("  "):
                fact, _, stack = line.split("#")[0].strip().partition("/")
                stacks[fact].add(stack)
    return stacks


def cell(promises, fact, subject):
    stacks = promises[fact]
    if fact in OF_BOXES and subject in LOCAL:
        return "has no boxes"
    above = any(stack.startswith(subject + "_over_") for stack in stacks)
    below = any(stack.endswith("_over_" + subject) for stack in stacks)
    if fact in OF_COPIES and subject not in stacks:
        return "with copies" if above or below else "has no copies"
    if subject not in stacks:
        return "-"
    return "alone, in pairs" if above or below else "alone"


def table(promises):
    subjects = sorted({stack for stacks in promises.values() for stack in stacks
                       if "_over_" not in stack})
    lines = ["| | " + " | ".join(COLUMNS.values()) + " |", "|---|" + "---|" * len(COLUMNS)]
    for subject in subjects:
        cells = [cell(promises, fact, subject) for fact in COLUMNS]
        lines.append(f"| `{subject}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", action="append", required=True)
    parser.add_argument("--document", type=pathlib.Path, required=True)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()

    promises = promises_of(args.program)
    unknown = sorted(set(promises) - set(COLUMNS))
    if unknown:
        sys.exit(f"promises without a column in {__file__}: {', '.join(unknown)}")
    text = args.document.read_text()
    head, begun, rest = text.partition(BEGIN)
    old, ended, tail = rest.partition(END)
    if not begun or not ended:
        sys.exit(f"{args.document} has no table between '{BEGIN}' and '{END}'")
    new = f"\n{table(promises)}\n"
    if "| - |" in new:
        sys.exit(f"a service misses a promise:\n{new}")
    if args.write:
        args.document.write_text(head + BEGIN + new + END + tail)
    elif old != new:
        sys.exit(f"the table of promises in {args.document} is not that of the tests; run\n"
                 f"  {__file__} --program {' --program '.join(args.program)} --document"
                 f" {args.document} --write\n{new}")


if __name__ == "__main__":
    main()
