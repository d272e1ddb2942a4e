#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/build_report on build folders whose logs are written here."""

import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "tools/build_report"

NINJA_LOG = """# ninja log v5
0\t9000\t0\tsrc/CMakeFiles/cairn_drive.dir/drive/drive.cc.o\taa
0\t1500\t0\tsrc/CMakeFiles/cairn_drive.dir/drive/drive.cc.o\tab
10\t2510\t0\tapps/CMakeFiles/cairn_apps.dir/nvme/list.cc.o\tac
20\t1020\t0\tfuzz/CMakeFiles/cairn_fuzzed.dir/__/src/drive/drive.cc.o\tad
30\t4030\t0\tapps/cairn\tae
"""

TEST_LOG = """Start testing
1/2 Testing: cli.box
1/2 Test: cli.box
Test time =   2.50 sec
2/2 Test: Lru.Forgets
Test time =   0.25 sec
"""


class BuildReport(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cairn-report-")
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)

    def run_report(self):
        return subprocess.run([PROGRAM, "--build", self.build], capture_output=True, text=True)

    def test_a_folder_without_a_build_is_refused_with_what_to_do(self):
        result = self.run_report()
        self.assertEqual(result.returncode, 1)
        self.assertIn("build first", result.stderr)

    def test_the_last_time_of_each_output_counts(self):
        (self.build / ".ninja_log").write_text(NINJA_LOG)
        lines = self.run_report().stdout.splitlines()
        self.assertEqual(lines[0], "outputs: 4, 9 s in all")
        self.assertIn("       1.5 s      1  src/drive", lines)
        self.assertIn("       2.5 s      1  apps/nvme", lines)
        self.assertIn("       1.0 s      1  fuzz (sources of others)", lines)
        self.assertIn("       4.0 s      1  links and the rest", lines)
        self.assertEqual(lines[-1], "tests: nothing is known")

    def test_tests_are_summed_by_suite(self):
        (self.build / ".ninja_log").write_text(NINJA_LOG)
        folder = self.build / "Testing/Temporary"
        folder.mkdir(parents=True)
        (folder / "LastTest.log").write_text(TEST_LOG)
        lines = self.run_report().stdout.splitlines()
        self.assertIn("tests: 2, 3 s in all", lines)
        self.assertIn("       2.5 s      1  cli", lines)
        self.assertIn("       0.2 s      1  Lru", lines)


if __name__ == "__main__":
    unittest.main()
