# SPDX-License-Identifier: Apache-2.0
"""A kernel's nbd client in a guest uses a stack that `cairn serve` serves: file systems made,
filled, left, checked and found again, also after the server was killed."""

import pathlib
import re
import subprocess
import unittest

from kernel_host import at_end
from linux_guest import HOST_SEEN_FROM_GUEST, Guest, Setup
from target import why_no_command

ATTACH = (f"nbd-client {HOST_SEEN_FROM_GUEST} {{port}} /dev/nbd0 -N disk -b 4096"
          " -timeout 300 && wait_for 30 test -s /sys/block/nbd0/pid")
LET_GO = "nbd-client -d /dev/nbd0"


class KernelNbd(unittest.TestCase):
    """One guest for all tests; subclasses say which kernel's."""

    kernel: str
    folder: pathlib.Path
    guests: pathlib.Path
    program: pathlib.Path

    @classmethod
    def setUpClass(cls):
        if why_not := why_no_command(cls.program, "drive"):
            raise unittest.SkipTest(why_not)
        cls.guest = Guest.boot(cls.guests, cls.folder / "guest", Setup(kernel=cls.kernel))
        at_end(cls, cls.guest.kill)
        cls.guest.check("modprobe nbd nbds_max=1 max_part=0")

    def setUp(self):
        for leg in ("a", "b"):
            (self.folder / leg).unlink(missing_ok=True)
        self.server = None
        self.addCleanup(self.end_server)

    def serve(self):
        """Starts it; returns the port of its own choice."""
        self.server = subprocess.Popen(
            [self.program, "serve", "disk=mirror(file:a,size=340M, file:b,size=340M)",
             "--nbd", "127.0.0.1:0"], cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, text=True)
        for line in self.server.stdout:
            if found := re.search(r" as disk at 127\.0\.0\.1:(\d+)", line):
                return int(found.group(1))
        raise AssertionError(f"cairn ended with {self.server.wait()}")

    def end_server(self):
        if self.server:
            self.server.kill()
            self.server.wait()
            self.server.stdout.close()
            self.server = None

    def run_in_guest(self, *commands):
        return self.guest.check("set -e; " + "; ".join(commands), limit_s=300)

    def test_file_systems_keep_their_files(self):
        for kind, make, check in (("ext4", "mkfs.ext4 -q -F", "e2fsck -f -n"),
                                  ("xfs", "mkfs.xfs -q -f", "xfs_repair -n")):
            with self.subTest(kind):
                self.guest.check(f"modprobe {kind}")
                self.check_file_system(kind, make, check)

    def check_file_system(self, kind, make, check):
        attach = ATTACH.format(port=self.serve())
        wrote = self.run_in_guest(
            attach, f"{make} /dev/nbd0", f"mount -t {kind} /dev/nbd0 /mnt",
            "dd if=/dev/urandom of=/mnt/big bs=64k count=300 status=none", "cp /bin/bash /mnt/",
            "rm /mnt/bash", "cp /bin/fio /mnt/", "cd /mnt", "sha256sum big fio", "fstrim /mnt",
            "cd /", "umount /mnt", f"{check} /dev/nbd0 >/dev/null 2>&1", LET_GO)
        sums = re.findall(r"[0-9a-f]{64}  \w+", wrote)
        self.assertEqual(len(sums), 2, wrote)
        self.end_server()  # with SIGKILL
        attach = ATTACH.format(port=self.serve())
        found = self.run_in_guest(
            attach, f"{check} /dev/nbd0 >/dev/null 2>&1",
            f"mount -t {kind} -o ro /dev/nbd0 /mnt", "cd /mnt", "sha256sum big fio", "cd /",
            "umount /mnt", LET_GO)
        self.assertEqual(re.findall(r"[0-9a-f]{64}  \w+", found), sums)
        self.end_server()
