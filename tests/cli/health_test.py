#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well drives are: in the log, in what is shown, in metrics; and drives that do not open."""

import json
import re
import shutil
import subprocess
import unittest

import support
from box_support import NQN, BoxTest
from nbd_support import DriveTest

MISSING = [tool for tool in ("nbdcopy",) if shutil.which(tool) is None]
MIB = 1 << 20
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


class HealthTest(DriveTest, BoxTest):
    def serve(self, *args):
        self.control = str(self.folder / "ctl")
        return super().serve(*args, "--control", self.control)

    def ask_drive(self, *args):
        return self.run_ok("drive", *args, "--control", self.control)

    def shown(self, name):
        (drive,) = json.loads(self.ask_drive("show", name, "--json"))["drives"]
        return drive

    def wait_for_health(self, name, word, code=None):
        """Asks until it is so, for that reason too: the watcher looks once a second."""
        for _ in range(10_000):
            drive = self.shown(name)
            codes = [reason["code"] for reason in drive["reasons"]]
            if drive["health"] == word and (code is None or code in codes):
                return drive
        self.fail(f"{name} is not {word}: {drive}")

    def wait_for_line(self, running, pattern):
        for _ in range(10_000):
            if re.search(pattern, running.log):
                return
            self.ask_drive("list")
        self.fail(f"no line {pattern} in:\n{running.log}")

    def copy(self, name, size=MIB):
        self.write("in", b"x" * size)
        subprocess.run(["nbdcopy", self.folder / "in", self.uri(name)], check=True, timeout=120)


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Legs(HealthTest):
    def test_a_leg_that_is_killed_and_comes_back(self):
        box = self.start_box("file:remote,size=8M")
        leg = (f"nvme-tcp://127.0.0.1:{box.port}/{NQN}?loss_timeout=100ms&connect_timeout=1s")
        running = self.serve(f'safe=mirror(file:local,size=8M, "{leg}", retry_ms=200)',
                             "mem:size=1M")
        self.assertEqual(self.wait_for_health("safe", "ok")["reasons"], [])
        self.assertEqual(self.shown("d1")["health"], "ok")
        box.kill()
        self.copy("safe")
        # The leg's own drive may say first that its box is gone.
        drive = self.wait_for_health("safe", "degraded", "leg_lost")
        codes = {reason["code"]: reason for reason in drive["reasons"]}
        self.assertEqual(codes["leg_lost"]["drive_path"], "0.1")
        self.assertTrue(codes["leg_lost"]["drive"].strip('"').startswith("nvme-tcp://127.0.0.1:"))
        self.wait_for_line(running, rf"cairn: warn: {TIME} drive safe is degraded: mirror "
                                    r"\(layer 0\), drive \"?nvme-tcp://127\S+ "
                                    r"\(layer 0\.1\): leg lost: ")
        self.assertRegex(self.ask_drive("list"), r"(?m)^safe +degraded +mirror\(")
        shown = self.ask_drive("show", "safe")
        self.assertIn("safe (degraded)", shown)
        self.assertIn("it is tried again every", shown)
        metrics = self.ask_drive("show", "--prometheus")
        self.assertIn('cairn_drive_health{drive="safe"} 1', metrics)
        self.assertIn('cairn_drive_health{drive="d1"} 0', metrics)
        self.assertRegex(metrics, r'cairn_drive_concern{drive="safe",.*code="leg_lost",.*} 1')
        self.start_box("file:remote", listen=(f"127.0.0.1:{box.port}",))
        self.wait_for_health("safe", "ok")
        self.wait_for_line(running, rf"cairn: info: {TIME} drive safe is ok again: mirror")
        self.assertIn('cairn_drive_health{drive="safe"} 0', self.ask_drive("show", "--prometheus"))
        self.assertEqual(running.stop(), 0)

    def test_a_box_says_so_of_its_stacks(self):
        self.start_box("thin(file:pool,size=4M, virtual=64M, warn=1)",
                       "mem:size=1M")
        (box,) = self.ask("drive", "status")["servers"]
        self.assertEqual(box["health"], "ok")
        self.assertIn(": ok\n", self.run_ok("drive", "status"))
        self.ask("drive", "add", "--nsid", "9", "mirror(file:l,size=4M, file:m,size=4M)")
        self.assertIn('cairn_drive_health{drive="d0"} 0', self.run_ok("drive", "metrics"))
        self.assertEqual({nsid: each["health"] for nsid, each in self.namespaces().items()},
                         {1: "ok", 2: "ok", 9: "ok"})


