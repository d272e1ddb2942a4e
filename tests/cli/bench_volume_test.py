#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn bench volume`: who gets how much of drives that volumes share. What is simulated is the
same on every machine, so it is held to what was promised; what is live is only complete."""

import json

import support

# Ratios of the part "share" and how large, or how small, they are.
AT_MOST = {
    "share_error_equal": 0.05,
    "share_error_weights": 0.10,
    "floor_error": 0.10,
    "scheduler_throughput_cost": 0.03,
    "avoid_latency_read": 0.60,
    "avoid_latency_write": 0.70,
}
AT_LEAST = {
    "victim_p50_gain": 4.8,
    "victim_p99_gain": 2.6,
    "victim_p999_gain": 7.5,
}
CONGESTED = ("congested_write_vs_lvm", "congested_mix30_vs_lvm", "congested_mix50_vs_lvm")


class BenchVolume(support.CliTest):
    def bench(self, part, seconds):
        report = json.loads(self.run_ok("bench", "volume", "--only", part, "--rounds", "1",
                                        "--seconds", seconds, "--json"))
        self.assertEqual((report["benchmark"], report["schema_version"]), ("volume", 1))
        self.assertIn("commit", report)
        return report

    def test_shares_hold(self):
        report = self.bench("share", "0.1")
        ratios = report["ratios"]
        for name, most in AT_MOST.items():
            self.assertLessEqual(ratios[name], most, name)
        for name, least in AT_LEAST.items():
            self.assertGreaterEqual(ratios[name], least, name)
        for name in CONGESTED:
            self.assertGreater(ratios[name], 1, name)
        self.assertEqual(set(ratios), set(report["simulated_ratios"]))
        lines = {(line["name"], line["variant"]): line for line in report["results"]}
        for name in ("share_error_equal", "share_error_weights", "floor_error",
                     "scheduler_throughput_cost", "victim_p50"):
            for way in ("on", "off", "no_view", "no_order", "no_shares"):
                self.assertTrue(lines[name, way]["simulated"])
        # Without the auction who sends most gets most.
        self.assertGreater(lines["share_error_equal", "off"]["value"], 0.5)

    def test_what_the_view_costs(self):
        report = self.bench("view", "0.05")
        self.assertEqual(set(report["ratios"]), {"view_query_p50_us", "view_sync_p50_us",
                                                 "arbiter_cores_at_100k_iops"})
        self.assertEqual(report["simulated_ratios"], [])
        for value in report["ratios"].values():
            self.assertGreater(value, 0)


if __name__ == "__main__":
    support.main()
