#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn bench rocksdb`: a database too small to mean anything, whose values are all right."""

import json

import support


class Rocksdb(support.CliTest):
    def bench(self, *args):
        if support.two_cpus() is None:
            self.skipTest("needs two CPUs")
        return json.loads(self.run_ok("bench", "rocksdb", "--rounds", "1", "--keys", "2000",
                                      "--reads", "400", "--threads", "4", "--memory", "64M",
                                      "--cores", support.two_cpus(), "--json", *args))

    def expect_complete(self, report):
        self.assertEqual(report["benchmark"], "rocksdb")
        phases = ("fillrandom", "readrandom", "multireadrandom", "readwhilewriting")
        self.assertEqual({(result["name"], result["variant"]) for result in report["results"]},
                         {(phase, mode) for phase in phases
                          for mode in ("off", "fixed", "adaptive")})
        for result in report["results"]:
            self.assertGreater(result["value"], 0, result)
            self.assertGreaterEqual(result["cpu_us"], 0, result)
        for phase in phases:
            for what in ("time", "cpu", "storage_cpu"):
                self.assertGreater(report["ratios"][f"{phase}_{what}_vs_off"], 0)
                self.assertGreater(report["ratios"][f"{phase}_{what}_fixed_vs_off"], 0)

    def test_the_report_is_complete(self):
        self.expect_complete(self.bench())

    def test_on_epoll(self):
        self.expect_complete(self.bench("--io", "epoll"))

    def test_a_drive_that_is_too_small(self):
        if support.two_cpus() is None:
            self.skipTest("needs two CPUs")
        result = self.run_cairn("bench", "rocksdb", "--rounds", "1", "--keys", "20000", "--reads",
                                "100", "--memory", "2M", "--cores", support.two_cpus())
        self.assertEqual(result.returncode, 1)
        self.assertIn("the drive under the files is full", result.stderr)


if __name__ == "__main__":
    support.main()
