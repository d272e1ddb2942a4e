#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn up`: one process with a replicated volume and a key-value store, and what it keeps."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess

import support
from box_support import BoxTest

MIB = 1 << 20
# Addresses of their own, so that several run at a time.
PORTS = ("--nbd", "127.0.0.1:0", "--nvme-tcp", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--http",
         "127.0.0.1:0")
TOOLS = ("qemu-io", "fio", "redis-cli")


class UpTest(BoxTest):
    def setUp(self):
        super().setUp()
        # Where a path is that a local socket can have.
        self.data = self.folder / ".local/share/cairn"
        self.env["CAIRN_CALLED_AS"] = " ".join(map(shlex.quote, self.command([])))

    def up(self, *args, size="256M"):
        up = self.start_cairn("up", *PORTS, *(("--size", size) if size else ()), *args,
                              until="Ctrl-C or SIGTERM", env=self.env)
        up.commands = re.findall(r"(?m)^  (\S.*)$", up.said)
        return up

    def shell(self, line):
        """Runs a line as somebody does who pastes it."""
        result = subprocess.run(["/bin/sh", "-c", line], cwd=self.folder, env=self.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=support.HANGS_S,
                                check=False)
        self.assertEqual(result.returncode, 0, f"{line}\n{result.stdout}")
        return result.stdout

    def command_with(self, up, *words):
        lines = [line for line in up.commands if all(word in line for word in words)]
        self.assertTrue(lines, f"no command with {words}:\n{up.said}")
        return lines[0]

    def health(self):
        return self.ask("status")

    def redis(self, up, *words):
        line = self.command_with(up, "redis-cli")
        port = re.search(r"-p (\d+)", line).group(1)
        return self.shell(" ".join(["redis-cli", "-p", port, *words])).strip()


class Life(UpTest):
    def setUp(self):
        super().setUp()
        for tool in TOOLS:
            if shutil.which(tool) is None or self.is_emulated:
                self.skipTest(f"needs {tool}, natively")

    def test_what_it_prints_works_and_what_it_holds_stays(self):
        up = self.up()
        for words in (("qemu-io", "socket="), ("qemu-io", "nbd://127.0.0.1:"), ("fio", "nbd"),
                      ("redis-cli", "set hello world"), (" nvme list nvme-tcp://",)):
            self.shell(self.command_with(up, *words))
        self.assertRegex(self.command_with(up, "nvme connect"),
                         r"-a 127\.0\.0\.1 -s \d+ -n nqn\.2026-11\.io\.cairn:up-")
        # The drive of the virtual machine is there.
        machine = self.command_with(up, "qemu-system-x86_64", "if=virtio")
        self.shell("qemu-img info '%s'" % re.search(r"file='([^']+)'", machine).group(1))
        self.assertEqual(self.redis(up, "get", "hello"), "world")
        told = self.health()
        self.assertEqual((told["health"], told["reasons"]), ("ok", []))
        self.assertEqual([each["state"] for each in told["drives"]], ["ok"] * 4)
        self.assertEqual({each["name"]: each["replicas"] for each in told["volumes"]},
                         {"vol0": 3, "kv0": 3})
        self.assertLess((self.data / "d1").stat().st_blocks * 512, 200 * MIB, "it is sparse")
        # It is asked for its drives as every server is.
        self.assertEqual([each["name"] for each in self.ask("drive", "list")["drives"]], ["vol0"])
        self.assertIn("vol0", self.run_ok("drive", "show", "vol0"))
        self.second_start_is_told(up)
        write = "qemu-io -f raw -c 'write -P 9 100M 8M' -c flush '%s'" % self.uri(up)
        self.shell(write)
        up.kill()
        again = self.up(size=None)
        self.holds(again)
        self.drive_fails_and_is_replaced(again, "d2")
        self.drive_fails_and_is_replaced(again, "d3")
        self.holds(again)
        self.assertEqual(again.stop(signal.SIGINT), 0, again.log)
        os.remove(self.data / "d1")
        third = self.up(size=None)
        self.assertIn("the file of drive d1 is gone: a new drive takes its place", third.log)
        self.holds(third)
        self.assertIn("it has ended", self.run_ok("down"))
        self.assertEqual(third.wait(), 0)
        self.refused(["status"], "cairn up does not run with", "start it with 'cairn up'")

    def uri(self, up):
        return re.search(r"'(nbd\+unix://\S+)'", up.said).group(1)

    def holds(self, up):
        self.shell("qemu-io -f raw -c 'read -P 9 100M 8M' '%s' | tee out; "
                   "! grep -i failed out" % self.uri(up))
        self.assertEqual(self.redis(up, "get", "hello"), "world")

    def second_start_is_told(self, up):
        self.expect_sentence(self.run_cairn("up"), 1, "cairn up runs already with",
                             f"as process {up.pid}", "resp at 127.0.0.1:", "'cairn down' ends it")

    def drive_fails_and_is_replaced(self, up, drive):
        said = self.run_ok("demo", "kill-drive", drive)
        self.assertIn(f"drive {drive} has failed; reads and writes go on", said)
        # What of it is seen is a matter of time: a loaded machine may have done most already.
        self.assertRegex(said, r"degraded: drive d\d: ")
        self.assertTrue(said.endswith("ok: everything has all its copies again\n"), said)
        self.assertEqual(self.health()["health"], "ok")
        self.everything_of_it_was_an_event(drive)

    def everything_of_it_was_an_event(self, drive):
        events = [json.loads(line) for line in self.run_ok("events", "--json").splitlines()]
        self.assertEqual([event["id"] for event in events], list(range(1, len(events) + 1)))
        of_it = [(event["code"], event["state"]) for event in events
                 if (event["kind"], event["subject"]) == ("drive", drive)]
        for code in ("drive_failed", "drive_lost"):
            self.assertIn((code, "began"), of_it)
            self.assertIn((code, "over"), of_it)
        whole = [(event["state"], event["health"]) for event in events
                 if (event["kind"], event["subject"]) == ("process", "up")
                 and event["code"] == "health"]
        self.assertEqual(whole[-1], ("over", "ok"))
        self.assertIn(("began", "degraded"), whole)
        self.assertIn("joined", {event["code"] for event in events
                                 if event["kind"] == "pool_drive"})
        text = self.run_ok("status")
        self.assertTrue(text.startswith("ok\n\nDRIVE"), text)
        self.assertIn("LATELY", text)


