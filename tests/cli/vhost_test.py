#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives for virtual machines, as far as it goes without one: `cairn serve --vhost-user`,
`cairn drive qemu-args`, and the first messages of the protocol."""

import json
import os
import shlex
import socket
import stat
import struct

import support

GET_FEATURES, GET_PROTOCOL_FEATURES, GET_CONFIG = 1, 15, 24


class VhostTest(support.CliTest):
    def serve(self, *args):
        self.control = str(self.folder / "ctl")
        return self.start_cairn("serve", *args, "--control", self.control,
                                until="Ctrl-C")

    def path(self, name="vm"):
        return str(self.folder / f"{name}.sock")

    def ask(self, *args):
        return self.run_ok("drive", *args, "--control", self.control)

    def dial(self, name="vm"):
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.settimeout(30)
        client.connect(self.path(name))
        return client

    def exchange(self, client, request, payload=b""):
        client.sendall(struct.pack("<III", request, 1, len(payload)) + payload)
        header = client.recv(12, socket.MSG_WAITALL)
        answered, flags, size = struct.unpack("<III", header)
        self.assertEqual((answered, flags), (request, 5))
        return client.recv(size, socket.MSG_WAITALL)

    def capacity(self, client):
        config = self.exchange(client, GET_CONFIG, struct.pack("<III", 0, 60, 0) + bytes(60))
        return struct.unpack_from("<Q", config, 12)[0] * 512


class Serves(VhostTest):
    def test_tells_what_to_type_and_is_its_users_alone(self):
        running = self.serve("vm=mem:size=1M", "--vhost-user", self.path())
        self.assertIn(f"serving vm to a virtual machine at {self.path()}", running.said)
        self.assertIn("qemu-system-x86_64 $(cairn drive qemu-args vm)", running.said)
        self.assertEqual(stat.S_IMODE(os.stat(self.path()).st_mode) & 0o077, 0)
        self.assertEqual(running.stop(), 0)
        self.assertFalse(os.path.exists(self.path()))

    def test_answers_a_front_end_and_the_next(self):
        running = self.serve("vm=mem:size=1M", "--vhost-user", self.path())
        for _ in range(2):
            client = self.dial()
            features = struct.unpack("<Q", self.exchange(client, GET_FEATURES))[0]
            for bit in (6, 9, 12, 13, 14, 28, 29, 30, 32, 34):
                self.assertTrue(features >> bit & 1, f"feature {bit}")
            protocol = struct.unpack("<Q", self.exchange(client, GET_PROTOCOL_FEATURES))[0]
            for bit in (0, 1, 3, 5, 9, 12, 13, 15, 16):
                self.assertTrue(protocol >> bit & 1, f"feature {bit} of the protocol")
            self.assertEqual(self.capacity(client), 1 << 20)
            client.close()
        client = self.dial()
        client.sendall(struct.pack("<III", 77, 1, 4) + b"what")
        self.assertEqual(client.recv(1), b"", "a front end that asks for nothing we know is left")
        self.assertEqual(running.stop(), 0)
        self.assertIn("vm was left", running.log)

    def test_doors_come_and_go(self):
        self.serve("vm=mem:size=1M", "--nbd", f"unix:{self.folder / 'nbd'}")
        for _ in range(2):
            said = self.ask("door", "add", "vm", "--vhost-user", self.path())
            self.assertIn("cairn drive qemu-args vm", said)
            self.assertIn(self.path(), self.ask("qemu-args", "vm"))
            client = self.dial()
            self.assertEqual(self.capacity(client), 1 << 20)
            self.ask("door", "remove", "vm", "--vhost-user", self.path())
            self.assertEqual(client.recv(1), b"")
            self.assertFalse(os.path.exists(self.path()))
        self.ask("door", "add", "vm", "--vhost-user", self.path())
        result = self.run_cairn("drive", "door", "add", "vm", "--vhost-user", self.path("other"),
                                "--control", self.control)
        self.expect_sentence(result, 1, "one vhost-user door", "cairn drive door remove")

    def test_a_resize_is_in_the_configuration(self):
        running = self.serve("vm=mem:size=1M", "--vhost-user", self.path())
        client = self.dial()
        self.assertEqual(self.capacity(client), 1 << 20)
        self.ask("resize", "vm", "2M")
        self.assertEqual(self.capacity(client), 2 << 20)
        self.assertEqual(running.stop(), 0)

    def test_two_hundred_drives(self):
        args = []
        for i in range(200):
            args += [f"d{i}=mem:size=1M", "--vhost-user", f"d{i}={self.path(f'd{i}')}"]
        running = self.serve(*args)
        clients = [self.dial(f"d{i}") for i in range(200)]
        for client in clients:
            self.assertEqual(self.capacity(client), 1 << 20)
        self.assertEqual(running.stop(), 0)


class QemuArgs(VhostTest):
    def test_is_for_one_drive(self):
        self.serve("a=mem:size=1M", "b=mem:size=1M", "c=mem:size=1M", "--vhost-user",
                   f"a={self.path('a')}", "--vhost-user", f"b={self.path('b')},mode=polling")
        args = shlex.split(self.ask("qemu-args", "b", "--queues", "2", "--packed", "--boot",
                                     "--memory", "512M"))
        self.assertIn(f"socket,id=cairn-b,path={self.path('b')},reconnect=1", args)
        self.assertIn("vhost-user-blk-pci,chardev=cairn-b,num-queues=2,packed=on,bootindex=0",
                      args)
        self.assertIn("memory-backend-memfd,id=cairn-memory,size=512M,share=on", args)
        listed = json.loads(self.ask("list", "--json"))["drives"]
        self.assertEqual([drive.get("vhost_user") for drive in listed],
                         [self.path("a"), self.path("b"), None])
        for name, reason in (("c", "is served to virtual machines"), (None, "name one of a, b")):
            asked = self.run_cairn("drive", "qemu-args", *([name] if name else []), "--control",
                                   self.control)
            self.expect_sentence(asked, 1, reason)

    def test_sockets_belong_to_drives(self):
        result = self.run_cairn("serve", "a=mem:size=1M", "b=mem:size=1M",
                                "--vhost-user", "/tmp/x")
        self.expect_sentence(result, 1, "say whose socket '/tmp/x' is")
        self.expect_usage(["serve", "mem:size=1M", "--vhost-user", "/tmp/x,mode=often"],
                          "polling, adaptive or interrupt")


if __name__ == "__main__":
    support.main()
