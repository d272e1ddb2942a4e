#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Versions and clones of a drive that is served, as a person uses them: `cairn drive tell` takes
and removes them, NBD clients read and write them as exports of their own."""

import shutil
import socket
import struct
import subprocess
import time
import unittest

import support
from nbd_support import DriveTest

MISSING = [tool for tool in ("nbdcopy", "nbdinfo") if shutil.which(tool) is None]
MIB = 1 << 20
OPTION_EXPORT_NAME = 1
REQUEST_MAGIC = 0x25609513
REQUEST_DISC = 2
FLAG_READ_ONLY = 1 << 1


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Versions(DriveTest):
    def serve(self, *args):
        self.control = str(self.folder / "ctl")
        return super().serve(*args, "--control", self.control)

    def tell(self, *args):
        return self.run_ok("drive", "tell", "d0", "snapshot", *args, "--control", self.control)

    def refused(self, *args):
        result = self.run_cairn("drive", "tell", "d0", "snapshot", *args, "--control",
                                self.control)
        self.expect_sentence(result, 1)
        return result.stderr

    def fill(self, name, byte):
        """Writes the first MiB of a drive or view."""
        self.write("in", bytes([byte]) * MIB)
        subprocess.run(["nbdcopy", self.folder / "in", self.uri(name)], check=True, timeout=60)

    def holds(self, name, byte):
        out = self.folder / "out"
        subprocess.run(["nbdcopy", self.uri(name), out], check=True, timeout=60)
        data = out.read_bytes()
        self.assertEqual(set(data[:MIB]), {byte}, name)
        self.assertEqual(data[MIB:].count(0), len(data) - MIB, name)

    def use(self, name):
        """An NBD client that has an export open and asks nothing; returns its flags too."""
        client = self.dial()
        self.take(client, 18)
        client.sendall(struct.pack(">I", 3))
        client.sendall(b"IHAVEOPT" + struct.pack(">II", OPTION_EXPORT_NAME, len(name))
                       + name.encode())
        _, flags = struct.unpack(">QH", self.take(client, 10))
        return client, flags

    @staticmethod
    def take(client, count):
        data = client.recv(count, socket.MSG_WAITALL)
        if len(data) != count:
            raise AssertionError(f"the server closed after {len(data)} of {count} bytes")
        return data

    def leave(self, client):
        client.sendall(struct.pack(">IHHQQI", REQUEST_MAGIC, 0, REQUEST_DISC, 0, 0, 0))
        self.wait_unused()

    def wait_unused(self):
        """A view is given back after its last client has gone; waits for that."""
        deadline = time.monotonic() + 60
        while "in use" in (listed := self.tell("list")):
            self.assertLess(time.monotonic(), deadline, listed)

    def check_versions(self, stack):
        running = self.serve(stack)
        self.fill("d0", 1)
        self.assertEqual(self.tell("take"), "version 1\n")
        self.fill("d0", 2)
        self.holds("d0@1", 1)
        self.holds("d0", 2)
        self.assertEqual(self.tell("clone", "1", "c"), "clone:c of version 1\n")
        self.fill("d0@clone:c", 3)
        for name, byte in (("d0@clone:c", 3), ("d0@1", 1), ("d0", 2)):
            self.holds(name, byte)
        listed = self.tell("list")
        self.assertRegex(listed, r"(?m)^version 1\b")
        self.assertIn("clone:c of version 1", listed)
        # What is used stays, and what a clone stands on.
        client, flags = self.use("d0@clone:c")
        self.assertFalse(flags & FLAG_READ_ONLY)
        self.assertIn("in use", self.refused("remove", "clone:c"))
        self.leave(client)
        self.assertNotEqual(self.refused("remove", "1"), "")
        self.assertEqual(self.tell("remove", "clone:c"), "removed clone:c\n")
        client, flags = self.use("d0@1")
        self.assertTrue(flags & FLAG_READ_ONLY)
        self.assertIn("in use", self.refused("remove", "1"))
        self.leave(client)
        # A kill changes no version; the same line finds it again.
        running.kill()
        running = self.serve(stack)
        self.holds("d0@1", 1)
        self.holds("d0", 2)
        self.wait_unused()
        self.assertEqual(self.tell("remove", "1"), "removed version 1\n")
        result = subprocess.run(["nbdinfo", "--size", self.uri("d0@1")], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=60)
        self.assertNotEqual(result.returncode, 0)
        self.holds("d0", 2)
        self.assertEqual(running.stop(), 0)

    def test_versions_and_clones_are_exports(self):
        self.check_versions("snapshot(file:a,size=16M)")

    def test_views_are_found_below_filters(self):
        self.check_versions("priority(snapshot(file:a,size=16M))")


if __name__ == "__main__":
    support.main()
