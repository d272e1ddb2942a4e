#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rack's metadata for those who have a key: readers, writers, and everybody else."""

import os
import shutil
import socket
import subprocess
import unittest

import support
from rack_support import MIB, RackTest

OPENSSL = shutil.which("openssl")


class Keys(RackTest):
    def setUp(self):
        super().setUp()
        lines = []
        for name, role in (("box", "writer"), ("admin", "writer"), ("graph", "reader")):
            lines.append(f"{role} {name} {self.make_key(name)}")
        self.keys = self.write("rack.keys", "# who may do what\n" + "".join(lines))
        os.chmod(self.keys, 0o600)
        self.stranger = self.make_key("stranger")

    def make_key(self, name):
        """As docs/rack.md does; returns the line."""
        path = self.folder / f"{name}.key"
        self.run_ok("key", "new", "tls", "--output", str(path))
        return path.read_text()

    def serve_with_keys(self):
        """The address, and the text of --rack for a name and the file of its key."""
        said = self.serve_metadata("--tls-keys", str(self.keys))
        self.assertIn("through TLS, to 3 clients", self.store.said)
        self.at = said.split("?")[0]
        return lambda name, key=None: (
            f"{self.at}?tls_key={self.folder}/{key or name}.key&name={name}")

    def wait_for_log(self, *parts):
        self.wait_for(lambda: all(part in self.store.log for part in parts))

    def test_drives_are_made_by_those_with_keys(self):
        rack = self.serve_with_keys()
        self.start_boxes(rack("box"), "a", "b")
        self.create("vm1", rack("admin"), "--raid", "1", "--size", "8M")
        self.assertEqual([each["name"] for each in self.drives(rack("graph"))], ["vm1"])
        self.assertTrue(self.run_ok("rack", "stack", "vm1", "--rack", rack("graph")))
        self.assertEqual(set(self.offers(rack("graph")).values()), {55 * MIB})
        self.run_ok("drive", "release", "vm1", "--rack", rack("admin"), "--yes")
        self.assertEqual(self.drives(rack("graph")), [])
        self.assertEqual(self.store.log, "")
        self.assertEqual(self.store.stop(), 0)

    def test_on_a_network_as_the_document_has_it(self):
        """docs/rack.md, "On a network", on this machine's addresses."""
        host = "nqn.2026-11.io.cairn:vm1"
        self.make_key("vm1")
        rack = self.serve_with_keys()
        for name in "ab":
            self.start(["serve", "--state", f"{name}.state", "--nvme-tcp", "127.0.0.1:0", "--tls",
                        "required", "--tls-key", f"{host}=vm1.key", "--control",
                        f"{self.folder}/{name}.sock", "--rack", rack("box"), "--shelf",
                        f"d0=file:{self.folder}/{name}.shelf,size=64M"])
        self.wait_for(lambda: len(self.offers(rack("admin"))) == 2)
        args = ["drive", "create", "vm1", "--rack", rack("admin"), "--raid", "1", "--size", "8M"]
        self.assertEqual(self.run_cairn(*args).returncode, 1, "a host without a key")
        self.run_ok(*args, "--hostnqn", host, "--connect", "tls=required&tls_key=vm1.key")
        stack = self.run_ok("rack", "stack", "vm1", "--rack", rack("admin")).strip()
        self.assertIn("tls=required&tls_key=vm1.key", stack)
        self.assertEqual(self.serve(stack).stop(), 0)
        self.run_ok("drive", "release", "vm1", "--rack", rack("admin"), "--yes")
        self.assertEqual(self.drives(rack("admin")), [])

    def test_a_reader_commits_nothing(self):
        rack = self.serve_with_keys()
        self.start_boxes(rack("box"), "a")
        args = ["--raid", "0", "--legs", "1", "--size", "8M"]
        self.expect_sentence(
            self.run_cairn("drive", "create", "vm1", "--rack", rack("graph"), *args), 1,
            "drive vm1 is not made", "its role is reader", "this client is 'graph'")
        self.assertEqual(self.drives(rack("graph")), [])
        self.wait_for(lambda: self.offers(rack("graph")) == {"a": 64 * MIB})
        self.wait_for_log("client 'graph' at 127.0.0.1:", "it may not commit: its role is reader")
        self.create("vm1", rack("admin"), *args)
        self.expect_sentence(
            self.run_cairn("drive", "release", "vm1", "--rack", rack("graph"), "--yes"), 1,
            "the record of drive vm1 cannot be changed", "its role is reader")
        self.assertEqual([each["name"] for each in self.drives(rack("graph"))], ["vm1"])

    def test_a_box_without_the_right_role_says_so_and_goes_on(self):
        rack = self.serve_with_keys()
        box = self.start_box_in_rack("a", rack("graph"))
        self.wait_for(lambda: "its role is reader" in box.log)
        self.assertEqual(self.offers(rack("graph")), {})
        self.assertEqual(box.stop(), 0)

    def test_strangers_are_told_and_named(self):
        rack = self.serve_with_keys()
        args = ["rack", "drives", "--rack"]
        self.expect_sentence(self.run_cairn(*args, rack("stranger")), 1, "'stranger'",
                             "does not know this client's name")
        self.wait_for_log("client 'stranger' at 127.0.0.1:", "no client of that name is in")
        self.expect_sentence(self.run_cairn(*args, rack("admin", "stranger")), 1, "'admin'",
                             "or has another key for it")
        self.wait_for_log("client 'admin' at 127.0.0.1:", "its key is not the one")
        self.expect_sentence(self.run_cairn(*args, self.at), 1, "the metadata server demands TLS",
                             "?tls_key=FILE&name=NAME")
        self.wait_for_log("it speaks without TLS, and this server demands it")
        self.assertEqual(self.store.stop(), 0)

    def test_a_server_without_keys_says_so_to_who_has_one(self):
        meta = self.serve_metadata()
        self.expect_sentence(
            self.run_cairn("rack", "drives", "--rack",
                           f"{meta}?tls_key={self.folder}/admin.key&name=admin"), 1,
            "the metadata server speaks without TLS at this port")
        self.wait_for_log("it speaks TLS, and this server has no keys")

    def test_silent_strangers_do_not_keep_others_out(self):
        rack = self.serve_with_keys()
        host, port = self.at.removeprefix("meta://").split(":")
        silent = [socket.create_connection((host, int(port))) for _ in range(300)]
        for each in silent:
            self.addCleanup(each.close)
        self.assertEqual(self.drives(rack("graph")), [])
        self.assertEqual(self.store.stop(), 0)

    @unittest.skipIf(OPENSSL is None, "openssl is not installed")
    def test_others_clients_of_tls_get_nowhere_without_a_key(self):
        self.serve_with_keys()
        result = subprocess.run(
            [OPENSSL, "s_client", "-connect", self.at.removeprefix("meta://"), "-tls1_3"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=support.HANGS_S, check=False)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.wait_for_log("a client at 127.0.0.1:", "turned away")

    def test_nobody_serves_a_network_without_keys_by_accident(self):
        for at in ("0.0.0.0:0", "192.0.2.1:4430", "[::]:0"):
            self.expect_sentence(
                self.run_cairn("rack", "serve", "meta", "--listen", at), 1, at,
                "could change and remove all metadata", "--tls-keys FILE", "--insecure")
        self.assertFalse((self.folder / "meta").exists(), "nothing was made")
        running = self.start_cairn("rack", "serve", "meta", "--listen", "0.0.0.0:0", "--insecure",
                                   until="Ctrl-C", env=self.env)
        self.assertIn("to everybody who reaches it (--insecure)", running.said)
        self.assertEqual(running.stop(), 0)
        running = self.start_cairn("rack", "serve", "meta", "--listen", "0.0.0.0:0", "--tls-keys",
                                   str(self.keys), until="Ctrl-C", env=self.env)
        self.assertEqual(running.stop(), 0)
        self.expect_sentence(
            self.run_cairn("rack", "serve", "meta", "--insecure", "--tls-keys", str(self.keys)), 1,
            "exclude each other")

    def test_key_files_are_their_owners_alone(self):
        rack = self.serve_with_keys()
        key = self.folder / "admin.key"
        os.chmod(key, 0o640)
        self.expect_sentence(self.run_cairn("rack", "drives", "--rack", rack("admin")), 1,
                             "has mode 0640", "chmod 600")
        os.chmod(self.keys, 0o644)
        args = ["rack", "serve", "other", "--tls-keys", str(self.keys)]
        self.expect_usage(args, "has mode 0644", "chmod 600")
        os.chmod(self.keys, 0o600)
        text = self.keys.read_text()
        self.keys.write_text(text + "owner x " + self.stranger)
        self.expect_usage(args, "neither reader nor writer in line 5")
        self.keys.write_text(text + "writer box " + self.stranger)
        result = self.run_cairn(*args)
        self.assertIn("a name for the second time in line 5", result.stderr)
        self.assertNotIn(self.stranger.split(":")[2], result.stderr)
        self.expect_usage(["rack", "drives", "--rack", f"{self.at}?tls_key={key}"],
                          "tls_key=FILE and name=NAME go together")
        self.expect_usage(
            ["rack", "drives", "--rack", f"{self.at}?name=x&tls_key={self.stranger.strip()}"],
            "not the key itself")


if __name__ == "__main__":
    support.main()
