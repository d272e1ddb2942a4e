#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives behind nginx, served at a door to tools that are not ours."""

import pathlib
import random
import shutil
import subprocess
import sys
import unittest

import nginx_support

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

import support  # noqa: E402
from nbd_support import DriveTest  # noqa: E402

TOOLS = ("nbdcopy", "mke2fs", "e2fsck", "debugfs", "fio")
MISSING = [tool for tool in TOOLS if shutil.which(tool, path="/usr/sbin:/sbin:/usr/bin") is None]
if nginx_support.find_nginx() is None:
    MISSING.append("nginx with WebDAV")


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class BehindADoor(DriveTest):
    def setUp(self):
        super().setUp()
        self.nginx = nginx_support.Nginx(self, self.folder / "nginx")

    def run_tool(self, *args):
        program = shutil.which(args[0], path="/usr/sbin:/sbin:/usr/bin")
        result = subprocess.run([program, *map(str, args[1:])], cwd=self.folder, timeout=100,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                check=False)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def test_a_file_system_lives_there(self):
        files = self.folder / "files"
        files.mkdir()
        for i in range(20):
            (files / f"f{i}").write_bytes(random.Random(i).randbytes(10000 * i))
        self.run_tool("mke2fs", "-q", "-t", "ext4", "-d", files, "image", "16M")
        server = self.serve(f"{self.nginx.url}/v/d0?size=16M")
        self.run_tool("nbdcopy", "--connections=4", "image", self.uri())
        self.assertEqual(server.stop(), 0)
        # Another process, which knows no more than the place.
        self.serve(f"mirror({self.nginx.url}/v/m?size=17M, mem:size=17M)",
                   f"again={self.nginx.url}/v/d0")
        self.run_tool("nbdcopy", "--connections=4", self.uri("again"), "back")
        self.run_tool("e2fsck", "-fn", "back")
        self.run_tool("debugfs", "-R", "dump f19 f19", "back")
        self.assertEqual((self.folder / "f19").read_bytes(), (files / "f19").read_bytes())
        image = (self.folder / "image").read_bytes()
        self.assertEqual((self.folder / "back").read_bytes(), image)

    def test_fio_finds_what_it_wrote(self):
        self.serve(f"limit({self.nginx.url}/v/d0?size=8M, iops=100000)")
        self.run_tool("fio", "--name=job", "--ioengine=nbd", f"--uri={self.uri()}",
                      "--rw=randwrite", "--bs=8k", "--size=8M", "--iodepth=16",
                      "--verify=crc32c", "--verify_fatal=1")


if __name__ == "__main__":
    support.main()
