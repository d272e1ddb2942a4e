#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn nvme lanes`, and what `cairn drive stats` and `cairn drive metrics` tell of lanes."""

import json
import os
import socket

import prometheus_text
import support
from box_support import NQN, BoxTest

CAUSES = {"count", "bytes", "timer", "no_delay", "idle", "alone"}


class LaneTest(BoxTest):
    def uri(self, box, options=""):
        return f"nvme-tcp://127.0.0.1:{box.port}/{NQN}?nsid=1{options}"

    def lanes(self, box, *args, options=""):
        """`cairn nvme lanes`: what it says, and its I/O queues."""
        said = json.loads(self.run_ok("nvme", "lanes", self.uri(box, options), "--json", *args))
        return said, [each for each in said["lanes"] if each["queue"] > 0]

    def totals(self):
        return {each["kind"]: each for each in self.ask("drive", "stats")["lane_totals"]}

    def metrics(self):
        text = self.run_ok("drive", "metrics")
        self.assertEqual(prometheus_text.check_with_promtool(text), "")
        return prometheus_text.parse(text)

    def value(self, families, name, **labels):
        found = [value for (_, its), value in families[name].samples.items()
                 if labels.items() <= dict(its).items()]
        self.assertEqual(len(found), 1, f"{name} {labels}")
        return found[0]


class HostLanes(LaneTest):
    def test_a_load_shows_caravans(self):
        box = self.start_box("mem:size=8M")
        said, io = self.lanes(box, "--seconds", "0.2", "--depth", "64", options="&batching=fixed")
        self.assertEqual(len(io), 1)
        lane = io[0]
        self.assertEqual((lane["target"], lane["depth"], lane["batching"]),
                         (f"127.0.0.1:{box.port}", 127, "fixed"))
        self.assertLessEqual(lane["in_flight"], 64)
        self.assertGreater(lane["messages"], said["ios"])
        self.assertGreater(lane["messages_per_send"], 1)
        self.assertEqual(sum(lane["caravans"].values()), lane["sends"])
        self.assertEqual(set(lane["rings"]), CAUSES)
        self.assertGreater(lane["received"]["pdus"], said["ios"])

    def test_without_a_load_it_only_looks(self):
        box = self.start_box("mem:size=8M")
        said, io = self.lanes(box, "--seconds", "0", options="&queues=3&depth=8")
        self.assertEqual((said["ios"], said["rw"]), (0, None))
        self.assertEqual([(each["queue"], each["depth"], each["messages"]) for each in io],
                         [(1, 8, 1), (2, 8, 1), (3, 8, 1)])
        text = self.run_ok("nvme", "lanes", self.uri(box), "--seconds", "0")
        self.assertRegex(text, r"(?m)^CORE +TARGET +QUEUE +DEPTH +IN FLIGHT")
        self.assertRegex(text, r"(?m)^0 +127\.0\.0\.1:\d+ +1 +adaptive, 16 or 64 KiB, 50 us +1: 1")

    def test_lanes_can_be_set_apart(self):
        box = self.start_box("mem:size=8M")
        _, io = self.lanes(box, "--seconds", "0.1", options="&queues=2&lane.2.batching=off"
                           "&lane.2.urgent=on&lane.1.caravan=4")
        self.assertEqual([each["batching"] for each in io], ["adaptive", "off"])
        self.assertEqual(io[0]["caravan"], 4)
        self.assertEqual(io[1]["messages"], 1, "nothing was urgent")
        refused = self.run_cairn("nvme", "lanes", self.uri(box, "&lane.2.batching=off"))
        self.expect_sentence(refused, 2, "write queues=2")

    def test_perf_has_a_summary(self):
        box = self.start_box("mem:size=8M")
        said = json.loads(self.run_ok("nvme", "perf", self.uri(box), "--json", "--seconds", "0.1",
                                      "--warmup", "0", "--depth", "8"))
        self.assertEqual(said["lanes"]["count"], 1)
        self.assertGreaterEqual(said["lanes"]["messages"], said["read"]["ios"])


