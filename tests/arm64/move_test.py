#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn drive move` between processors: the layers of a drive that is served here run in a box on
arm64, and come back, under verified load."""

import json
import shutil
import subprocess
import unittest

import arm_support
import support
from nbd_support import DriveTest

TOOLS = ("nbdcopy", "fio")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
KIB = 1024


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class MovesToArm(arm_support.OnArm, DriveTest):
    # Every layer keeps something of its own on the drives below.
    LAYERS = ("checksum(encrypt(compress(snapshot(mirror(file:l,size=64M, file:r,size=64M)),"
              " codec=zstd), key=drive.key))")

    def setUp(self):
        super().setUp()
        self.run_ok("key", "new", "drive", "--output", "drive.key")
        self.control = str(self.folder / "ctl")
        self.box_control = str(self.folder / "box.sock")
        self.running = self.serve(self.LAYERS, "--control", self.control)
        with self.on_arm():
            self.box = self.start_cairn("serve", "--nvme-tcp", "127.0.0.1:0", "--control",
                                        self.box_control, "mem:size=1M",
                                        until="Ctrl-C or SIGTERM")

    def move(self, *args):
        return json.loads(self.run_ok("drive", "move", "d0", *args, "--json", "--control",
                                      self.control))

    def there(self):
        stack = self.move("--to", self.box_control)["stack"]
        self.assertRegex(stack, r"^nvme-tcp://127\.0\.0\.1:\d+/nqn\..*\?uuid=[0-9a-f-]{36}$")

    def back(self):
        self.assertTrue(self.move("--back")["stack"].startswith("checksum(encrypt(compress("))

    def errors(self):
        shown = json.loads(self.run_ok("drive", "show", "--json", "--control", self.control))
        return shown["drives"][0]["layers"][0]["errors"]

    def test_a_drive_goes_and_comes_under_verified_load(self):
        load = subprocess.Popen(
            ["fio", "--name=job", "--ioengine=nbd", f"--uri={self.uri()}", "--size=8M",
             "--rw=randwrite", "--bs=4k", "--randseed=7", "--verify=crc32c", "--verify_fatal=1",
             "--iodepth=16", "--do_verify=1", "--rate_iops=500"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(load.stdout.close)
        self.addCleanup(load.kill)
        trips = 0
        while load.poll() is None or trips < 2:
            self.there()
            self.back()
            trips += 1
        out = load.stdout.read()
        self.assertEqual(load.wait(), 0, out)
        self.assertEqual(self.errors(), 0)

    def copy(self, *args):
        subprocess.run(["nbdcopy", *args], check=True, timeout=support.HANGS_S)

    def write_all(self, salt):
        """Bytes that differ from block to block and compress somewhat, on the whole drive."""
        size = self.size()
        data = b"".join((number * 31 + salt).to_bytes(8, "little") * (4 * KIB // 8)
                        for number in range(size // (4 * KIB)))
        self.copy("--flush", self.write("in", data), self.uri())
        return data

    def size(self):
        return int(subprocess.run(["nbdinfo", "--size", self.uri()], check=True,
                                  stdout=subprocess.PIPE, text=True).stdout)

    def read_all(self):
        self.copy(self.uri(), self.folder / "out")
        return (self.folder / "out").read_bytes()

    def test_what_one_writes_the_other_reads(self):
        written = self.write_all(1)
        self.there()
        self.assertTrue(self.read_all() == written, "arm64 reads something else")
        written = self.write_all(2)
        self.assertTrue(self.read_all() == written, "arm64 reads something else than it wrote")
        self.back()
        self.assertTrue(self.read_all() == written, "what arm64 wrote reads otherwise here")
        self.assertEqual(self.errors(), 0)
        self.assertEqual(self.running.stop(), 0, self.running.log)
        self.assertEqual(self.box.stop(), 0, self.box.log)


if __name__ == "__main__":
    arm_support.main()
