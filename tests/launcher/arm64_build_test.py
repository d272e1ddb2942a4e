#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/arm64_build on machines that cannot build for arm64: it stops with a sentence that helps.

The tools are run from a copy of the checkout's few files, with a PATH of basic utilities and fakes.
"""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
UTILITIES = ("bash cat dirname env find flock grep ln mkdir nproc printf readlink realpath rm"
             " sha256sum").split()


class Arm64Build(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cairn-arm64-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bin = self.folder / "bin"
        self.build = self.folder / "build/arm64"
        (self.folder / "tools").mkdir()
        self.bin.mkdir()
        for name in ("packages.txt", "CMakePresets.json", "tools/arm64_build",
                     "tools/arm64_sysroot"):
            shutil.copy(ROOT / name, self.folder / name)
        for utility in UTILITIES:
            (self.bin / utility).symlink_to(shutil.which(utility))
        for tool in ("qemu-aarch64", "cmake", "ninja", "dpkg-deb"):
            self.fake(tool, f'echo "{tool} $*" >>"{self.folder}/calls"')

    def fake(self, name, body):
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def run_tool(self):
        return subprocess.run([self.folder / "tools/arm64_build", self.build, "cairn", "x_test"],
                              env={"PATH": str(self.bin)}, text=True, capture_output=True,
                              timeout=60, check=False)

    def assert_refused(self, result, *phrases):
        self.assertEqual(result.returncode, 1, result.stderr)
        for phrase in phrases:
            self.assertIn(phrase, result.stderr)
        self.assertFalse((self.folder / "calls").exists(), "something was built")

    def test_without_an_emulator_it_says_who_installs_one(self):
        (self.bin / "qemu-aarch64").unlink()
        self.assert_refused(self.run_tool(), "qemu-aarch64 is missing", "'./cairn test' installs",
                            "-LE arm64")

    def test_packages_that_cannot_be_fetched_are_named_as_the_cause(self):
        self.fake("apt-get", "echo 'E: Failed to fetch' >&2; exit 100")
        self.assert_refused(self.run_tool(), "E: Failed to fetch", "could not fetch the arm64",
                            "http://deb.debian.org/debian", "without its libraries", "-LE arm64")

    def test_no_debian_no_libraries(self):
        self.assert_refused(self.run_tool(), "apt-get is missing", "on a Debian system")

    def test_libraries_that_are_there_are_not_fetched_again(self):
        # Fetches nothing and says that all is well: an empty folder is then complete.
        self.fake("apt-get", f'echo "$*" >>"{self.folder}/fetched"')
        self.fake("dpkg-deb", "true")
        self.fake("tar", "cat")
        for _ in range(2):
            result = self.run_tool()
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len((self.folder / "fetched").read_text().splitlines()), 2)
        calls = (self.folder / "calls").read_text()
        self.assertIn(f"cmake --preset arm64 -S {self.folder} -B {self.build} --fresh", calls)
        self.assertRegex(calls, rf"ninja -C {self.build} -j\d+ cairn x_test")


if __name__ == "__main__":
    unittest.main()
