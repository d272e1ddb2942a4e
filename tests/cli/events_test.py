#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What changed: the same in the log, at control sockets, over restarts, and for a command."""

import json
import re
import shutil
import subprocess
import time
import unittest

import support
from box_support import NQN, BoxTest
from nbd_support import DriveTest

MIB = 1 << 20
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
MISSING = [tool for tool in ("nbdcopy",) if shutil.which(tool) is None]
FIELDS = {"schema_version", "id", "time", "severity", "role", "kind", "subject", "health", "code",
          "state", "what"}


class EventsTest(DriveTest, BoxTest):
    def setUp(self):
        super().setUp()
        self.control = str(self.folder / "ctl")

    def serve_events(self, *args):
        return self.start_cairn("serve", *args, "--control", self.control, "--nbd",
                                f"unix:{self.socket}", until="Ctrl-C", env=self.env)

    def events(self, *args):
        text = self.run_ok("events", "--json", *(args or ("--control", self.control)))
        all_of_them = [json.loads(line) for line in text.splitlines()]
        for event in all_of_them:
            self.assertEqual(set(event) - {"place", "action"}, FIELDS)
            self.assertEqual(event["schema_version"], 1)
            self.assertRegex(event["time"], f"^{TIME}$")
        return all_of_them

    def wait_for(self, holds):
        end = time.monotonic() + support.HANGS_S
        while not (found := holds()):
            self.assertLess(time.monotonic(), end, "it never held")
        return found

    def wait_for_event(self, *args, **fields):
        def found():
            return [event for event in self.events(*args)
                    if all(event.get(name) == value for name, value in fields.items())]
        return self.wait_for(found)[0]


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Server(EventsTest):
    def test_a_leg_that_is_lost_and_comes_back(self):
        box = self.start_box("file:remote,size=8M")
        leg = f"nvme-tcp://127.0.0.1:{box.port}/{NQN}?loss_timeout=100ms&connect_timeout=1s"
        hook = self.folder / "hook"
        running = self.serve_events(f'safe=mirror(file:local,size=8M, "{leg}", retry_ms=200)',
                                    "--state", "state", "--on-event", f"cat >> {hook}")
        (started,) = self.events()
        self.assertEqual((started["kind"], started["code"], started["role"]),
                         ("process", "started", "serve"))
        follower = subprocess.Popen(self.command(["events", "--follow", "--control", self.control]),
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env=self.env, cwd=self.folder)
        self.addCleanup(self.end, follower)
        self.assertRegex(follower.stdout.readline(),
                         rf"^{TIME} info    serve: process serve: it can be used$")
        box.kill()
        self.write("in", b"x" * MIB)
        subprocess.run(["nbdcopy", self.folder / "in", self.uri("safe")], check=True, timeout=120)
        lost = self.wait_for_event("--control", self.control, code="leg_lost")
        self.assertEqual((lost["severity"], lost["kind"], lost["subject"], lost["health"],
                          lost["state"], lost["place"], lost["action"]),
                         ("warning", "drive", "safe", "degraded", "began", "0.1",
                          "cairn drive show safe"))
        # The log has the same words.
        self.assertIn(f"drive safe is degraded: {lost['what']}", running.log)
        line = ""
        while "leg lost" not in line:
            line = follower.stdout.readline()
            self.assertTrue(line, "the follower ended")
        self.assertRegex(line, rf"^{TIME} warning serve: drive safe is degraded: mirror")
        self.start_box("file:remote", listen=(f"127.0.0.1:{box.port}",))
        over = self.wait_for_event("--control", self.control, code="leg_lost", state="over")
        self.assertEqual(over["severity"], "info")
        # The command got each of them, as lines of JSON.
        told = self.wait_for(lambda: hook.exists() and '"over"' in hook.read_text()
                             and hook.read_text())
        lines = [json.loads(each) for each in told.splitlines()]
        self.assertEqual(lines, self.events()[:len(lines)])
        before = self.events()
        running.kill()
        said, problem = follower.communicate(timeout=support.HANGS_S)
        self.assertEqual(follower.returncode, 1, said)
        self.assertIn("the processes whose events these were have ended", problem)
        running = self.serve_events(f'safe=mirror(file:local,size=8M, "{leg}", retry_ms=200)',
                                    "--state", "state")
        after = self.events()
        self.assertEqual(after[:len(before)], before, "they are there after a restart")
        self.assertEqual([event["id"] for event in after], list(range(1, len(after) + 1)))
        self.assertEqual(running.stop(), 0)

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=support.HANGS_S)


