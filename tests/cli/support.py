# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: how to run cairn, and what every mistake looks like."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

_options = argparse.Namespace(cairn="cairn", deny_calls="", emulator="")


class CliTest(unittest.TestCase):
    """Each test has an empty folder of its own, self.folder, which is the current one of cairn."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    @property
    def is_emulated(self):
        return bool(_options.emulator)

    def run_cairn(self, *words, denied=None, **options):
        """Runs cairn; denied=("EPERM", "io_uring_setup") makes that system call fail."""
        command = [*filter(None, _options.emulator.split(";")), _options.cairn, *words]
        if denied:
            if self.is_emulated:
                self.skipTest("an emulated program has no seccomp filter of its own")
            command = [_options.deny_calls, *denied, *command]
        options.setdefault("cwd", self.folder)
        options.setdefault("stdout", subprocess.PIPE)
        return subprocess.run(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                              errors="backslashreplace", timeout=60, check=False, **options)

    def run_ok(self, *words, **options):
        """Runs cairn, which must end well and say nothing on stderr; returns its stdout."""
        result = self.run_cairn(*words, **options)
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.returncode, 0)
        return result.stdout

    def expect_sentence(self, result, status, *parts):
        """The result is a failure told in one line on stderr that has all the parts."""
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("cairn: "), result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertEqual(result.returncode, status)

    def expect_usage(self, words, *parts):
        """These words are a mistake: one sentence, how to see help, status 2, nothing on stdout."""
        result = self.run_cairn(*words)
        self.expect_sentence(result, 2, "--help' says more.", *parts)
        self.assertEqual(result.stdout, "")

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", required=True, type=os.path.abspath)
    parser.add_argument("--deny-calls", required=True, type=os.path.abspath)
    parser.add_argument("--emulator", default="", help="a program and its arguments, with ';'")
    rest = parser.parse_known_args(namespace=_options)[1]
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])
