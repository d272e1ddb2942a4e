#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures 7 to 9 of `cairn bench paper leapio`: RocksDB in a Linux guest, too short to mean
anything, by every way a drive can reach it."""

import json
import shutil

import support

support.HANGS_S = 3500  # a guest in software is slow, and the first one is built


class Guest(support.CliTest):
    def test_every_way_carries_every_load(self):
        if shutil.which("qemu-system-x86_64") is None:
            self.skipTest("needs QEMU")
        report = json.loads(self.run_ok(
            "bench", "paper", "leapio", "--figure", "7", "--figure", "8", "--figure", "9",
            "--guest-keys", "500", "--guest-seconds", "0.1", "--json", "--svg", "plots"))
        self.assertEqual(report.get("skipped", {}), {})
        ways = {"fig7": ("Leap",), "fig8": ("FV", "VH", "Leap"), "fig9": ("kernel", "Leap")}
        self.assertEqual({(line["name"], line["variant"]) for line in report["results"]},
                         {(f"{figure}_{workload}_{threads}", way) for figure in ways
                          for way in ways[figure] for workload in ("read", "mixed")
                          for threads in (1, 4, 16)})
        for line in report["results"]:
            self.assertGreater(line["value"], 0, line)
            self.assertEqual("server_cpu_us" in line, line["variant"] != "FV", line)
        self.assertEqual(set(report["ratios"]),
                         {"leap_ycsb_vs_fv", "leap_ycsb_vs_vh", "leap_remote_vs_kernel"})
        self.assertEqual(len(list((self.folder / "plots").iterdir())), 6)


if __name__ == "__main__":
    support.main()
