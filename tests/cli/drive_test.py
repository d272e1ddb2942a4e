#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn serve`: what it prints, how it ends, and what it says about mistakes."""

import base64
import os
import signal
import stat
import struct

import support
from nbd_support import DriveTest

KEY = "alice:" + "5a" * 32


class Serving(DriveTest):
    def test_it_prints_what_to_type_next(self):
        running = self.serve("mem:size=1M", "boot=file:b c,size=1M")
        for part in ("serving mem:size=1M,block=4096 as d0 at unix:", "as boot at 127.0.0.1:",
                     f"nbdinfo 'nbd+unix:///d0?socket={self.socket}'",
                     f"nbdinfo 'nbd://127.0.0.1:{self.port}/boot'", "qemu-system-x86_64 -drive"):
            self.assertIn(part, running.said)
        self.assertEqual(stat.S_IMODE(os.stat(self.socket).st_mode) & 0o077, 0)
        self.assertEqual(running.stop(signal.SIGINT), 0)
        self.assertEqual(running.log, "")
        self.assertFalse(self.socket.exists())

    def test_with_keys_the_line_has_them(self):
        os.chmod(self.write("k.psk", KEY), 0o600)
        running = self.serve("mem:size=1M", "--tls-psk", "k.psk")
        self.assertIn(f"nbds+unix://alice@/d0?socket={self.socket}"
                      f"&tls-psk-file={self.folder / 'k.psk'}", running.said)

    def test_it_ends_while_clients_are_connected(self):
        for args in ([], ["--io", "epoll"]):
            running = self.serve("mem:size=1M", *args)
            client = self.dial()
            client.sendall(struct.pack(">I", 3))
            other = self.dial()  # says nothing at all
            self.assertEqual(len(client.recv(18, 0)), 18)
            self.assertEqual(running.stop(), 0)
            self.assertEqual(client.recv(1), b"")
            other.close()


class Keys(DriveTest):
    def test_a_new_key_is_its_owners_alone_and_another_each_time(self):
        path = self.folder / "a.key"
        self.run_ok("key", "new", "drive", "--output", str(path))
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(len(base64.b64decode(path.read_text(), validate=False)), 64)
        self.assertNotEqual(self.run_ok("key", "new", "drive"), self.run_ok("key", "new", "drive"))
        before = path.read_text()
        self.expect_sentence(self.run_cairn("key", "new", "drive", "--output", str(path)), 1,
                             "a key is not overwritten")
        self.assertEqual(path.read_text(), before)


class Mistakes(DriveTest):
    def test_args_that_are_wrong(self):
        for args, part in (
                (["disk0"], "'disk0' is no drive"),
                (["a=disk0"], "'disk0' is no drive"),
                (["mem:size=1M", "--nbd", "here"], "write unix:/run/cairn.sock or"),
                (["mem:size=1M", "--nbdd=x"], "did you mean '--nbd'?"),
                (["mem:size=1M", "--drain-timeout", "soon"], "--drain-timeout")):
            self.expect_usage(["serve", *args], part)
        self.expect_usage(["drive"], "needs a command: list")
        self.expect_sentence(self.run_cairn("serve"), 1, "there is nothing to serve")

    def test_what_cannot_be_served(self):
        self.write("wide.psk", KEY)
        os.chmod(self.write("bad.psk", "\nalice:12"), 0o600)
        for args, parts in (
                (["a=mem:size=1M", "a=mem:size=1M"], ["two drives are named 'a'"]),
                (["file:none"], ["add ,size=8G to have the file made"]),
                (["mem:size=1M", "--nbd", "192.0.2.1:1"], ["cannot listen at 192.0.2.1:1"]),
                (["mem:size=1M", "--tls-psk", "none"], ["'", "cannot be read"]),
                (["mem:size=1M", "--tls-psk", "wide.psk"], ["chmod 600"]),
                (["mem:size=1M", "--tls-psk", "bad.psk"], ["in line 2", "psktool"])):
            result = self.run_cairn("serve", *args)
            self.expect_sentence(result, 1, *parts)

    def test_an_address_in_use_is_told(self):
        self.serve("mem:size=1M")
        result = self.run_cairn("serve", "mem:size=1M", "--nbd", f"unix:{self.socket}")
        self.expect_sentence(result, 1, "cannot listen at unix:", "end what listens there")
        self.assertTrue(self.socket.exists())


if __name__ == "__main__":
    support.main()
