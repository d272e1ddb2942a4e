#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks that are served, looked at and changed: `cairn drive list|show|edit|resize|tell`."""

import json
import os
import shutil
import stat
import subprocess
import unittest

import support
from nbd_support import DriveTest

TOOLS = ("nbdcopy", "nbdinfo", "fio")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
MIB = 1 << 20


class LiveTest(DriveTest):
    def serve(self, *args):
        self.control = str(self.folder / "ctl")
        return super().serve(*args, "--control", self.control)

    def ask(self, *args):
        return self.run_ok("drive", args[0], *args[1:], "--control", self.control)

    def layers(self, name="d0"):
        answer = json.loads(self.ask("show", name, "--json"))
        self.assertEqual(answer["schema_version"], 1)
        (drive,) = answer["drives"]
        return {layer["path"]: layer for layer in drive["layers"]}

    def is_stack(self, name):
        return json.loads(self.ask("show", name, "--json"))["drives"][0]["is_stack"]

    def refused(self, *args):
        result = self.run_cairn("drive", *args, "--control", self.control)
        self.assertEqual(result.returncode, 1, result.stderr)
        return result.stderr


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Looks(LiveTest):
    def test_figures_of_each_layer(self):
        self.serve("limit(stripe(file:a,size=4M, file:b,size=4M), iops=100000)")
        self.write("in", bytes(range(256)) * (8 * MIB // 256))
        subprocess.run(["nbdcopy", self.folder / "in", self.uri()], check=True, timeout=60)
        layers = self.layers()
        self.assertEqual([layer["name"].split(",")[0].rsplit("/", 1)[-1]
                          for layer in layers.values()], ["limit", "stripe", "a", "b"])
        self.assertEqual(sorted(layers), ["0", "0.0", "0.0.0", "0.0.1"])
        for path in ("0", "0.0"):
            self.assertEqual(layers[path]["written_bytes"], 8 * MIB)
            self.assertEqual((layers[path]["errors"], layers[path]["in_flight"]), (0, 0))
            self.assertGreater(layers[path]["requests"]["write"], 0)
            self.assertGreaterEqual(layers[path]["max_ns"], layers[path]["p50_ns"])
        for path in ("0.0.0", "0.0.1"):
            self.assertEqual(layers[path]["written_bytes"], 4 * MIB)
        self.assertEqual(layers["0"]["options"], {"iops": "100000"})
        self.assertRegex(self.ask("show", "--prometheus"),
                         r'cairn_layer_written_bytes_total{.*path="0\.0".*} 8388608')
        shown = self.ask("show")
        for part in ("P99", "limit iops=100000", "`- stripe", "   +- file:", "   `- file:"):
            self.assertIn(part, shown)

    def test_what_did_not_wait_has_no_latency(self):
        self.serve("slice(mem:size=8M)")
        self.assertRegex(self.ask("show"), r"(?m)^`- mem:\S+ +8 MiB +0 +0\.0 +- +- ", "no requests")
        self.write("in", bytes(8 * MIB))
        subprocess.run(["nbdcopy", self.folder / "in", self.uri()], check=True, timeout=60)
        self.assertGreater(self.layers()["0.0"]["iops"], 0)
        shown = self.ask("show")
        self.assertRegex(shown, r"(?m)^`- mem:\S+ +8 MiB +\d+ +[\d.]+ +- ")
        self.assertNotIn(" 0 ns ", shown)

    def test_the_socket_is_the_users_alone(self):
        running = self.serve("a=priority(mem:size=1M)", "mem:size=1M")
        mode = os.stat(self.control).st_mode
        self.assertTrue(stat.S_ISSOCK(mode))
        self.assertEqual(stat.S_IMODE(mode), 0o600)
        listed = json.loads(self.ask("list", "--json"))["drives"]
        self.assertEqual([(each["name"], each["stack"]) for each in listed],
                         [("a", "priority(mem:size=1048576,block=4096)"),
                          ("d1", "mem:size=1048576,block=4096")])
        # People read sizes as they write them; programs read bytes.
        self.assertRegex(self.ask("list"), r"(?m)^d1 +ok +mem:size=1M,block=4096 ")
        self.assertRegex(self.ask("show", "a"), r"(?m)^`- mem:size=1M,block=4096 ")
        self.assertIn("reads=0 writes=0", self.ask("show", "d1"))
        self.assertIn("a single drive, mem:size=1M,block=4096, and takes no commands",
                      self.refused("tell", "d1", "0", "go"))
        self.assertIn("takes no commands", self.refused("tell", "a", "priority", "go"))
        self.assertIn("there is no layer 'x'", self.refused("tell", "a", "x", "go"))
        self.assertIn("no drive 'b'", self.refused("show", "b"))
        self.assertEqual(running.stop(), 0)
        self.assertFalse(os.path.exists(self.control))
        self.assertIn("no server listens at", self.refused("show"))

    def test_watching_shows_one_object_after_the_other(self):
        self.serve("priority(mem:size=1M)")
        watch = subprocess.Popen(
            self.command(["drive", "show", "--watch", "--json", "--interval", "1ms", "--control",
                          self.control]), stdout=subprocess.PIPE, text=True)
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.kill)
        for _ in range(3):
            self.assertEqual(json.loads(watch.stdout.readline())["schema_version"], 1)
        watch.terminate()
        self.assertEqual(watch.wait(60), 0)


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Edits(LiveTest):
    LEGS = "file:l,size=16M, file:r,size=16M"

    def fio(self):
        return ["fio", "--name=job", "--ioengine=nbd", f"--uri={self.uri()}", "--size=8M",
                "--rw=randwrite", "--bs=4k", "--randseed=7", "--verify=crc32c", "--verify_fatal=1"]

    def test_a_stack_is_changed_under_verified_load(self):
        running = self.serve(f"mirror({self.LEGS})")
        load = subprocess.Popen(
            [*self.fio(), "--iodepth=16", "--do_verify=1", "--rate_iops=1000"], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(load.stdout.close)
        self.addCleanup(load.kill)
        stacks = ["priority(mirror({}))", "limit(priority(mirror({})), iops=90000)",
                  "priority(limit(mirror({}), iops=80000))", "mirror({}, rate=1G)",
                  "slice(mirror({}, rate=1G))", "mirror(limit(file:l, iops=70000), file:r)"]
        edits = 0
        while load.poll() is None or edits < len(stacks):
            stack = stacks[edits % len(stacks)].format("file:l, file:r")
            said = self.ask("edit", "d0", stack)
            self.assertIn("cairn serve 'd0=", said)
            edits += 1
        out = load.stdout.read()
        self.assertEqual(load.wait(), 0, out)
        self.assertGreaterEqual(edits, len(stacks))
        self.assertEqual(self.layers()["0"]["errors"], 0)
        # The line it printed last opens the same after a kill.
        running.kill()
        line = said.split("'d0=")[1].split("'")[0]
        again = self.serve(line)
        subprocess.run([*self.fio(), "--verify_only"], cwd=self.folder, check=True,
                       stdout=subprocess.PIPE, timeout=100)
        self.assertEqual(again.stop(), 0)

    def test_single_drives_are_changed_under_verified_load(self):
        """Each is a stack and a single drive in turn, while fio verifies what it reads."""
        leaves = {"m": "mem:size=8M", "f": "file:f,size=8M",
                  "x": "flash:profile=laptop-tlc,size=64M"}
        self.serve(*(f"{name}={leaf}" for name, leaf in leaves.items()))
        loads = {}
        for name in leaves:
            command = ["fio", "--name=job", "--ioengine=nbd", f"--uri={self.uri(name)}",
                       "--size=4M", "--rw=randwrite", "--bs=4k", "--randseed=7",
                       "--verify=crc32c", "--verify_fatal=1", "--iodepth=16", "--do_verify=1",
                       "--rate_iops=1000"]
            loads[name] = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, text=True)
            self.addCleanup(loads[name].stdout.close)
            self.addCleanup(loads[name].kill)
        edits = 0
        while edits < 4 or any(load.poll() is None for load in loads.values()):
            for name, leaf in leaves.items():
                for stack in (f"limit({leaf}, iops=90000)", f"cache(priority({leaf}), memory=1M)"):
                    self.ask("edit", name, stack)
                    self.assertGreater(len(self.layers(name)), 1)
                self.assertIn("cannot be opened",
                              self.refused("edit", name, f"slice({leaf}, offset=1G)"))
                self.ask("edit", name, leaf)
                self.assertFalse(self.is_stack(name))
            edits += 1
        for name, load in loads.items():
            out = load.stdout.read()
            self.assertEqual(load.wait(), 0, f"{name}: {out}")

    def test_an_edit_that_is_refused_leaves_a_single_drive_single(self):
        self.serve("m=mem:size=1M", "f=file:f,size=1M")
        for name in ("m", "f"):
            said = self.refused("edit", name, "mirror(mem:size=1M, mem:size=2M)")
            self.assertIn("^", said)
            self.assertFalse(self.is_stack(name))

    def test_what_is_refused_changes_nothing(self):
        self.serve("priority(file:a,size=2M)")
        self.write("in", bytes(range(256)) * (2 * MIB // 256))
        subprocess.run(["nbdcopy", self.folder / "in", self.uri()], check=True, timeout=60)
        for stack, part in (
                ("slice(file:a, length=1M)", "its size would change from 512 to 256 blocks"),
                ("concat(file:a, mem:size=1M)", "its size would change from 512 to 768 blocks"),
                ("mirror(file:a, file:b,size=2M)", "mirror cannot be opened"),
                ("priority(file:none)", "none"),
                ("priority(mem:size=2M)", "holds something else")):
            said = self.refused("edit", "d0", stack)
            self.assertIn(part, said)
            self.assertIn("^", said)
        result = self.run_cairn("drive", "edit", "d0", "--control", self.control)
        self.assertIn("say what the drive is to be", result.stderr)
        subprocess.run(["nbdcopy", self.uri(), self.folder / "out"], check=True, timeout=60)
        self.assertEqual((self.folder / "out").read_bytes(), (self.folder / "in").read_bytes())
        self.assertEqual(sorted(self.layers()), ["0", "0.0"])

    def test_a_file_says_what_it_is_to_be(self):
        self.serve("priority(file:a,size=2M)")
        self.write("s.toml", "service = 'limit'\niops = 500\nbelow = ['file:a']\n")
        said = json.loads(self.ask("edit", "d0", "--file", "s.toml", "--json"))
        self.assertEqual(said["stack"], f"limit(file:{self.folder / 'a'},block=4096, iops=500)")
        self.assertEqual(self.layers()["0"]["name"], "limit")


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Resizes(LiveTest):
    def size(self, name):
        result = subprocess.run(["nbdinfo", "--size", self.uri(name)], check=True, text=True,
                                stdout=subprocess.PIPE, timeout=60)
        return int(result.stdout)

    def test_a_thin_drive_grows(self):
        stack = "t=thin(file:a,size=8M)"
        running = self.serve(stack)
        before = self.size("t")
        self.write("in", bytes(range(256)) * (MIB // 256))
        subprocess.run(["nbdcopy", self.folder / "in", self.uri("t")], check=True, timeout=60)
        self.assertEqual(self.ask("resize", "t", "64M"),
                         "t has 64 MiB now. NBD clients see it when they connect again\n")
        self.assertLess(before, 64 * MIB)
        self.assertEqual(self.size("t"), 64 * MIB)
        self.assertEqual(self.layers("t")["0"]["size"], 64 * MIB)
        subprocess.run(["nbdcopy", self.uri("t"), self.folder / "out"], check=True, timeout=60)
        self.assertEqual((self.folder / "out").read_bytes(),
                         (self.folder / "in").read_bytes() + bytes(63 * MIB))
        # It keeps the size through a kill.
        running.kill()
        self.serve(stack)
        self.assertEqual(self.size("t"), 64 * MIB)

    def test_filters_and_single_drives_are_resized_too(self):
        self.serve("p=priority(mem:size=1M)", "m=mem:size=1M")
        for name in ("p", "m"):
            said = json.loads(self.ask("resize", name, "2M", "--json"))
            self.assertEqual(said, {"schema_version": 1, "name": name, "size": 2 * MIB})
            self.assertEqual(self.size(name), 2 * MIB)

    def test_a_drive_that_keeps_its_size_says_so(self):
        self.serve("s=slice(mem:size=1M)", "t=thin(file:a,size=8M)")
        self.assertIn("drive s keeps its size", self.refused("resize", "s", "2M"))
        self.assertIn("drive t keeps its size", self.refused("resize", "t", "1M", "--yes"))
        self.assertIn("drive t keeps its size", self.refused("resize", "t", "10000", "--yes"))
        self.assertIn("no drive 'x'", self.refused("resize", "x", "2M"))
        self.assertEqual(self.size("s"), MIB)
        self.expect_usage(["drive", "resize", "s", "many"], "takes a number of bytes")
        self.expect_usage(["drive", "resize", "s", "0"], "takes a number of bytes")
        self.expect_usage(["drive", "resize", "s"], "SIZE")


if __name__ == "__main__":
    support.main()
