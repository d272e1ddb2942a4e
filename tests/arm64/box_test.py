#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A box on arm64 and a host on this machine, and the other way round."""

import json
import shutil
import subprocess
import unittest

import arm_support
import support
from box_support import NQN, BoxTest

LAYERS = "checksum(encrypt(mirror(file:l,size=24M, file:r,size=24M), key=drive.key))"


class AcrossMachines(arm_support.OnArm, BoxTest):
    def setUp(self):
        super().setUp()
        self.run_ok("key", "new", "drive", "--output", "drive.key")

    def uri(self, box):
        return f"nvme-tcp://127.0.0.1:{box.port}/{NQN}?nsid=1"

    def verify(self, box, *args):
        """Patterns, with what was acknowledged kept in a file, or checked by it."""
        report = json.loads(self.run_ok("nvme", "verify", self.uri(box), "--size", "8M", "--state",
                                        "acknowledged", "--json", *args))
        self.assertTrue(report["ok"], report)
        return report

    def test_a_box_on_arm_serves_a_host_here(self):
        with self.on_arm():
            doctor = json.loads(self.run_cairn("doctor", "--json").stdout)
            box = self.start_box(LAYERS,)
        self.assertEqual(doctor["io"]["chosen"], "epoll")
        self.assertIn("aarch64", json.dumps(doctor))
        self.verify(box, "--seconds", "2")
        self.assertEqual(box.stop(), 0, box.log)
        # What was written there reads here, by layers of this machine.
        box = self.start_box(LAYERS,)
        self.verify(box, "--check-only")
        self.assertEqual(box.stop(), 0, box.log)

    def test_a_host_on_arm_uses_a_box_here(self):
        box = self.start_box(LAYERS,)
        with self.on_arm():
            self.verify(box, "--seconds", "2")
        self.verify(box, "--check-only")
        self.assertEqual(box.stop(), 0, box.log)
        with self.on_arm():
            box = self.start_box(LAYERS,)
        self.verify(box, "--check-only")

    @unittest.skipIf(shutil.which("fio") is None, "not installed: fio")
    def test_a_drive_served_here_stands_on_a_box_on_arm(self):
        with self.on_arm():
            box = self.start_box(LAYERS,)
        self.start_cairn("serve", f"priority({self.uri(box)})", "--nbd", "unix:nbd.sock",
                         until="Ctrl-C", env=self.env)
        subprocess.run(["fio", "--name=job", "--ioengine=nbd", "--size=8M", "--rw=randwrite",
                        f"--uri=nbd+unix:///d0?socket={self.folder}/nbd.sock", "--bs=4k",
                        "--iodepth=16", "--verify=crc32c", "--verify_fatal=1", "--do_verify=1"],
                       cwd=self.folder, check=True, stdout=subprocess.PIPE,
                       timeout=support.HANGS_S)


if __name__ == "__main__":
    arm_support.main()
