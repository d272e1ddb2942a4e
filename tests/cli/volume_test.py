# SPDX-License-Identifier: Apache-2.0
"""`cairn arbiter`, `cairn pool`, `cairn volume` and `cairn serve volume:NAME`: elastic volumes over
boxes that are processes of this machine, while each kind of process is killed."""

import os
import shutil
import socket
import subprocess
import time
import unittest

import support
from box_support import BoxTest
from nbd_support import DriveTest

MIB = 1 << 20
TOOLS = ("nbdcopy", "nbdinfo", "qemu-io")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


class VolumeTest(DriveTest, BoxTest):
    """Boxes of two file drives each, and arbiters over one metadata server."""

    def wait_for(self, holds):
        """Asks again and again; what never holds is a failure."""
        end = time.monotonic() + support.HANGS_S
        while not holds():
            self.assertLess(time.monotonic(), end, "it never held")

    def start_drives(self, name, port, size="64M", count=2):
        drives = [f"file:{self.folder}/{name}-{i},size={size}" for i in range(count)]
        return self.start(["serve", *drives, "--nvme-tcp", f"127.0.0.1:{port}", "--nqn",
                           self.nqn(name), "--state", f"{self.folder}/{name}.state",
                           "--control", f"{self.folder}/{name}.sock"])

    def nqn(self, name):
        return f"nqn.2026-11.io.cairn:{name}"

    def place(self, name, port):
        return f"nvme-tcp://127.0.0.1:{port}/{self.nqn(name)}"

    def start_metadata(self):
        self.store = self.start_cairn("rack", "serve", "meta", "--listen", "127.0.0.1:0",
                                      until="Ctrl-C", env=self.env)
        return self.store.said.split("--rack ")[1].split()[0].strip("'")

    def start_arbiter(self, name, meta, until="stands by", *args):
        return self.start_cairn("arbiter", "--meta", meta, "--listen", self.at(name), *args,
                                until=until, env=self.env)

    def at(self, name):
        return f"unix:{self.folder}/{name}.arbiter"

    def start_pool(self, boxes=2, more=()):
        """One arbiter in this process' folder, and boxes whose drives are all in its pool."""
        self.ports = {f"box{i}": free_port() for i in range(boxes)}
        self.boxes = {name: self.start_drives(name, port) for name, port in self.ports.items()}
        self.arbiter = self.start_cairn("arbiter", "--meta", "rocks:pool", *more,
                                        until="it leads", env=self.env)
        for name, port in self.ports.items():
            self.run_ok("pool", "add", self.place(name, port), "--box", name)

    def open_volume(self, args="volume:vol0", until="Ctrl-C"):
        self.socket.unlink(missing_ok=True)
        return self.start_cairn("serve", f"v={args}", "--nbd", f"unix:{self.socket}", "--control",
                                f"{self.folder}/client.sock", until=until, env=self.env)

    def tool(self, *args):
        result = subprocess.run([*map(str, args)], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def copy_in(self, data):
        self.write("in", data)
        self.tool("nbdcopy", "--flush", self.folder / "in", self.uri("v"))

    def expect_data(self, data):
        self.tool("nbdcopy", self.uri("v"), self.folder / "out")
        self.assertEqual((self.folder / "out").read_bytes()[:len(data)], data)

    def volume(self, name="vol0", *more):
        return self.ask("volume", "show", name, *more)

    def drives(self, *more):
        return self.ask("pool", "list", *more)["drives"]


@unittest.skipIf(MISSING, f"not here: {', '.join(MISSING)}")
class Volumes(VolumeTest):
    def test_a_volume_is_made_written_and_shown(self):
        self.start_pool()
        self.assertEqual([each["box"] for each in self.drives()], ["box0"] * 2 + ["box1"] * 2)
        self.assertIn("cairn serve volume:vol0",
                      self.run_ok("volume", "create", "vol0", "--size", "24M", "--replicas", "3"))
        self.open_volume()
        data = os.urandom(9 * MIB)
        self.copy_in(data)
        self.expect_data(data)
        shown = self.volume()
        self.assertEqual((shown["replicas"], shown["lacking"], shown["state"]), (3, 0, "ok"))
        self.assertGreaterEqual(shown["mapped"], 10 * MIB)
        self.assertEqual(len(shown["placements"][0]["scores"]), 4)
        chosen = [row["chosen"] for row in shown["placements"][0]["scores"]]
        self.assertEqual(sum(chosen), 3)
        self.assertIn("chosen", self.run_ok("volume", "show", "vol0", "--why"))
        self.assertIn("vol0", self.run_ok("volume", "list"))
        self.assertIn("leads", self.run_ok("arbiter", "status"))

    def test_a_box_is_killed_and_comes_back(self):
        self.start_pool(boxes=3)
        self.run_ok("volume", "create", "vol0", "--size", "24M", "--replicas", "3")
        client = self.open_volume()
        before = os.urandom(8 * MIB)
        self.copy_in(before)
        self.boxes["box0"].kill()
        self.expect_data(before)
        after = os.urandom(8 * MIB)
        self.copy_in(after)
        self.expect_data(after)
        self.assertGreater(self.volume()["lacking"], 0)
        self.boxes["box0"] = self.start_drives("box0", self.ports["box0"])
        self.wait_for(lambda: self.volume()["lacking"] == 0)
        # What it missed is there: another box is not needed any more.
        self.boxes["box1"].kill()
        self.expect_data(after)
        self.assertEqual(client.stop(), 0)

    def test_arbiters_are_killed_and_another_leads(self):
        meta = self.start_metadata()
        port = free_port()
        self.start_drives("box0", port)
        first = self.start_arbiter("a", meta, "it leads")
        second = self.start_arbiter("b", meta)
        both = f"{self.at('a')},{self.at('b')}"
        self.run_ok("pool", "add", self.place("box0", port), "--arbiter", both)
        self.run_ok("volume", "create", "vol0", "--size", "24M", "--replicas", "2", "--arbiter",
                    both)
        states = [each["state"] for each in
                  self.ask("arbiter", "status", "--arbiter", both)["arbiters"]]
        self.assertEqual(states, ["leads", "stands by"])
        client = self.open_volume(f"volume:vol0,arbiter={self.at('a')},arbiter={self.at('b')}")
        data = os.urandom(6 * MIB)
        self.copy_in(data)
        first.kill()
        # Mapped I/O goes on at once; the new extents of a larger file when the other one leads.
        self.expect_data(data)
        data = os.urandom(20 * MIB)
        self.copy_in(data)
        self.expect_data(data)
        self.assertEqual(client.stop(), 0)
        self.assertEqual(second.log.count("error"), 0)

    def test_a_client_is_killed_and_another_opens_what_it_left(self):
        self.start_pool()
        self.run_ok("volume", "create", "vol0", "--size", "24M", "--replicas", "3")
        first = self.open_volume()
        data = os.urandom(8 * MIB)
        self.copy_in(data)
        first.kill()
        # Nobody knows that it is dead: its lease holds.
        self.socket.unlink(missing_ok=True)
        self.expect_refusal("volume:vol0", "somebody else has it open", "take-over=yes")
        second = self.open_volume("volume:vol0,take-over=yes")
        self.expect_data(data)
        self.assertEqual(second.stop(), 0)
        # What was given back is open to all at once.
        third = self.open_volume()
        self.expect_data(data)
        self.assertEqual(third.stop(), 0)

    def test_one_writer_at_a_time(self):
        self.start_pool()
        self.run_ok("volume", "create", "vol0", "--size", "8M", "--replicas", "2")
        self.open_volume()
        self.copy_in(os.urandom(MIB))
        self.expect_refusal("volume:vol0", "somebody else has it open", "take-over=yes")
        taken = self.start_cairn("serve", "w=volume:vol0,take-over=yes", "--nbd",
                                 f"unix:{self.folder}/other.sock", "--control",
                                 f"{self.folder}/other-control.sock", until="Ctrl-C", env=self.env)
        # The first one says so, and writes no more.
        failed = subprocess.run(["qemu-io", "-f", "raw", "-c", "write -P 7 0 4k", "-c", "flush",
                                 self.uri("v")], capture_output=True, text=True, timeout=300,
                                check=False)
        self.assertNotEqual(failed.returncode, 0, failed.stdout)
        self.assertEqual(taken.stop(), 0)

    def expect_refusal(self, args, *parts):
        result = self.run_cairn("serve", args, "--nbd", f"unix:{self.folder}/refused.sock",
                                "--control", f"{self.folder}/refused-control.sock")
        self.assertEqual(result.returncode, 1, result.stdout)
        for part in parts:
            self.assertIn(part, result.stderr)

    def test_volumes_grow_change_and_go(self):
        self.start_pool()
        self.run_ok("volume", "create", "vol0", "--size", "8M", "--replicas", "2")
        self.run_ok("volume", "resize", "vol0", "--size", "16M")
        self.assertEqual(self.volume()["size"], 16 * MIB)
        self.run_ok("volume", "update", "vol0", "--replicas", "3", "--policy", "used=2,busy=0")
        self.assertEqual(self.volume()["replicas"], 3)
        self.assertEqual(self.volume()["weights"]["used"], 2)
        client = self.open_volume("limit(volume:vol0, iops=100000)")
        self.copy_in(os.urandom(4 * MIB))
        self.refused(("volume", "destroy", "vol0", "--yes"), "somebody has the volume open")
        self.assertEqual(client.stop(), 0)
        self.refused(("volume", "destroy", "vol0"), "are lost", "--yes")
        self.refused(("volume", "resize", "vol0", "--size", "2M"), "is lost", "--yes")
        self.assertIn("would be done", self.run_ok("volume", "destroy", "vol0", "--dry-run"))
        self.assertEqual(self.volume()["size"], 16 * MIB)
        self.run_ok("volume", "destroy", "vol0", "--yes")
        self.wait_for(lambda: self.ask("volume", "list")["volumes"] == [])
        self.wait_for(lambda: all(each["free"] == each["size"] for each in self.drives()))

    def test_a_snapshot_keeps_what_a_clone_begins_with(self):
        self.start_pool()
        self.run_ok("volume", "create", "vol0", "--size", "16M", "--replicas", "2")
        client = self.open_volume()
        before = os.urandom(8 * MIB)
        self.copy_in(before)
        self.assertIn("cairn volume clone vol0@monday",
                      self.run_ok("volume", "snapshot", "vol0", "monday"))
        after = os.urandom(3 * MIB)
        self.copy_in(after)
        self.expect_data(after + before[3 * MIB:])
        self.refused(("volume", "snapshot", "vol0", "monday"), "snapshot of that name")
        self.refused(("volume", "destroy", "vol0", "--yes"), "--snapshots")
        made = self.ask("volume", "clone", "vol0@monday", "vol1")
        self.assertEqual((made["name"], made["snapshot"]), ("vol1", False))
        self.assertEqual(made["shared"], made["mapped"])
        self.assertGreaterEqual(made["shared"], 8 * MIB)
        names = [each["name"] for each in self.ask("volume", "list")["volumes"]]
        self.assertEqual(names, ["vol0", "vol1"])
        names = [each["name"] for each in self.ask("volume", "list", "--snapshots")["volumes"]]
        self.assertEqual(names, ["vol0", "vol0@monday", "vol1"])
        self.assertEqual(client.stop(), 0)
        # A snapshot is read, a clone is written, and neither is what the other is.
        client = self.open_volume("volume:vol0@monday")
        self.expect_data(before)
        failed = subprocess.run(["qemu-io", "-f", "raw", "-c", "write -P 7 0 4k", "-c", "flush",
                                 self.uri("v")], capture_output=True, text=True, timeout=300,
                                check=False)
        self.assertNotEqual(failed.returncode, 0, failed.stdout)
        self.expect_data(before)
        self.assertEqual(client.stop(), 0)
        client = self.open_volume("volume:vol1")
        self.expect_data(before)
        self.copy_in(after[::-1])
        self.assertEqual(client.stop(), 0)
        client = self.open_volume()
        self.expect_data(after + before[3 * MIB:])
        # One that is killed leaves the volume as it was; the time is a name, too.
        self.run_ok("volume", "snapshot", "vol0")
        client.kill()
        client = self.open_volume("volume:vol0,take-over=yes")
        self.expect_data(after + before[3 * MIB:])
        self.assertEqual(client.stop(), 0)
        self.refused(("volume", "destroy", "vol0@monday"), "--yes")
        self.assertIn("would be done",
                      self.run_ok("volume", "destroy", "vol0@monday", "--dry-run"))
        for name in (each["name"] for each in
                     self.ask("volume", "list", "--snapshots")["volumes"] if each["snapshot"]):
            self.run_ok("volume", "destroy", name, "--yes")
        for name in ("vol0", "vol1"):
            self.run_ok("volume", "destroy", name, "--yes")
        self.wait_for(lambda: self.ask("volume", "list", "--snapshots")["volumes"] == [])
        self.wait_for(lambda: all(each["free"] == each["size"] for each in self.drives()))

    def test_a_drive_leaves_the_pool(self):
        self.start_pool()
        self.run_ok("volume", "create", "vol0", "--size", "8M", "--replicas", "2")
        client = self.open_volume()
        data = os.urandom(8 * MIB)
        self.copy_in(data)
        self.refused(("pool", "remove", "0", "--yes"), "cairn pool drain 0")
        self.assertIn("would be done", self.run_ok("pool", "drain", "0", "--dry-run"))
        self.run_ok("pool", "drain", "0")
        self.wait_for(lambda: self.drives()[0]["extents"] == 0)
        self.wait_for(lambda: self.drives()[0]["clearing"] == 0)
        self.refused(("pool", "remove", "0"), "--yes")
        self.run_ok("pool", "remove", "0", "--yes")
        self.assertEqual([each["id"] for each in self.drives()], [1, 2, 3])
        self.expect_data(data)
        self.assertEqual(client.stop(), 0)


class Mistakes(VolumeTest):
    def test_nobody_there_is_one_sentence(self):
        self.refused(("pool", "list", "--timeout", "1"), "cairn arbiter")
        self.refused(("volume", "list", "--timeout", "1", "--arbiter", "127.0.0.1:1"),
                     "127.0.0.1:1")
        result = self.run_cairn("arbiter", "status")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no answer", result.stdout)

    def test_args_that_are_none(self):
        self.expect_sentence(self.run_cairn("arbiter"), 1, "--meta rocks:FOLDER")
        for args, part in (
                (("arbiter", "--meta", "nowhere"), "nowhere"),
                (("arbiter", "--meta", "rocks:a", "--listen", "here"), "no address"),
                (("arbiter", "--meta", "rocks:a", "--lease", "1ms"), "2s to 1h"),
                (("pool", "add", "file:disk,size=1G"), "cairn serve"),
                (("pool", "add", "nvme-tcp://127.0.0.1"), "NQN"),
                (("pool", "list", "--arbiter", "here"), "no address of an arbiter"),
                (("pool", "list", "--arbiter", "127.0.0.1:1?key=a"), "tls_key"),
                (("volume", "create", "-", "--size", "1G"), "no name of a volume"),
                (("volume", "create", "vol0", "--size", "1G", "--replicas", "4"), "3"),
                (("volume", "create", "vol0", "--size", "1G", "--policy", "fast"), "no policy"),
                (("volume", "create", "vol0"), "--size"),
                (("volume", "snapshot", "vol0", "a@b"), "no name"),
                (("volume", "clone", "vol0", "vol1"), "no snapshot"),
                (("volume", "resize", "a@b@c", "--size", "1G"), "no name of a volume"),
                (("serve", "volume:", "--nbd", "unix:a"), "no name of a volume"),
                (("serve", "volume:vol0,size=1G", "--nbd", "unix:a"), "no option of a volume"),
                (("serve", "volume:vol0,arbiter=here", "--nbd", "unix:a"), "no address")):
            with self.subTest(args):
                result = self.run_cairn(*args)
                self.assertIn(result.returncode, (1, 2))
                self.assertIn(part, result.stderr)
        self.refused(("arbiter", "--meta", "rocks:a", "--listen", "0.0.0.0:0"), "--tls-keys")

    def test_a_volume_is_a_leaf_of_stacks(self):
        for stack in ("volume:vol0", "volume:vol0@monday", "v=volume:vol0,take-over=yes",
                      "limit(volume:vol0,arbiter=unix:/a,arbiter=127.0.0.1:1, iops=1000)",
                      "mirror(volume:a,take-over=yes, volume:b)"):
            self.assertIn("volume:", self.run_ok("drive", "check", stack))
        for stack, part in (("limit(volume:-, iops=1)", "no name of a volume"),
                            ("limit(volume:vol0,arbiter=here, iops=1)", "no address")):
            result = self.run_cairn("drive", "check", stack)
            self.assertEqual(result.returncode, 2)
            self.assertIn("      ^", result.stderr)
            self.assertIn(part, result.stderr)

    def test_what_the_pool_has_not_is_refused(self):
        self.start_pool(boxes=1)
        self.refused(("volume", "create", "vol0", "--size", "1T"), "add drives")
        self.refused(("volume", "create", "vol0", "--size", "8M", "--replicas", "3"),
                     "add drives")
        self.refused(("volume", "show", "vol0"), "no such volume")
        self.refused(("volume", "destroy", "vol0", "--yes"), "no such volume")
        self.refused(("volume", "update", "vol0"), "--replicas")
        self.refused(("pool", "drain", "7"), "no drive")
        self.refused(("pool", "add", self.place("box0", self.ports["box0"])), "was not added")
        self.run_ok("volume", "create", "vol0", "--size", "8M")
        self.refused(("volume", "create", "vol0", "--size", "8M"), "volume of that name")
        result = self.run_cairn("serve", "volume:none", "--nbd", f"unix:{self.socket}")
        self.assertIn("cairn volume list", result.stderr)
        self.assertEqual(self.drives()[0]["extents"], 0)


if __name__ == "__main__":
    support.main()
