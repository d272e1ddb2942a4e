#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn bench kv`: runs too short to mean anything, whose reports are complete."""

import json
import shutil
import unittest

import support

WORKLOADS = ("a", "b", "c", "d", "f", "wr")
SIZES = ("_256", "_1024")


class BenchKv(support.CliTest):
    def bench(self, part, *more):
        return json.loads(self.run_ok(
            "bench", "kv", "--only", part, "--folder", str(self.folder), "--buffered", "--rounds",
            "1", "--seconds", "0.05", "--records", "2000", "--depth", "8", "--json", *more))

    def test_workloads_next_to_rocksdb(self):
        report = self.bench("ycsb", "--rate", "200")
        self.assertEqual((report["benchmark"], report["schema_version"]), ("kv", 1))
        expected = {f"ycsb_{name}_ops_per_cpu_vs_rocksdb{size}"
                    for name in WORKLOADS for size in ("",) + SIZES}
        expected |= {f"get_p99_vs_rocksdb{size}" for size in ("",) + SIZES}
        self.assertEqual(set(report["ratios"]), expected)
        for value in report["ratios"].values():
            self.assertGreater(value, 0)
        lines = {(line["name"], line["variant"]): line for line in report["results"]}
        for name in WORKLOADS:
            for size in SIZES:
                for variant in ("cairn", "rocksdb"):
                    line = lines[f"ycsb_{name}{size}", variant]
                    self.assertGreater(line["op_per_cpu_second"], 0)
                    self.assertEqual("read_p99_us" in line, name != "wr")

    def test_a_drive_is_filled(self):
        ratios = self.bench("capacity", "--capacity", "64M")["ratios"]
        self.assertGreater(ratios["usable_capacity_256"], 0.7)
        self.assertGreater(ratios["usable_capacity_1024"], 0.8)
        self.assertEqual(ratios["usable_capacity"], ratios["usable_capacity_256"])

    def test_memory_is_measured_at_three_sizes(self):
        report = self.bench("memory", "--objects", "100000")
        self.assertEqual(set(report["ratios"]), {
            "dram_bytes_per_object", "dram_bytes_per_object_10pct", "dram_bytes_per_object_1pct"})
        self.assertEqual({line["name"] for line in report["results"]}, {
            f"{what}_{count}_objects" for what in ("put", "get")
            for count in (1000, 10000, 100000)})

    def test_compaction_with_one_mover_and_with_eight(self):
        report = self.bench("compaction")
        self.assertGreater(report["ratios"]["compaction_speedup_8"], 0)
        for line in report["results"]:
            self.assertGreater(line["values_moved"], 0)

    @unittest.skipUnless(shutil.which("redis-server") and shutil.which("redis-benchmark"),
                         "there is no Redis here")
    def test_served_next_to_redis(self):
        report = self.bench("redis")
        self.assertEqual(set(report["ratios"]), {"set_durable_vs_redis"} | {
            f"redis_benchmark_{what}_vs_redis{depth}"
            for what in ("get", "set") for depth in ("", "_p16")})
        for line in report["results"]:
            self.assertGreater(line["value"], 0)

    def test_what_makes_no_sense(self):
        self.expect_sentence(self.run_cairn("bench", "kv", "--capacity", "1M"), 1, "64M at least")
        self.expect_usage(("bench", "kv", "--only", "none"), "'none'")


if __name__ == "__main__":
    support.main()
