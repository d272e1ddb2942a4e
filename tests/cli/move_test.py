#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A drive that is served while its layers go to a box and come back: `cairn drive move`."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import unittest

import support
from nbd_support import DriveTest

TOOLS = ("nbdcopy", "fio")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
MIB = 1 << 20


class MoveTest(DriveTest):
    """A drive that is served, and a box."""

    def setUp(self):
        super().setUp()
        self.control = str(self.folder / "ctl")
        self.box_control = str(self.folder / "box.sock")

    def serve(self, *args):
        return super().serve(*args, "--control", self.control)

    def start_box(self):
        return self.start_cairn("serve", "--nvme-tcp", "127.0.0.1:0", "--control", self.box_control,
                                "--nqn", "nqn.2026-11.io.cairn:there", "mem:size=1M",
                                until="Ctrl-C or SIGTERM")

    def move(self, *args, name="d0"):
        return json.loads(self.run_ok("drive", "move", name, *args, "--json", "--control",
                                      self.control))

    def there(self):
        return self.move("--to", self.box_control)

    def refused(self, *args, name="d0"):
        result = self.run_cairn("drive", "move", name, *args, "--control", self.control)
        self.assertEqual(result.returncode, 1, result.stderr)
        return result.stderr

    def namespaces(self):
        return json.loads(self.run_ok("drive", "list", "--json", "--control",
                                      self.box_control))["drives"]


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Moves(MoveTest):
    LAYERS = "limit(mirror(file:l,size=16M, file:r,size=16M), iops=900000)"

    def fio(self):
        return ["fio", "--name=job", "--ioengine=nbd", f"--uri={self.uri()}", "--size=8M",
                "--rw=randwrite", "--bs=4k", "--randseed=7", "--verify=crc32c", "--verify_fatal=1"]

    def test_a_drive_goes_and_comes_under_verified_load(self):
        running = self.serve(self.LAYERS)
        self.start_box()
        load = subprocess.Popen(
            [*self.fio(), "--iodepth=16", "--do_verify=1", "--rate_iops=1000"], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(load.stdout.close)
        self.addCleanup(load.kill)
        trips = 0
        while load.poll() is None or trips < 2:
            there = self.there()
            self.assertRegex(there["stack"],
                             r"^nvme-tcp://127\.0\.0\.1:\d+/nqn\..*uuid=[-0-9a-f]+$")
            self.assertGreater(there["waited_ms"], 0)
            self.assertEqual([each["nsid"] for each in self.namespaces()], [1, 2 + trips],
                             "no nsid is used again")
            back = self.move("--back")
            self.assertRegex(back["stack"], r"^limit\(mirror\(file:")
            self.assertEqual([each["nsid"] for each in self.namespaces()], [1])
            trips += 1
        out = load.stdout.read()
        self.assertEqual(load.wait(), 0, out)
        shown = json.loads(self.run_ok("drive", "show", "--json", "--control", self.control))
        self.assertEqual(shown["drives"][0]["layers"][0]["errors"], 0)
        # Where it says it would be found, it is.
        line = self.there()["stack"]
        running.kill()
        again = self.serve(line)
        subprocess.run([*self.fio(), "--verify_only"], cwd=self.folder, check=True,
                       stdout=subprocess.PIPE, timeout=support.HANGS_S)
        self.assertEqual(again.stop(), 0)

    def test_after_a_box_was_killed_clients_learn_of_it(self):
        running = self.serve(self.LAYERS)
        box = self.start_box()
        self.there()
        self.write("in", bytes(range(256)) * (8 * MIB // 256))
        subprocess.run(["nbdcopy", "--flush", self.folder / "in", self.uri()], check=True,
                       timeout=support.HANGS_S)
        box.kill()
        said = self.refused("--back")
        self.assertIn("cannot be flushed", said)
        running.kill()
        self.serve(said.split("'d0=")[1].split("'")[0])
        subprocess.run(["nbdcopy", self.uri(), self.folder / "out"], check=True,
                       timeout=support.HANGS_S)
        self.assertEqual((self.folder / "out").read_bytes()[:8 * MIB],
                         (self.folder / "in").read_bytes())

    def test_what_is_refused_leaves_it_where_it_is(self):
        self.serve("a=priority(file:a,size=2M)", "m=priority(mem:size=1M)", "s=file:s,size=1M")
        self.assertIn("no server listens", self.refused("--to", self.box_control, name="a"))
        self.start_box()
        to = ("--to", self.box_control)
        self.assertIn("in the memory of this process", self.refused(*to, name="m"))
        self.assertIn("no drive 'b'", self.refused(*to, name="b"))
        self.assertIn("are here", self.refused("--back", name="a"))
        self.assertIn("leave out --to", self.refused("--back", *to, name="a"))
        self.assertIn("names no subsystem",
                      self.refused(*to, "--via", "nvme-tcp://127.0.0.1", name="a"))
        self.assertEqual(len(self.namespaces()), 1)
        other = "nvme-tcp://127.0.0.1:1/nqn.2026-11.io.cairn:other"
        self.assertIn("does not serve 'nqn.2026-11.io.cairn:other'",
                      self.refused(*to, "--via", other, name="a"))
        # Nobody listens there: the box has opened the layers, and gives them back.
        nqn = self.namespaces()[0]["nqn"]
        self.refused(*to, "--via", f"nvme-tcp://127.0.0.1:1/{nqn}?connect_timeout=1s", name="a")
        self.assertEqual(len(self.namespaces()), 1)
        self.move(*to, name="a")
        self.assertIn("in a box already", self.refused(*to, name="a"))
        edited = self.run_cairn("drive", "edit", "a", "limit(file:a, iops=5)", "--control",
                                self.control)
        self.expect_sentence(edited, 1, f"run in the box at {self.box_control}",
                             "'cairn drive move a --back'")
        uri = self.move("--back", name="a")["stack"]
        self.assertTrue(uri.startswith("priority(file:"), uri)


class Kept(MoveTest):
    """A server that keeps where layers went, and is started again."""

    ARGS = ("--state", "s", "a=limit(file:a,size=2M, iops=900000)", "f=file:f,size=1M")

    def stack(self, name):
        drives = json.loads(self.run_ok("drive", "list", "--json", "--control",
                                        self.control))["drives"]
        return next(each["stack"] for each in drives if each["name"] == name)

    def test_layers_come_back_after_a_restart(self):
        running = self.serve(*self.ARGS)
        self.start_box()
        for name in ("a", "f"):
            self.move("--to", self.box_control, name=name)
        self.assertEqual(len(self.namespaces()), 3)
        running.kill()
        running = self.serve(*self.ARGS)
        for name, there in (("a", "limit(file:"), ("f", "file:")):
            self.assertTrue(self.stack(name).startswith("nvme-tcp://"))
            self.assertTrue(self.move("--back", name=name)["stack"].startswith(there))
        self.assertEqual(len(self.namespaces()), 1)
        self.assertEqual(running.stop(), 0)
        self.serve(*self.ARGS)
        self.assertTrue(self.stack("a").startswith("limit(file:"))
        self.assertIn("are here", self.refused("--back", name="a"))

    def test_a_box_that_lost_them_gives_them_back_too(self):
        running = self.serve(*self.ARGS)
        box = self.start_box()
        self.move("--to", self.box_control, name="a")
        running.kill()
        box.kill()
        running = self.serve(*self.ARGS)
        self.assertIn("does not say that it has closed the layers",
                      self.refused("--back", name="a"))
        self.start_box()
        self.assertTrue(self.move("--back", name="a")["stack"].startswith("limit(file:"))
        self.assertEqual(running.stop(), 0)


class Relay:
    """A control socket that leads to another, as `ssh -L` makes one."""

    def __init__(self, test, path, target):
        self.path, self.target = path, target
        self.loses_answer_to = None
        self.start()
        test.addCleanup(self.end)

    def start(self):
        pathlib.Path(self.path).unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.run, args=(self.listener,))
        self.thread.start()

    def end(self):
        """The file stays, and nobody listens there."""
        if self.listener is None:
            return
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()
        self.listener = None

    def run(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client, socket.socket(socket.AF_UNIX) as box:
                request = client.makefile("rb").readline()
                box.connect(self.target)
                box.sendall(request)
                reply = box.makefile("rb").readline()
                if self.loses_answer_to and self.loses_answer_to in request:
                    listener.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(reply)


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Proof(MoveTest):
    """Layers over a remote drive, which both could open: only the box's word keeps them apart."""

    def setUp(self):
        super().setUp()
        legs = self.start_cairn("serve", "--nvme-tcp", "127.0.0.1:0", "--control", "off", "--nqn",
                                "nqn.2026-11.io.cairn:legs", "mem:size=8M",
                                until="Ctrl-C or SIGTERM")
        port = re.search(r"127\.0\.0\.1:(\d+)", legs.said).group(1)
        self.layers = (f"limit(nvme-tcp://127.0.0.1:{port}/nqn.2026-11.io.cairn:legs?nsid=1, "
                       "iops=900000)")
        self.serve(self.layers)
        self.start_box()
        self.data = self.write("in", bytes(range(256)) * (4 * MIB // 256))

    def copy(self, *args):
        subprocess.run(["nbdcopy", *args], check=True, timeout=support.HANGS_S)

    def check_it_is_there_and_used(self):
        """Nobody opened the layers here: the box serves on, and what is written stays."""
        self.copy("--flush", self.data, self.uri())
        self.copy(self.uri(), self.folder / "out")
        self.assertEqual((self.folder / "out").read_bytes()[:4 * MIB], self.data.read_bytes())
        listed = json.loads(self.run_ok("drive", "list", "--json", "--control", self.control))
        self.assertTrue(listed["drives"][0]["stack"].startswith("nvme-tcp:"), listed)

    def expect_no_proof(self):
        said = self.refused("--back")
        self.assertIn("does not say that it has closed the layers", said)
        self.assertIn("'cairn drive list --control ", said)
        self.assertIn(f"'d0={self.layers}'", said)
        self.check_it_is_there_and_used()

    def test_a_socket_that_is_gone_proves_nothing(self):
        self.there()
        aside = self.box_control + ".aside"
        os.rename(self.box_control, aside)
        self.expect_no_proof()
        os.rename(aside, self.box_control)
        self.assertEqual(self.move("--back")["stack"], self.layers)
        self.assertEqual(len(self.namespaces()), 1)

    def test_a_socket_at_its_limit_proves_nothing(self):
        self.there()
        held = []
        for _ in range(32):
            held.append(socket.socket(socket.AF_UNIX))
            held[-1].connect(self.box_control)
            held[-1].sendall(b'{"version": 1, "command": "status"}\n')
            held[-1].makefile("rb").readline()
        self.expect_no_proof()
        for each in held:
            each.close()
        self.assertEqual(self.move("--back")["stack"], self.layers)
        self.assertEqual(len(self.namespaces()), 1)

    def test_a_forwarded_socket_that_ended_proves_nothing(self):
        relay = Relay(self, str(self.folder / "relay.sock"), self.box_control)
        self.move("--to", relay.path)
        relay.end()
        self.expect_no_proof()
        relay.start()
        self.assertEqual(self.move("--back")["stack"], self.layers)
        self.assertEqual(len(self.namespaces()), 1)

    def test_layers_that_a_box_may_have_opened_are_not_opened_here(self):
        self.copy("--flush", self.data, self.uri())
        relay = Relay(self, str(self.folder / "relay.sock"), self.box_control)
        relay.loses_answer_to = b'"drive.add"'
        said = self.refused("--to", relay.path)
        self.assertIn("may have opened the layers of d0", said)
        self.assertIn("'cairn drive move d0 --back' asks it", said)
        self.assertEqual(len(self.namespaces()), 2, "it has")
        relay.end()
        relay.loses_answer_to = None
        relay.start()
        self.assertEqual(self.move("--back")["stack"], self.layers)
        self.assertEqual(len(self.namespaces()), 1)
        self.copy(self.uri(), self.folder / "out")
        self.assertEqual((self.folder / "out").read_bytes()[:4 * MIB], self.data.read_bytes())


if __name__ == "__main__":
    support.main()
