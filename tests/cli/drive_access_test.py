#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may come to the NVMe door of `cairn serve`, and what its subsystem is called."""

import re

import support
from box_support import NQN, BoxTest

HOST = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
OTHER = "nqn.2014-08.org.nvmexpress:uuid:99999999-2222-3333-4444-555555555555"

AUTHENTICATION = f"""
[[listener]]
address = "127.0.0.1:0"

[[subsystem]]
nqn = "{NQN}"
dh_groups = ["ffdhe2048"]

[[subsystem.host]]
nqn = "{HOST}"
key = "host.key"
controller_key = "drives.key"
"""

TLS = f"""
[[listener]]
address = "127.0.0.1:0"
tls = "required"

[[subsystem]]
nqn = "{NQN}"

[[subsystem.host]]
nqn = "{HOST}"
tls_key = "tls.key"
"""


class DoorTest(BoxTest):
    def make_key(self, name, kind="auth"):
        self.run_ok("key", "new", kind, "--output", str(self.folder / name))

    def serve(self, *args):
        """Starts it; its NVMe door is at self.port, as self.nqn."""
        running = self.start_cairn("serve", *args, until="Ctrl-C", env=self.env,
                                   cwd=self.folder)
        self.connect = re.search(r"nvme connect -t tcp -a 127\.0\.0\.1 -s (\d+) -n (\S+)(.*)\n",
                                 running.said)
        self.port, self.nqn = int(self.connect[1]), self.connect[2]
        return running

    def uri(self, host=HOST, more="", nqn=None):
        return f"nvme-tcp://127.0.0.1:{self.port}/{nqn or self.nqn}?hostnqn={host}{more}"

    def with_key(self, name, host=HOST):
        return self.uri(host, f"&tls=required&tls_key={self.folder}/{name}")

    def refused_host(self, uri, *parts):
        self.expect_sentence(self.run_cairn("nvme", "id-ns", uri), 1, *parts)

    def refused_args(self, args, *parts):
        result = self.run_cairn("serve", "mem:size=1M", *args, cwd=self.folder)
        self.assertIn(result.returncode, (1, 2), result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)


class Hosts(DoorTest):
    def test_only_those_on_the_list_connect(self):
        running = self.serve("mem:size=1M", "--nvme-tcp", "127.0.0.1:0", "--host", HOST)
        self.run_ok("nvme", "id-ns", self.uri())
        self.refused_host(self.uri(OTHER), "does not let this host in")
        self.assertEqual(running.stop(), 0)
        self.assertIn(OTHER, running.log)

    def test_whoever_comes_without_a_list(self):
        self.serve("mem:size=1M", "--nvme-tcp", "127.0.0.1:0")
        self.run_ok("nvme", "id-ns", self.uri(OTHER))

    def test_a_controller_of_a_guest_is_no_way_around_the_list(self):
        self.serve("a=mem:size=1M", "--nvme-tcp", "127.0.0.1:0", "--host", HOST, "--vfio-user",
                   f"a={self.folder}/vm.sock")
        self.run_ok("nvme", "id-ns", self.uri())
        guests = self.uri(OTHER, nqn=f"{self.nqn}:a")
        self.assertEqual(self.run_cairn("nvme", "id-ns", guests).returncode, 1)
        self.assertEqual(self.run_cairn("nvme", "id-ns", self.uri(nqn=f"{self.nqn}:a")).returncode,
                         1)

    def test_args_without_a_door_are_refused(self):
        for args in (["--host", HOST], ["--tls", "required"], ["--tls-key", f"{HOST}=tls.key"]):
            self.refused_args(["--nbd", "unix:nbd.sock", *args],
                               "there is no place where they connect", "--nvme-tcp")
        self.refused_args(["--nvme-tcp", "127.0.0.1:0", "--host", "friend"], "'friend'")