class BoxLanes(LaneTest):
    def test_totals_outlive_connections(self):
        box = self.start_box("mem:size=8M")
        self.assertEqual(self.totals(), {})
        self.assertIn("no host has connected", self.run_ok("drive", "stats"))
        said, lanes = self.lanes(box, "--seconds", "0.1")
        # The box hears of their end in its own time.
        while (stats := self.ask("drive", "stats"))["connections"]["open"] > 0:
            pass
        io = self.totals()["io"]
        self.assertEqual((io["opened"], io["failures"]), (1 + len(lanes), 0))
        self.assertGreaterEqual(io["commands"], said["ios"])
        self.assertEqual(io["messages"], io["commands"])
        self.assertEqual((stats["connections"], stats["lanes"]), ({"open": 0, "refused": 0}, []))
        self.assertRegex(self.run_ok("drive", "stats"),
                         rf"(?m)^127\.0\.0\.1:\d+ +{NQN} +io +\d+ +0 ")

    def test_a_healthy_session_has_no_failures(self):
        box = self.start_box("mem:size=8M")
        self.run_ok("nvme", "id-ns", self.uri(box))
        self.run_ok("nvme", "list", f"nvme-tcp://127.0.0.1:{box.port}/{NQN}")
        self.lanes(box, "--seconds", "0")
        # The box hears of their end in its own time.
        while self.ask("drive", "stats")["connections"]["open"] > 0:
            pass
        self.assertEqual({kind: each["failures"] for kind, each in self.totals().items()},
                         {"admin": 0, "io": 0})
        self.run_cairn("nvme", "id-ns", f"nvme-tcp://127.0.0.1:{box.port}/{NQN}?nsid=4294967294")
        while self.ask("drive", "stats")["connections"]["open"] > 0:
            pass
        self.assertEqual(self.totals()["admin"]["failures"], 1, "there is no such namespace")

    def test_many_connections_are_summed_up(self):
        box = self.start_box("mem:size=8M")
        hosts = [socket.create_connection(("127.0.0.1", box.port)) for _ in range(100)]
        # The box accepts in its own time.
        while (stats := self.ask("drive", "stats"))["connections"]["open"] < len(hosts):
            self.assertLess(stats["connections"]["open"], len(hosts))
        self.assertEqual((len(stats["lanes"]), stats["lanes_more"]), (32, 68))
        self.assertIn("and 68 connections more", self.run_ok("drive", "stats"))
        for host in hosts:
            host.close()


class Metrics(LaneTest):
    def test_names_and_values(self):
        box = self.start_box("mem:size=8M", "mem:size=8M")
        before = self.metrics()
        self.run_ok("nvme", "write", self.uri(box), "--input", self.block_file(8192))
        after = self.metrics()
        self.assertEqual(set(before), set(after))
        space = {"nqn": NQN, "nsid": "1"}
        self.assertEqual(self.value(after, "cairn_box_writes_total", **space), 1)
        self.assertEqual(self.value(after, "cairn_box_written_bytes_total", **space), 8192)
        self.assertEqual(self.value(after, "cairn_box_written_bytes_total", nqn=NQN, nsid="2"), 0)
        self.assertEqual(self.value(after, "cairn_box_authentications_total", nqn=NQN,
                                    outcome="failed"), 0)
        io = {"nqn": NQN, "queue": "io"}
        self.assertGreaterEqual(self.value(after, "cairn_lane_commands_total", **io), 3)
        self.assertEqual(self.value(after, "cairn_box_connections_total", **io), 1)
        rings = [value for (_, labels), value
                 in after["cairn_lane_doorbells_total"].samples.items()
                 if dict(labels)["queue"] == "io"]
        self.assertEqual(len(rings), len(CAUSES))
        self.assertLessEqual(self.value(after, "cairn_lane_sends_total", **io),
                             self.value(after, "cairn_lane_messages_total", **io))

    def test_counters_never_fall(self):
        box = self.start_box("mem:size=8M")
        last = {}
        rose = 0
        for _ in range(3):
            self.lanes(box, "--seconds", "0")
            socket.create_connection(("127.0.0.1", box.port)).close()
            families = self.metrics()
            for name, family in families.items():
                for key, value in family.samples.items():
                    if family.type == "gauge":
                        continue
                    self.assertGreaterEqual(value, last.get((name, key), 0), f"{name} {key}")
                    rose += value > last.get((name, key), value)
                    last[(name, key)] = value
        self.assertGreater(rose, 0, "what is counted changed")

    def block_file(self, size):
        path = self.folder / "blocks"
        path.write_bytes(os.urandom(size))
        return path


if __name__ == "__main__":
    support.main()
