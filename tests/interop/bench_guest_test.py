#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn bench drive --only guest`: a run too short to mean anything, and a complete report."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import unittest

JOBS = ("randread4k_qd1", "randread4k_qd32", "randwrite4k_qd32", "mixed4k_qd32", "read128k_qd8")
WAYS = ("vhost_user", "vhost_user_qsd_io_uring", "vhost_user_qsd_threads", "nbd_emulated_nvme",
        "nvme_tcp")
LIMIT_S = 1800


class BenchGuest(unittest.TestCase):
    program: pathlib.Path
    folder: pathlib.Path

    def test_every_way_carries_every_job(self):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            self.skipTest("needs two CPUs")
        work = self.folder / "bench_guest"
        work.mkdir(parents=True, exist_ok=True)
        ran = subprocess.run(
            [self.program, "bench", "drive", "--only", "guest", "--rounds", "1", "--seconds", "0.2",
             "--cores", f"{cpus[0]},{cpus[1]}", "--folder", work, "--json"], capture_output=True,
            text=True, timeout=LIMIT_S, env={**os.environ, "CAIRN_GUESTS": self.folder / "guests"})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        report = json.loads(ran.stdout)
        self.assertEqual(report["skipped"], {})
        self.assertEqual({(result["name"], result["variant"]) for result in report["results"]},
                         {(f"guest_{job}", way) for job in JOBS for way in WAYS})
        for result in report["results"]:
            self.assertGreater(result["value"], 0, result)
            self.assertGreater(result["io_per_cpu_second"], 0, result)
            self.assertGreaterEqual(result["p99_us"], result["p50_us"], result)
        for name in [f"guest_{job}_per_cpu_vs_qsd" for job in JOBS]:
            self.assertGreater(report["ratios"][name], 0)
        self.assertGreater(report["ratios"]["vhost_iops_per_cpu_vs_qsd"], 0)
        self.assertEqual(list(work.iterdir()), [], "nothing is left behind")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--folder", required=True, type=lambda path: pathlib.Path(path).resolve())
    options, rest = parser.parse_known_args()
    BenchGuest.program, BenchGuest.folder = options.program, options.folder
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
