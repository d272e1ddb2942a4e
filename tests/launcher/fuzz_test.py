#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/fuzz with a real target for some inputs, and with programs that behave as libFuzzer does
when it finds something or is asked to stop."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = None  # a real target


class Fuzz(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cairn-fuzz-")
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        (self.build / "fuzz").mkdir()
        self.environment = {**os.environ, "CAIRN_BUILD_DIR": str(self.build)}

    def fake(self, name, body):
        """`stop` and `finds` are libFuzzer's options."""
        path = self.build / "fuzz" / f"{name}_fuzz"
        path.write_text(f"""#!/bin/bash
for option; do
  case $option in
    -stop_file=*) stop=${{option#*=}} ;;
    -artifact_prefix=*) finds=${{option#*=}} ;;
  esac
done
echo '#8 NEW cov: 12 ft: 34 corp: 1/1b'
{body}
echo 'stat::number_of_executed_units: 8'
echo 'tried: 1234 apples in 8 inputs'
""")
        path.chmod(0o755)

    def command(self, *arguments):
        return [sys.executable, "-B", ROOT / "tools/fuzz", "--no-build", *arguments]

    def run_tool(self, *arguments):
        return subprocess.run(self.command(*arguments), env=self.environment, cwd=self.build,
                              text=True, capture_output=True, timeout=100, check=False)

    def test_a_target_runs_and_is_reported(self):
        (self.build / "fuzz/address_fuzz").symlink_to(PROGRAM)
        result = self.run_tool("--runs", "500", "--json", "address")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)["targets"][0]
        self.assertEqual(report["target"], "address")
        self.assertGreaterEqual(report["runs"], 500)
        self.assertGreater(report["cov"], 0)
        self.assertGreater(report["ft"], 0)
        self.assertEqual(report["finds"], [])
        self.assertTrue(any((self.build / "fuzz/grown/address").iterdir()), "new inputs are kept")

    def test_the_table_has_a_line_for_each_target(self):
        self.fake("address", "")
        self.fake("raw", "")
        result = self.run_tool("--minutes", "1", "raw", "address")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [line.split() for line in result.stdout.splitlines()]
        self.assertEqual(lines[0], "target runs seconds cov ft finds counted".split())
        self.assertEqual([line[0] for line in lines[1:]], ["raw", "address"])
        for line in lines[1:]:
            self.assertEqual([line[1], *line[3:]], ["8", "12", "34", "0", "1,234", "apples"])
        self.assertIn("max_total_time=60", result.stderr, "both for all of the time, side by side")

    def test_a_find_is_named_with_the_command_that_repeats_it(self):
        self.fake("address", """touch ${finds}crash-1
echo "artifact_prefix='$finds'; Test unit written to ${finds}crash-1"
exit 77""")
        self.fake("raw", "")
        result = self.run_tool("--runs", "1", "address", "raw")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("find of address: fuzz/finds/address/crash-1\n"
                      "  repeat it: fuzz/address_fuzz fuzz/finds/address/crash-1\n", result.stdout)
        self.assertIn("1,234 apples", result.stdout, "the other one ran")

    def test_one_that_dies_of_no_input_is_a_find_too(self):
        self.fake("address", "kill -9 $$")
        result = self.run_tool("--runs", "1", "--json", "address")
        self.assertEqual(result.returncode, 1, result.stderr)
        find = json.loads(result.stdout)["targets"][0]["finds"][0]
        self.assertEqual(find["file"], "fuzz/logs/address")

    def test_an_interrupt_ends_the_targets_and_shows_what_was_run(self):
        started = self.build / "started"
        os.mkfifo(started)
        self.fake("address", f'echo started >"{started}"; until [[ -e $stop ]]; do :; done')
        self.fake("raw", "")
        with subprocess.Popen(self.command("--minutes", "60", "--jobs", "1", "address", "raw"),
                              env=self.environment, cwd=self.build, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tool:
            started.read_text()
            tool.send_signal(signal.SIGINT)
            output, errors = tool.communicate(timeout=100)
        self.assertEqual(tool.returncode, 130, errors)
        self.assertIn("1,234 apples", output)
        self.assertNotIn("raw", output, "nothing else is begun")

    def test_a_target_that_there_is_not_is_refused(self):
        result = self.run_tool("--runs", "1", "adress")
        self.assertEqual(result.returncode, 1)
        self.assertIn("there is no target 'adress': take some of address, ", result.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path)
    known, rest = parser.parse_known_args()
    PROGRAM = known.program.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