class Authentication(DoorTest):
    def setUp(self):
        super().setUp()
        for name in ("host.key", "drives.key", "other.key"):
            self.make_key(name)

    def test_the_right_key_opens_and_no_other(self):
        self.write("drives.toml", AUTHENTICATION)
        running = self.serve("mem:size=1M", "--config", "drives.toml")
        self.assertEqual(self.nqn, NQN)
        folder = self.folder
        self.run_ok("nvme", "id-ns", self.uri(more=f"&dhchap_key={folder}/host.key"))
        self.run_ok("nvme", "id-ns", self.uri(
            more=f"&dhchap_key={folder}/host.key&dhchap_ctrl_key={folder}/drives.key"))
        self.refused_host(self.uri(), "no key for it")
        self.refused_host(self.uri(more=f"&dhchap_key={folder}/other.key"),
                          "is its key the right one?")
        self.refused_host(self.uri(OTHER, f"&dhchap_key={folder}/host.key"),
                          "does not let this host in")
        self.assertEqual(running.stop(), 0)
        self.assertIn("it has another key", running.log)

    def test_the_command_line_wins_over_the_file(self):
        self.write("drives.toml", AUTHENTICATION)
        self.serve("mem:size=1M", "--config", "drives.toml", "--nqn", f"{NQN}2", "--host", OTHER)
        named = f"{NQN}2"  # beside the one of the file, which has no drive
        self.run_ok("nvme", "id-ns", self.uri(OTHER, nqn=named))
        self.refused_host(self.uri(nqn=named, more=f"&dhchap_key={self.folder}/host.key"),
                          "does not let this host in")

    def test_mistakes_in_the_file_are_named_with_their_place(self):
        self.write("drives.toml", AUTHENTICATION.replace("ffdhe2048", "ffdhe1"))
        self.refused_args(["--config", "drives.toml"], "drives.toml:7:", "'ffdhe1'")
        self.write("drives.toml", AUTHENTICATION.replace("host.key", "gone.key"))
        self.refused_args(["--config", "drives.toml"], "'gone.key'", "No such file")


class Encryption(DoorTest):
    def setUp(self):
        super().setUp()
        for name in ("tls.key", "other.key"):
            self.make_key(name, "tls")

    def check_door(self, running):
        self.assertEqual(self.connect[3], " --tls")
        self.run_ok("nvme", "id-ns", self.with_key("tls.key"))
        for uri in (self.uri(), self.with_key("other.key"), self.with_key("tls.key", OTHER)):
            self.assertEqual(self.run_cairn("nvme", "id-ns", uri).returncode, 1)
        self.assertEqual(running.stop(), 0)

    def test_by_args(self):
        self.check_door(self.serve("mem:size=1M", "--nvme-tcp", "127.0.0.1:0", "--tls", "required",
                                   "--tls-key", f"{HOST}=tls.key"))

    def test_by_a_file(self):
        self.write("drives.toml", TLS)
        self.check_door(self.serve("mem:size=1M", "--config", "drives.toml"))

    def test_mistakes(self):
        door = ["--nvme-tcp", "127.0.0.1:0"]
        self.refused_args([*door, "--tls", "required"], "no host has a key", "cairn key new tls")
        self.refused_args([*door, "--tls", "required", "--tls", "refused"],
                           "--tls goes with a --nvme-tcp each")
        self.refused_args([*door, "--tls-key", "tls.key"], "a certificate needs its key")


class Names(DoorTest):
    DOOR = ("--nvme-tcp", "127.0.0.1:0")

    def name_of(self, *drives):
        self.assertEqual(self.serve(*drives, *self.DOOR).stop(), 0)
        return self.nqn

    def test_two_processes_have_not_the_same(self):
        names = {self.name_of("mem:size=1M"), self.name_of("mem:size=1M"),
                 self.name_of("file:a,size=1M"), self.name_of("priority(file:b,size=1M)")}
        self.assertEqual(len(names), 4)
        for name in names:
            self.assertRegex(name, r"^nqn\.2026-11\.io\.cairn:drives-[0-9a-f]{12}$")

    def test_files_keep_theirs(self):
        self.assertEqual(self.name_of("file:a,size=1M"), self.name_of(f"file:{self.folder}/a"))
        self.assertEqual(self.name_of("priority(file:b,size=1M)"),
                         self.name_of("priority(file:b,size=1M)"))

    def test_one_that_is_no_nqn_is_refused(self):
        self.refused_args([*self.DOOR, "--nqn", "drives"], "'drives' is no name for a subsystem")


if __name__ == "__main__":
    support.main()
