#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keys in files, a box that demands them, and hosts that have them or not."""

import os
import re
import stat

import support
from box_support import NQN, BoxTest

HOST = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"

CONFIG = """
[[listener]]
address = "127.0.0.1:0"

[[subsystem]]
nqn = "{nqn}"
{more}

[[subsystem.host]]
nqn = "{host}"
key = "host.key"
controller_key = "box.key"

[[subsystem.namespace]]
drive = "mem:size=1M"
"""


class Keys(BoxTest):
    def make_key(self, name, *args):
        self.run_ok("key", "new", "auth", "--output", str(self.folder / name), *args)
        return self.folder / name

    def test_a_key_is_printed_in_its_usual_form(self):
        for args, start, size in (((), "00", 48), (("--hmac", "sha256"), "01", 48),
                                   (("--hmac", "sha384"), "02", 72),
                                   (("--hmac", "sha512", "--nqn", HOST), "03", 92)):
            said = self.run_ok("key", "new", "auth", *args)
            self.assertRegex(said, rf"^DHHC-1:{start}:[A-Za-z0-9+/=]{{{size}}}:\n$")
        self.assertNotEqual(self.run_ok("key", "new", "auth"), self.run_ok("key", "new", "auth"))

    def test_a_file_is_its_owners_alone_and_not_overwritten(self):
        key = self.make_key("a.key")
        self.assertEqual(stat.S_IMODE(key.stat().st_mode), 0o600)
        before = key.read_text()
        self.expect_sentence(self.run_cairn("key", "new", "auth", "--output", str(key)), 1,
                             "exists", "not overwritten")
        self.assertEqual(key.read_text(), before)

    def test_mistakes(self):
        self.expect_usage(["key", "new", "auth", "--hmac", "md5"], "sha256, sha384, sha512")
        uri = f"nvme-tcp://127.0.0.1:1/{NQN}?dhchap_key="
        key = self.make_key("open.key")
        os.chmod(key, 0o640)
        self.expect_sentence(self.run_cairn("nvme", "id-ctrl", uri + str(key)), 1,
                             "mode 0640", "chmod 600")
        self.expect_sentence(self.run_cairn("nvme", "id-ctrl", uri + "/nowhere"), 1,
                             "'/nowhere'", "No such file")
        bad = self.folder / "bad.key"
        bad.write_text("DHHC-1:00:a secret that must not be shown:\n")
        os.chmod(bad, 0o600)
        result = self.run_cairn("nvme", "id-ctrl", uri + str(bad))
        self.expect_sentence(result, 1, "holds no key", "base64")
        self.assertNotIn("must not be shown", result.stderr)


class Authenticates(BoxTest):
    def setUp(self):
        super().setUp()
        for name, args in (("host.key", ("--hmac", "sha256")), ("box.key", ("--hmac", "sha384")),
                            ("other.key", ())):
            self.run_ok("key", "new", "auth", "--output", str(self.folder / name), *args)

    def serve(self, more=""):
        self.write("box.toml", CONFIG.format(nqn=NQN, host=HOST, more=more))
        self.box = self.start(["serve", "--config", "box.toml"], cwd=self.folder)

    def uri(self, key=None, controller_key=None, host=HOST):
        text = f"nvme-tcp://127.0.0.1:{self.box.port}/{NQN}?hostnqn={host}"
        if key:
            text += f"&dhchap_key={self.folder}/{key}"
        if controller_key:
            text += f"&dhchap_ctrl_key={self.folder}/{controller_key}"
        return text

    def totals(self):
        return self.ask("drive", "stats")["authentication"][0]

    def test_the_right_key_opens(self):
        self.serve()
        self.run_ok("nvme", "id-ns", self.uri("host.key"))
        self.run_ok("nvme", "id-ns", self.uri("host.key", "box.key"))
        totals = self.totals()
        self.assertGreaterEqual(totals["succeeded"], 4)
        self.assertEqual(totals["failed"], 0)
        self.assertRegex(self.run_ok("drive", "stats"),
                         rf"{re.escape(NQN)}: \d+ queues authenticated")

    def test_other_keys_do_not_and_the_box_notes_it(self):
        self.serve()
        self.expect_sentence(self.run_cairn("nvme", "id-ns", self.uri()), 1, "no key for it")
        self.expect_sentence(self.run_cairn("nvme", "id-ns", self.uri("other.key")), 1,
                             "is its key the right one?", "dhchap_key")
        self.assertIn(f"{HOST} at 127.0.0.1:", self.box.log)
        self.assertIn("it has another key", self.box.log)
        self.assertEqual(self.totals()["failed"], 1)
        self.expect_sentence(self.run_cairn("nvme", "id-ns", self.uri("host.key", "other.key")), 1,
                             "impostor")
        secret = (self.folder / "host.key").read_text().strip()
        self.assertNotIn(secret[11:40], self.box.log)

    def test_hosts_that_are_not_named_stay_out(self):
        self.serve()
        self.expect_sentence(self.run_cairn("nvme", "id-ns", self.uri(host="nqn.other")), 1,
                             "does not let this host in")

    def test_hashes_and_groups_can_be_chosen(self):
        self.serve('hashes = ["sha256"]\ndh_groups = ["null"]\nauthentication_timeout = "5s"')
        self.run_ok("nvme", "id-ns", self.uri("host.key", "box.key"))

    def test_a_box_refuses_keys_that_others_can_read(self):
        os.chmod(self.folder / "box.key", 0o604)
        self.write("box.toml", CONFIG.format(nqn=NQN, host=HOST, more=""))
        self.expect_sentence(self.run_cairn("serve", "--config", "box.toml", cwd=self.folder), 1,
                             "'box.key'", "mode 0604", "chmod 600")

    def test_mistakes_in_the_file_are_named(self):
        self.write("box.toml", CONFIG.format(nqn=NQN, host=HOST, more='hashes = ["md5"]'))
        result = self.run_cairn("config", "check", "box.toml", cwd=self.folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn("'md5' is not one of sha256, sha384, sha512", result.stderr)


if __name__ == "__main__":
    support.main()
