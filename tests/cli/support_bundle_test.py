#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn support-bundle`: what somebody needs who helps, and none of what he must not have."""

import json
import pathlib

import support
from box_support import NQN, BoxTest

PLANTED = ("hunter2", "q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=")


class Bundle(BoxTest):
    def test_it_has_what_helps_and_no_secrets(self):
        self.run_ok("key", "new", "drive", "--output", "drive.key")
        secret = (self.folder / "drive.key").read_text().strip()
        self.write("token", "a-token-of-many-letters\n")
        (self.folder / "token").chmod(0o600)
        server = self.start_cairn(
            "serve", "safe=encrypt(file:e,size=2M, key=drive.key)",
            f"away=nvme-tcp://127.0.0.1:1/{NQN}?dhchap_key=/nowhere/{PLANTED[0]}.key",
            "--http", "0", "--http-token", "token", "--state", "state", "--nbd",
            f"unix:{self.folder}/nbd", until="Ctrl-C", env=self.env)
        self.write("c.toml", f"[server]\nstate = 'state'\ntoken = '{PLANTED[0]}'\n"
                             f"# old password: {PLANTED[0]}\nnote = \"{PLANTED[1]}\"\n"
                             "key_file = '/etc/cairn/host.key'\n")
        told = self.ask("support-bundle", "bundle", "--config", "c.toml")
        self.assertEqual(told["schema_version"], 1)
        bundle = self.folder / "bundle"
        found = {str(path.relative_to(bundle)) for path in bundle.rglob("*") if path.is_file()}
        self.assertEqual(found, set(told["files"]))
        name = f"server-{server.pid}"
        self.assertLessEqual({"version.json", "doctor.json", "config-0.toml",
                              f"{name}/status.json", f"{name}/drives.json", f"{name}/stats.json",
                              f"{name}/metrics.txt", f"{name}/events.jsonl"}, found)
        self.assertEqual(bundle.stat().st_mode & 0o777, 0o700)
        everything = "".join((bundle / each).read_text() for each in sorted(found))
        for planted in (*PLANTED[1:], secret, "a-token-of-many-letters"):
            self.assertNotIn(planted, everything)
        config = (bundle / "config-0.toml").read_text()
        self.assertNotIn(PLANTED[0], config)
        self.assertIn("key_file = '/etc/cairn/host.key'", config, "what helps is there")
        self.assertIn("state = 'state'", config)
        drives = json.loads((bundle / f"{name}/drives.json").read_text())
        self.assertEqual({drive["name"] for drive in drives["drives"]}, {"safe", "away"})
        events = [json.loads(line)
                  for line in (bundle / f"{name}/events.jsonl").read_text().splitlines()]
        self.assertIn("not_open", {event["code"] for event in events})
        self.assertIn("cairn_health 2", (bundle / f"{name}/metrics.txt").read_text())
        self.refused(["support-bundle", "bundle"], "the folder 'bundle' cannot be made")
        self.assertEqual(server.stop(), 0)

    def test_it_says_what_was_not_there(self):
        self.start_cairn("kv", "serve", "--memory", "--resp", "127.0.0.1:0", until="Ctrl-C",
                         env=self.env)
        self.run_ok("support-bundle", "b")
        (missing,) = pathlib.Path(self.folder / "b").glob("kv-*/not_there.txt")
        self.assertIn("status.json: this process is asked for events alone", missing.read_text())
        self.assertTrue((missing.parent / "events.jsonl").exists())
        self.refused(["support-bundle", "c", "--config", "nowhere.toml"], "there is no file")
        self.assertFalse((self.folder / "c").exists())


if __name__ == "__main__":
    support.main()
