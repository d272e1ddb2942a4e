# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: how to run cairn, and what every mistake looks like."""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

# A command that takes longer hangs, whatever else the machine has to do.
HANGS_S = 600

_options = argparse.Namespace(cairn="cairn", deny_calls="", emulator="")


def two_cpus():
    """Two CPUs that cairn may use, as --cores takes them; None on a machine with one."""
    allowed = sorted(os.sched_getaffinity(0))
    return f"{allowed[0]},{allowed[1]}" if len(allowed) > 1 else None


class CliTest(unittest.TestCase):
    """Each test has an empty folder of its own, self.folder, which is the current one of cairn."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    @property
    def is_emulated(self):
        return bool(_options.emulator)

    def run_cairn(self, *args, denied=None, **options):
        """Runs cairn; denied=("EPERM", "io_uring_setup") makes that system call fail."""
        command = self.command(args, denied)
        options.setdefault("cwd", self.folder)
        options.setdefault("stdout", subprocess.PIPE)
        return subprocess.run(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                              errors="backslashreplace", timeout=HANGS_S, check=False, **options)

    def command(self, args, denied=None):
        command = [*filter(None, _options.emulator.split(";")), _options.cairn, *map(str, args)]
        if denied:
            if self.is_emulated:
                self.skipTest("an emulated program has no seccomp filter of its own")
            command = [_options.deny_calls, *denied, *command]
        return command

    def run_ok(self, *args, **options):
        """Runs cairn, which must end well and say nothing on stderr; returns its stdout."""
        result = self.run_cairn(*args, **options)
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

    def expect_usage(self, args, *parts):
        """A mistake in `args`: one sentence, how to see help, status 2, nothing on stdout."""
        result = self.run_cairn(*args)
        self.expect_sentence(result, 2, "--help' says more.", *parts)
        self.assertEqual(result.stdout, "")

    def start_cairn(self, *args, until, **options):
        """Starts a cairn that runs on; returns it once it has printed a line with `until`."""
        return Running(self, args, until, **options)

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path


class Running:
    """A cairn that serves. It is killed when its test ends, unless it has ended before."""

    def __init__(self, test, args, until, denied=None, **options):
        options.setdefault("cwd", test.folder)
        self._log = tempfile.TemporaryFile("w+", errors="backslashreplace")
        test.addCleanup(self._log.close)
        self._process = subprocess.Popen(
            test.command(args, denied), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self._log, text=True, errors="backslashreplace", **options)
        test.addCleanup(self._process.stdout.close)
        test.addCleanup(self.kill)
        self.said = ""
        for line in self._process.stdout:
            self.said += line
            if until in line:
                return
        self._process.wait()
        raise AssertionError(f"{' '.join(map(str, args))} ended with {self._process.returncode}"
                             f" before it said '{until}':\n{self.said}{self.log}")

    @property
    def pid(self):
        return self._process.pid

    @property
    def log(self):
        """What it wrote to stderr so far."""
        self._log.seek(0)
        return self._log.read()

    def send(self, number):
        self._process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        """Asks it to end; returns its status."""
        self.send(number)
        return self.wait()

    def wait(self):
        self.said += self._process.stdout.read()
        return self._process.wait(timeout=HANGS_S)

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", required=True, type=os.path.abspath)
    parser.add_argument("--deny-calls", required=True, type=os.path.abspath)
    parser.add_argument("--emulator", default="", help="a program and its arguments, with ';'")
    rest = parser.parse_known_args(namespace=_options)[1]
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])