class Siblings(HealthTest):
    def test_a_box_serves_the_drives_that_open(self):
        box = self.start_box("file:gone", "file:d,size=1M", "thin(file:gone2)")
        self.assertRegex(box.log, rf"cairn: error: {TIME} drive d0 is failing: not open: ")
        self.assertRegex(box.said, r"not serving thin\(\S+\) as d2, which could not be opened: ")
        (status,) = self.ask("drive", "status")["servers"]
        self.assertEqual(status["health"], "failing")
        self.assertEqual([each["name"] for each in status["drives"]], ["d0", "d2"])
        text = self.run_ok("drive", "status")
        self.assertIn("drive d0 is failing", text)
        self.assertIn("'cairn drive retry d0'", text)
        self.assertEqual({nsid: each["health"] for nsid, each in self.namespaces().items()},
                         {1: "failing", 2: "ok", 3: "failing"})
        self.assertIn('cairn_drive_health{drive="d0"} 2', self.run_ok("drive", "metrics"))
        self.refused(["drive", "retry", "d0"], "drive 'file:")
        self.write("gone", b"\0" * MIB)
        self.ask("drive", "retry", "d0")
        self.assertEqual(self.namespaces()[1]["size"], MIB)
        self.assertRegex(box.log, r"drive d0 is ok again: not open is over")
        self.ask("drive", "remove", "d2", "--yes")
        self.assertEqual(self.ask("drive", "status")["servers"][0]["health"], "ok")
        self.assertEqual(box.stop(), 0)

    def test_served_drives_too(self):
        running = self.serve("a=priority(file:gone)", "b=mem:size=1M", "--nvme-tcp", "127.0.0.1:0")
        self.assertRegex(running.said, r"not serving priority\(\S+\) as a, which could not be "
                                       r"opened: \S+")
        self.assertRegex(running.log, rf"cairn: error: {TIME} drive a is failing: not open: ")
        self.assertRegex(self.ask_drive("list"), r"(?m)^a +failing +priority\(")
        self.assertIn("'cairn drive retry a'", self.ask_drive("show", "a"))
        result = self.run_cairn("drive", "retry", "a", "--control", self.control)
        self.assertEqual(result.returncode, 1)
        result = self.run_cairn("drive", "tell", "a", "0", "x", "--control", self.control)
        self.assertIn("a is not open", result.stderr)
        self.write("gone", b"\0" * MIB)
        # It is tried by itself, too.
        self.assertIn(self.ask_drive("retry", "a"), ("a is open now\n", "a was open already\n"))
        self.assertEqual(self.ask_drive("retry", "a"), "a was open already\n")
        self.assertEqual(self.shown("a")["health"], "ok")
        self.assertEqual(self.shown("a")["layers"][0]["size"], MIB)
        self.assertEqual(running.stop(), 0)

    # A host name that can never be found, and a key that is nowhere.
    NOWHERE = f"nvme-tcp://no-such-host.invalid/{NQN}"

    def test_hosts_and_keys_that_cannot_be_found(self):
        drives = {1: self.NOWHERE, 2: "encrypt(file:e,size=2M, key=e.key)", 3: "mem:size=1M",
                  4: f"nvme-tcp://127.0.0.1:1/{NQN}?dhchap_key={self.folder}/host.key",
                  5: "http://no-such-host.invalid/d?size=1M"}
        spaces = "".join(f'[[subsystem.namespace]]\nnsid = {nsid}\ndrive = "{drive}"\n'
                         for nsid, drive in drives.items())
        self.write("c.toml", f'[[subsystem]]\nnqn = "{NQN}"\n{spaces}')
        result = self.run_cairn("config", "check", "c.toml")
        self.assertEqual(result.returncode, 1)
        self.assertIn("'no-such-host.invalid' cannot be looked up", result.stderr)
        box = self.start_box("--config", "c.toml", nqn=None)
        self.assertEqual({nsid: each["health"] for nsid, each in self.namespaces().items()},
                         {1: "failing", 2: "failing", 3: "ok", 4: "failing", 5: "failing"})
        reasons = {1: "the host name 'no-such-host.invalid' cannot be looked up .*: check its "
                      "spelling", 2: "e.key", 4: "host.key", 5: "no-such-host.invalid"}
        for nsid, reason in reasons.items():
            self.assertRegex(box.log, rf"(?m)^cairn: error: {TIME} drive d{nsid - 1} is failing: "
                                      rf"not open: .*{reason}.*'cairn drive retry d{nsid - 1}'")
            self.assertRegex(self.run_ok("drive", "status"), reason)
        self.run_ok("key", "new", "drive", "--output", "e.key")
        self.ask("drive", "retry", "d1")
        self.assertEqual(self.namespaces()[2]["health"], "ok")
        self.assertEqual(box.stop(), 0)
        for args in (["serve", "nvme-tcp://h", "mem:size=1M"],
                      ["serve", "mem:size=1M", "slice(nvme-tcp://h)"]):
            self.assertIn("names a discovery service", self.run_cairn(*args).stderr)

    def test_hosts_and_keys_of_served_drives(self):
        running = self.serve(f"a={self.NOWHERE}", "b=mem:size=1M",
                             "c=encrypt(file:e,size=2M, key=e.key)")
        self.assertRegex(running.said, r"not serving \S+ as a, which could not be opened: the host "
                                       r"name 'no-such-host.invalid' cannot be looked up")
        for name, reason in (("a", "cannot be looked up"), ("c", "e.key")):
            self.assertRegex(running.log, rf"(?m)^cairn: error: {TIME} drive {name} is failing: "
                                          rf"not open: .*{reason}.*'cairn drive retry {name}'")
            self.assertEqual(self.shown(name)["health"], "failing")
        self.assertEqual(self.shown("b")["health"], "ok")
        result = self.run_cairn("drive", "retry", "a", "--control", self.control)
        self.assertIn("cannot be looked up", result.stderr)
        self.run_ok("key", "new", "drive", "--output", "e.key")
        self.ask_drive("retry", "c")
        self.assertEqual(self.shown("c")["health"], "ok")
        self.assertEqual(running.stop(), 0)

    def test_a_leg_whose_key_comes_late(self):
        box = self.start_box("file:remote,size=8M")
        # A way to write 127.0.0.1 that is looked up as names are.
        leg = f"nvme-tcp://0x7f.1:{box.port}/{NQN}?dhchap_key={self.folder}/host.key"
        mirror = f'mirror(file:local,size=8M, "{leg}", retry_ms=100, degraded=yes)'
        self.run_ok("key", "new", "auth", "--output", "host.key")
        running = self.serve(f"m={mirror}")
        self.wait_for_health("m", "ok")
        self.assertEqual(running.stop(), 0)
        (self.folder / "host.key").rename(self.folder / "away.key")
        running = self.serve(f"m={mirror}")
        self.wait_for_health("m", "degraded")
        self.assertRegex(self.ask_drive("show", "m"), r"host\.key")
        (self.folder / "away.key").rename(self.folder / "host.key")
        self.wait_for_health("m", "ok")
        # It is known again however it is written: nothing is opened twice.
        self.ask_drive("edit", "m", f"priority({mirror})")
        self.wait_for_health("m", "ok")
        self.assertEqual(running.stop(), 0)

    def test_nothing_is_served_when_no_drive_opens(self):
        result = self.run_cairn("serve", "file:gone", "slice(file:gone2)")
        self.assertEqual(result.returncode, 1)
        self.assertIn("add ,size=8G to have the file made", result.stderr)


class Growth(HealthTest):
    def test_the_same_line_after_a_live_growth(self):
        line = ("t=thin(file:pool,size=8M, virtual=1G)", "m=mem:size=1M")
        running = self.serve(*line)
        self.ask_drive("resize", "t", "2G")
        self.assertEqual(running.stop(), 0)
        running = self.serve(*line)
        self.assertEqual(self.shown("t")["layers"][0]["size"], 2 << 30)
        self.assertRegex(running.log, rf"cairn: info: {TIME} drive t is ok: thin \(layer 0\): "
                                      r"larger than said: it has grown to 2 GiB, and its line says "
                                      r"virtual=1G: .* write virtual=2G, ")
        self.assertEqual(running.stop(), 0)

    def test_a_box_whose_file_grew_before_that_was_kept(self):
        self.write("d", b"\0" * (2 * MIB))
        box = self.start_box("file:d,size=1M", "file:e,size=1M")
        self.assertEqual({nsid: each["size"] for nsid, each in self.namespaces().items()},
                         {1: 2 * MIB, 2: MIB})
        self.assertIn("drive d0 has 2M, and its line says size=1M: it keeps what its file has",
                      box.log)
        self.assertEqual(box.stop(), 0)


if __name__ == "__main__":
    support.main()
