#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libcairn as its users meet it: installed, found by pkg-config, used by a C program."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

import support  # noqa: E402
from box_support import NQN, BoxTest  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
_options = argparse.Namespace()


class Installed(BoxTest):
    def run_tool(self, *args, **options):
        result = subprocess.run([*map(str, args)], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=100, check=False,
                                **options)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def setUp(self):
        super().setUp()
        self.tree = self.folder / "tree"
        self.run_tool("cmake", "--install", _options.build, "--prefix", self.tree,
                      "--component", "libcairn")
        self.library = next(self.tree.rglob("libcairn.so")).parent
        self.env["PKG_CONFIG_PATH"] = str(self.library / "pkgconfig")
        self.env["LD_LIBRARY_PATH"] = str(self.library)

    def build(self, source, *flags):
        """A program from one C file, with what pkg-config says."""
        told = self.run_tool("pkg-config", "--cflags", "--libs", "cairn", env=self.env).split()
        program = self.folder / source.stem
        self.run_tool(_options.compiler, "-std=c11", "-D_DEFAULT_SOURCE", "-pedantic", "-Wall",
                      "-Wextra", "-Werror", *flags, "-o", program, source, *told)
        return program

    def test_a_c_program_uses_memory_files_and_the_network(self):
        box = self.start_box("mem:size=16M")
        program = self.build(HERE / "use_drive.c")
        said = self.run_tool(program, "mem:size=16M", "file:d0,size=16M,direct=off",
                             f"nvme-tcp://127.0.0.1:{box.port}/{NQN}",
                             "mirror(mem:size=17M, mem:size=17M)",
                             "stripe(mem:size=8M, file:d1,size=9M,direct=off)",
                             env=self.env)
        self.assertIn("used 5 drives", said)
        self.assertEqual(box.stop(), 0)

    def test_a_size_that_changes_across_the_network_is_told(self):
        box = self.start_box("mem:size=16M")
        program = self.build(HERE / "use_drive.c")
        with subprocess.Popen([program, "watch", f"nvme-tcp://127.0.0.1:{box.port}/{NQN}"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=self.env) as watcher:
            self.assertEqual(watcher.stdout.readline(), f"watching {16 << 20}\n")
            self.run_ok("drive", "resize", "d0", "32M")
            self.assertEqual(watcher.stdout.readline(), f"now {32 << 20}\n")
            watcher.stdin.close()
            self.assertEqual(watcher.wait(timeout=60), 0)

    def test_the_header_is_plain_c_and_the_library_shows_nothing_else(self):
        source = self.write("plain.c", "#include <cairn.h>\n"
                            "int main(void) { return cairn_version() == 0; }\n")
        self.run_tool(self.build(source, "-Wstrict-prototypes", "-Wold-style-definition"),
                      env=self.env)
        source = self.write("plain.cc", source.read_text())
        self.run_tool(_options.compiler, "-x", "c++", "-fsyntax-only", "-Wall", "-Werror",
                      f"-I{self.tree / 'include'}", source)
        if shutil.which("nm"):
            names = [line.split()[-1] for line in self.run_tool(
                "nm", "-D", "--defined-only", self.library / "libcairn.so").splitlines()]
            self.assertGreater(len(names), 10)
            for name in names:
                self.assertRegex(name, r"^(cairn_\w+@@)?CAIRN_0$")

    def test_the_library_has_a_soname(self):
        for name in ("libcairn.so", "libcairn.so.0"):
            self.assertTrue((self.library / name).exists(), name)
        self.assertEqual(os.readlink(self.library / "libcairn.so"), "libcairn.so.0")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("--compiler", required=True)
    sys.argv[1:] = parser.parse_known_args(namespace=_options)[1]
    support.main()