class Kept(EventsTest):
    def test_what_is_kept_survives_a_torn_tail_and_damage(self):
        server = self.serve_events("mem:size=1M", "--state", "state")
        self.assertEqual(server.stop(), 0)
        kept = self.folder / "state/events.jsonl"
        lines = kept.read_bytes().splitlines(keepends=True)
        self.assertEqual([json.loads(line)["code"] for line in lines], ["started", "ending"])
        self.assertEqual(kept.stat().st_mode & 0o777, 0o600)
        kept.write_bytes(lines[0] + b"\xff\x00 not an event\n" + b"[" * 100_000 + b"\n"
                         + lines[1] + lines[1][:40])
        server = self.serve_events("mem:size=1M", "--state", "state")
        self.assertEqual([event["code"] for event in self.events()],
                         ["started", "ending", "events_damaged", "started"])
        self.assertIn("2 lines of what was kept of events are damaged", server.log)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(len([json.loads(line) for line in kept.read_text().splitlines()]), 5)

    def test_a_place_that_cannot_be_written_keeps_nobody_from_serving(self):
        (self.folder / "state/events.jsonl").mkdir(parents=True)
        server = self.serve_events("mem:size=1M", "--state", "state")
        self.assertIn("events are in memory alone until they can be kept", server.log)
        self.assertEqual([event["code"] for event in self.events()], ["started"])
        self.assertEqual(server.stop(), 0)

    def test_a_command_that_hangs_holds_nobody_up(self):
        server = self.serve_events("mem:size=1M", "--on-event", "sleep 1000")
        self.assertEqual([event["code"] for event in self.events()], ["started"])
        self.assertEqual(server.stop(), 0)
        self.assertIn("the command of --on-event failed: it did not end within 2 s, and was killed",
                      server.log)

    def test_a_command_that_fails_is_told_once(self):
        server = self.serve_events("mem:size=1M", "--on-event", "/no/such/command")
        self.wait_for(lambda: "it ended with status 127" in server.log)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(server.log.count("the command of --on-event failed"), 1)

    def test_in_a_file_too(self):
        self.write("c.toml", f"[server]\non_event = 'cat >> {self.folder}/told'\n"
                             f"[[subsystem]]\nnqn = '{NQN}'\n"
                             "[[subsystem.namespace]]\ndrive = 'mem:size=1M'\n")
        server = self.start_cairn("serve", "--config", "c.toml", "--control", self.control, "--nbd",
                                  f"unix:{self.socket}", until="Ctrl-C", env=self.env)
        told = self.folder / "told"
        self.wait_for(lambda: told.exists() and told.read_text().endswith("\n"))
        self.assertEqual(json.loads(told.read_text())["code"], "started")
        self.assertEqual(server.stop(), 0)


class Others(EventsTest):
    def test_every_process_is_asked_the_same_way(self):
        self.refused(["events"], "no process of this user runs here that has events")
        self.serve_events("mem:size=1M")
        self.start_cairn("kv", "serve", "--memory", "--resp", "127.0.0.1:0", until="Ctrl-C",
                         env=self.env)
        box = self.start_box("file:d,size=64M", "--state", "box")
        arbiter = self.start_cairn("arbiter", "--meta", "rocks:pool", until="it leads",
                                   env=self.env)
        self.run_ok("pool", "add", f"nvme-tcp://127.0.0.1:{box.port}/{NQN}", "--box", "one")
        joined = self.wait_for_event("--since", "1h", kind="pool_drive", code="joined")
        self.assertEqual(joined["role"], "arbiter")
        self.run_ok("pool", "drain", joined["subject"])
        self.wait_for_event("--since", "1h", kind="pool_drive", code="draining", state="began")
        self.run_ok("pool", "drain", joined["subject"], "--cancel")
        self.wait_for_event("--since", "1h", kind="pool_drive", code="draining", state="over")
        everything = self.events("--since", "2020-01-01T00:00:00Z")
        self.assertEqual({event["role"] for event in everything}, {"serve", "kv", "arbiter"})
        self.assertEqual([event["time"] for event in everything],
                         sorted(event["time"] for event in everything))
        codes = {event["code"] for event in everything if event["role"] == "arbiter"}
        self.assertLessEqual({"started", "leads", "joined", "draining"}, codes)
        self.assertEqual(self.events("--since", "2199-01-01T00:00:00Z"), [])
        self.assertEqual(arbiter.stop(), 0)

    def test_a_kv_server_tells_of_its_drive(self):
        box = self.start_box("file:remote,size=64M")
        leg = f"nvme-tcp://127.0.0.1:{box.port}/{NQN}?loss_timeout=100ms&connect_timeout=1s"
        server = self.start_cairn("kv", "serve",
                                  f'mirror(file:local,size=64M, "{leg}", retry_ms=200)', "--resp",
                                  "127.0.0.1:0", "--control", self.control, "--http", "0",
                                  until="Ctrl-C", env=self.env)
        box.kill()
        resp = re.search(r"redis-cli -h (\S+) -p (\d+)", server.said)
        self.run_ok("kv", "put", "k", "v", "--at", f"{resp[1]}:{resp[2]}")
        lost = self.wait_for_event("--control", self.control, code="leg_lost")
        self.assertEqual((lost["kind"], lost["subject"], lost["health"]),
                         ("drive", "keys", "degraded"))
        self.assertEqual(server.stop(), 0)

    def test_what_is_no_time_is_told(self):
        self.expect_usage(["events", "--since", "yesterday"], "'yesterday' is no time", "write 10m")
        self.refused(["events", "--data", "nowhere"], "cairn up does not run with")
        self.refused(["events", "--control", "nobody"], "no server listens at")


if __name__ == "__main__":
    support.main()
