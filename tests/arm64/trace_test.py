#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A simulated run is a function of its seed, whatever machine it runs on."""

import subprocess
import unittest

import arm_support
import support


class SameRuns(unittest.TestCase):
    def hashes(self, *command):
        """By name and seed."""
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                timeout=support.HANGS_S, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return dict(line.rsplit(" ", 1) for line in result.stdout.splitlines())

    def test_every_scenario_has_the_same_trace(self):
        here = self.hashes(arm_support.options.here)
        there = self.hashes(*arm_support.emulator(),
                            str(arm_support.options.arm / "tests/arm64/trace_hashes"))
        self.assertGreater(len(here), 30)
        self.assertEqual(len(set(here.values())), len(here), "runs that cannot be told apart")
        self.assertEqual(here, there)


if __name__ == "__main__":
    arm_support.main()