class Folder(UpTest):
    def test_reset_asks(self):
        up = self.up("--data", "d")
        path = self.folder / "d"
        self.refused(["up", "--data", "d", "--reset", "--yes"], "cairn up runs already with")
        self.assertEqual(up.stop(), 0)
        (path / "mine").write_text("not cairn's")
        identity = (path / "up.json").read_text()
        self.refused(["up", "--data", "d", "--reset"],
                     "all that is in the volumes and in the key-value store of 'd' is lost",
                     "--yes")
        self.assertEqual((path / "up.json").read_text(), identity)
        again = self.up("--data", "d", "--reset", "--yes")
        self.assertNotEqual((path / "up.json").read_text(), identity)
        self.assertTrue((path / "mine").exists())
        self.assertEqual(again.stop(), 0)

    def test_what_is_missing_is_told(self):
        up = self.up()
        self.refused(["demo", "kill-drive", "d9"], "there is no drive 'd9': the drives are d1")
        up.kill()
        self.refused(["up", "--size", "1G"], "256 MiB each", "leave --size out")
        for name in ("d1", "d4"):
            os.remove(self.data / name)
        self.refused(["up"], "2 of the 4 drives in", "'cairn up --reset'")
        self.write(self.data / "up.json", "{}")
        self.refused(["up"], "up.json' is damaged", "'cairn up --reset'")

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.refused(["up", "--resp", f"127.0.0.1:{port}"], f"127.0.0.1:{port}")

    def test_what_it_cannot_do_is_told(self):
        for command in ("status", "down"):
            self.refused([command], "cairn up does not run with", "start it with 'cairn up'")
        self.refused(["up", "--cores", "0,1023"],
                     "CPU 1023 is not one this process may use: choose among")
        self.refused(["up", "--size", "1M"], "a drive has 256 MiB to 16 TiB")
        self.refused(["up", "--resp", "0.0.0.0:6390"], "whoever reaches 0.0.0.0:6390 could")
        self.write("file", "")
        self.refused(["up", "--data", "file/d"], "the data folder 'file/d' cannot be made",
                     "--data DIR")
        self.write("c.toml", "[[listener]]\naddress = '127.0.0.1:0'\n")
        self.refused(["up", "--config", "c.toml"], "'cairn serve --config FILE'")
        self.env.pop("HOME")
        self.refused(["up"], "there is no HOME", "--data DIR")

    def test_a_path_too_long_for_sockets(self):
        deep = "x" * 120
        up = self.up("--data", deep)
        self.assertIn(f"socket={self.folder}/cairn/up-", up.said)
        self.assertEqual(self.ask("status", "--data", deep)["health"], "ok")
        self.assertEqual(up.stop(), 0)


if __name__ == "__main__":
    support.main()
