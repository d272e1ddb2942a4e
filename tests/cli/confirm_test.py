#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verbs that lose something ask on a terminal and need --yes elsewhere; hosts are named by NQNs."""

import json
import os
import pty
import socket
import subprocess

import support
from box_support import NQN, BoxTest
from nbd_support import DriveTest

HOST = f"{NQN}-host"


class Terminal(BoxTest):
    """A user at a terminal."""

    def at_terminal(self, *args, answer):
        """Runs cairn at a terminal where `answer` is typed: its status, and what the user saw."""
        ours, theirs = pty.openpty()
        try:
            process = subprocess.Popen(self.command(args), cwd=self.folder, env=self.env,
                                       stdin=theirs, stdout=subprocess.PIPE, stderr=theirs)
            with process.stdout:
                os.close(theirs)
                os.write(ours, answer.encode() + b"\n")
                seen = b""
                while True:
                    try:
                        part = os.read(ours, 4096)
                    except OSError:  # how Linux says that nobody has the terminal open any more
                        break
                    if not part:
                        break
                    seen += part
                process.stdout.read()
            return process.wait(timeout=support.HANGS_S), seen.decode()
        finally:
            os.close(ours)

    def sizes(self):
        return {nsid: each["size"] >> 20 for nsid, each in self.namespaces().items()}

    def test_a_namespace_is_removed_when_the_user_says_so(self):
        self.start_box("mem:size=1M", "mem:size=2M")
        args = ["drive", "remove", "d1"]
        loss = "drive d1 (2 MiB, mem:size=2M"
        self.refused(args, loss, "what it has in memory is lost", "add --yes if that is meant")
        for answer in ("n", "", "no", "yess"):
            status, seen = self.at_terminal(*args, answer=answer)
            self.assertEqual(status, 1)
            self.assertIn(loss, seen)
            self.assertIn("Go on? [y/N]", seen)
            self.assertIn("nothing was changed", seen)
            self.assertEqual(sorted(self.sizes()), [1, 2])
        status, seen = self.at_terminal(*args, answer="y")
        self.assertEqual(status, 0, seen)
        self.assertEqual(sorted(self.sizes()), [1])
        self.ask("drive", "remove", "d0", "--yes")
        self.assertEqual(self.sizes(), {})

    def test_a_namespace_grows_at_once_and_shrinks_when_the_user_says_so(self):
        self.start_box("mem:size=4M")
        self.ask("drive", "resize", "d0", "8M")
        args = ["drive", "resize", "d0", "1M"]
        self.refused(args, "drive d0 shrinks from 8 MiB to 1 MiB",
                     "what is in its last 7 MiB is lost", "--yes")
        self.assertEqual(self.sizes(), {1: 8})
        status, seen = self.at_terminal(*args, answer="yes")
        self.assertEqual(status, 0, seen)
        self.assertEqual(self.sizes(), {1: 1})

    def subsystem(self):
        return self.ask("drive", "status")["servers"][0]["subsystems"][0]

    def test_hosts_are_not_locked_out_by_mistake(self):
        box = self.start_box("mem:size=1M")
        nobody = f"no host may connect to {NQN} any more"
        self.refused(["host", "remove", "any"], nobody, "--yes")
        self.assertTrue(self.subsystem()["any_host"])
        self.ask("host", "add", HOST)
        self.refused(["host", "remove", HOST], nobody, "--yes")
        self.assertEqual(self.subsystem()["hosts"], [HOST])
        status, seen = self.at_terminal("host", "remove", HOST, answer="n")
        self.assertEqual((status, nobody in seen), (1, True), seen)
        self.ask("host", "add", "any")
        # Somebody is connected, and is not the one that is named.
        server = self.start_cairn(
            "serve", f"nvme-tcp://127.0.0.1:{box.port}/{NQN}?hostnqn={NQN}-guest",
            "--nbd", f"unix:{self.folder}/nbd.sock", "--control", "off", until="Ctrl-C",
            env=self.env)
        self.refused(["host", "add", HOST], f"closed to all but {HOST}",
                     f"connected and lose it: {NQN}-guest", "--yes")
        self.assertTrue(self.subsystem()["any_host"])
        self.assertEqual(server.stop(), 0)
        self.ask("host", "add", HOST)
        self.ask("host", "remove", HOST, "--yes")
        self.assertEqual((self.subsystem()["any_host"], self.subsystem()["hosts"]), (False, []))


class Names(BoxTest):
    """What is no NQN is no host's name."""

    WRONG = "is not the NQN of a host: it is like nqn.2014-08.org.nvmexpress:uuid:"

    def test_on_the_command_line(self):
        for args in (["serve", "mem:size=1M", "--host", "web1"],
                      ["serve", "mem:size=1M", "--tls-key", "web1=key"],
                      ["host", "add", "nqn.web1"]):
            self.expect_usage(args, self.WRONG)

    def test_in_a_file(self):
        head = "[[subsystem]]\nnqn = 'nqn.2026-11.io.cairn:a'\n"
        for more in ("hosts = ['web1']\n", "[[subsystem.host]]\nnqn = 'web1'\nkey = 'k'\n"):
            self.write("c.toml", head + more)
            result = self.run_cairn("config", "check", "c.toml")
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"'web1' {self.WRONG}", result.stderr + result.stdout)

    def test_at_the_control_socket(self):
        self.start_box("mem:size=1M", "--control", "c")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.folder / "c"))
            client.sendall(b'{"version": 1, "command": "host.add", "host": "web1"}\n')
            answer = json.loads(client.makefile().readline())
        self.assertFalse(answer["ok"])
        self.assertIn(self.WRONG, answer["error"])


class Drives(DriveTest):
    def test_a_drive_shrinks_when_the_user_says_so(self):
        self.serve("m=mem:size=4M", "p=priority(mem:size=4M)", "--control", "ctl")
        for name in ("m", "p"):
            args = ("drive", "resize", name, "1M", "--control", "ctl")
            self.expect_sentence(self.run_cairn(*args), 1,
                                 f"drive {name} shrinks from 4 MiB to 1 MiB",
                                 "what is in its last 3 MiB is lost", "--yes")
            self.run_ok(*args, "--yes")
            self.run_ok("drive", "resize", name, "2M", "--control", "ctl")


if __name__ == "__main__":
    support.main()
