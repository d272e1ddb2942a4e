#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/failed_tests after a run of ctest itself: it repeats what failed, and nothing else."""

import pathlib
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/failed_tests"
TESTS = """\
add_test(good "sh" "-c" "echo all is well")
add_test(bad "sh" "-c" "seq 100; echo the reason; exit 3")
add_test([=[With spaces/0]=] "sh" "-c" "echo another reason; exit 1")
"""


class FailedTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cairn-failed-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_tests(self, *args):
        (self.folder / "CTestTestfile.cmake").write_text(TESTS)
        subprocess.run(["ctest", "--test-dir", self.folder, *args], capture_output=True,
                       timeout=60, check=False)

    def run_tool(self, *args):
        return subprocess.run([TOOL, "--build", self.folder, *args], capture_output=True,
                              text=True, timeout=60, check=False)

    def test_each_failure_is_told_with_its_last_lines(self):
        self.run_tests()
        result = self.run_tool("--lines", "3")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("--- bad failed; the end of what it printed:\n99\n100\nthe reason\n",
                      result.stdout)
        self.assertIn("--- With spaces/0 failed; the end of what it printed:\nanother reason\n",
                      result.stdout)
        self.assertNotIn("all is well", result.stdout)
        self.assertTrue(result.stdout.endswith("2 failed: bad With spaces/0\n"), result.stdout)

    def test_nothing_failed(self):
        self.run_tests("-R", "good")
        result = self.run_tool()
        self.assertEqual(result.returncode, 1)
        self.assertIn("knows of no test that failed", result.stderr)


if __name__ == "__main__":
    unittest.main()
