#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn bench`: its options, and runs too short to mean anything but complete."""

import json
import os

import support

TINY = ("bench", "runtime", "--rounds", "2", "--seconds", "0.05")
RATIOS = ["crc32c_128k_vs_isal", "crc32c_24_vs_isal", "crc32c_4k_vs_isal", "crc32c_72_vs_isal",
          "epoll_pingpong_vs_raw", "epoll_stream_receive_vs_raw", "epoll_stream_vs_raw",
          "uring_pingpong_vs_raw", "uring_stream_receive_vs_raw", "uring_stream_vs_raw"]
FABRIC_RATIOS = ["read4k_qd128_per_cpu_vs_off", "write4k_qd128_per_cpu_vs_off",
                 "read4k_qd1_p50_vs_off", "sends_per_io_qd128", "read4k_qd128_vs_bare",
                 "write4k_qd128_vs_bare", "read4k_qd32_vs_bare", "read4k_qd1_vs_bare",
                 "read128k_vs_bare", "cpu_cores_at_50k_iops", "conn1000_vs_conn1",
                 "digest_cost_read4k", "digest_cost_write4k", "targets48_vs_1",
                 "strangers_to_slow_a_friend", "friend_p99_under_attack_vs_quiet"]


class Fabric(support.CliTest):
    def bench(self, *args):
        if support.two_cpus() is None:
            self.skipTest("needs two CPUs")
        return json.loads(self.run_ok("bench", "fabric", "--rounds", "1", "--seconds", "0.02",
                                      "--cores", support.two_cpus(), "--json", *args))

    def test_the_report_is_complete(self):
        report = self.bench()
        self.assertEqual(report["schema_version"], 1)
        self.assertEqual(report["benchmark"], "fabric")
        for name in FABRIC_RATIOS:
            self.assertTrue(name in report["ratios"] or name in report["skipped"], name)
        for name, value in report["ratios"].items():  # JSON has no infinity, but null
            self.assertIsInstance(value, float, name)
        measured = {(result["name"], result["variant"]) for result in report["results"]}
        for kind in ("read4k", "write4k", "read128k", "write128k"):
            for depth in (1, 32, 128):
                for variant in ("bare", "cairn", "cairn_sleeping"):
                    self.assertIn((f"{kind}_qd{depth}", variant), measured)
        self.assertIn(("tcp_stream", "plain"), measured)
        self.assertIn(("tcp_pingpong4k", "plain"), measured)
        for result in report["results"]:  # a machine that is busy may get nothing done in time
            self.assertGreaterEqual(result["value"], 0, result)
            if "qd" in result["name"]:
                for side in ("box", "host"):
                    self.assertGreaterEqual(result[f"{side}_cpu_us"], 0, result)
                    self.assertGreaterEqual(result[f"{side}_system_calls"], 0, result)

    def test_one_load_alone(self):
        report = self.bench("--only", "write4k_qd32", "--io", "epoll")
        self.assertEqual({result["name"] for result in report["results"]}, {"write4k_qd32"})

    def test_strangers_alone(self):
        report = self.bench("--only", "strangers")
        if "strangers" in report["skipped"]:
            self.skipTest(report["skipped"]["strangers"])
        self.assertEqual(sorted(report["ratios"]),
                         ["friend_p99_under_attack_vs_quiet", "strangers_to_slow_a_friend"])
        for name, value in report["ratios"].items():
            self.assertIsInstance(value, float, name)
            self.assertGreater(value, 0, name)
        results = {(result["name"], result["variant"]): result for result in report["results"]}
        for count in (1, 10, 100, 1000):
            under_attack = results["friend_read4k_qd1", f"strangers{count}"]
            self.assertGreater(under_attack["strangers"], 0, "the box ended the silent ones")
            self.assertLessEqual(under_attack["strangers"], count)
        self.assertNotIn("strangers", results["friend_read4k_qd1", "quiet"])
        slowed = results["strangers_to_slow_a_friend", "cairn_sleeping"]
        self.assertEqual(slowed["value"], report["ratios"]["strangers_to_slow_a_friend"])
        self.assertIn(slowed["threshold_reached"], (0, 1))
        if slowed["threshold_reached"] == 0:  # a lower bound: the most that were tried
            self.assertEqual(slowed["value"], 1000)

    def test_a_load_that_is_none(self):
        result = self.run_cairn("bench", "fabric", "--only", "raed4k")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("did you mean", result.stderr)


class Smoke(support.CliTest):
    def bench(self, *args, **options):
        if support.two_cpus() is None:
            self.skipTest("needs two CPUs")
        return json.loads(self.run_ok(*TINY, "--cores", support.two_cpus(), "--json", *args,
                                      **options))

    def test_the_report_is_complete(self):
        report = self.bench()
        self.assertEqual(report["schema_version"], 1)
        self.assertEqual(report["benchmark"], "runtime")
        self.assertRegex(report["commit"], r"^([0-9a-f]{40}(-dirty)?|unknown)$")
        self.assertEqual(report["machine"]["kernel"], os.uname().release)
        ratios = [name for name in RATIOS if name.split("_")[0] not in report["skipped"]]
        self.assertEqual(sorted(report["ratios"]), ratios)
        measured = {(result["name"], result.get("variant")) for result in report["results"]}
        for load in ("stream", "pingpong"):
            for variant in ("raw_blocking", "raw_epoll", "epoll"):
                self.assertIn((load, variant), measured)
        for result in report["results"]:
            if result["name"] == "idle":  # one long wait; it may cost nothing measurable
                self.assertLess(result["value"], 1, result)
                continue
            self.assertEqual(len(result["samples"]), 2, result)
            self.assertGreater(result["value"], 0, result)
            if result["name"] == "pingpong":
                self.assertLessEqual(result["p50_us"], result["p99_us"])
                self.assertLessEqual(result["p99_us"], result["p999_us"])

    def test_one_part_alone(self):
        report = self.bench("--only", "task")
        self.assertEqual([result["name"] for result in report["results"]],
                         ["task_immediate", "task_suspended"])
        for result in report["results"]:  # sanitizers do not let it count
            self.assertEqual(result.get("allocations_per_operation", 0), 0)
        self.assertEqual(report["ratios"], {})

    def test_without_uring_the_rest_is_measured(self):
        report = self.bench("--only", "stream", denied=("EPERM", "io_uring_setup"))
        self.assertIn("seccomp", report["skipped"]["uring"])
        self.assertEqual(list(report["ratios"]),
                         ["epoll_stream_receive_vs_raw", "epoll_stream_vs_raw"])

    def test_people_get_a_table(self):
        if support.two_cpus() is None:
            self.skipTest("needs two CPUs")
        text = self.run_ok(*TINY, "--cores", support.two_cpus(), "--only", "pingpong")
        self.assertRegex(text, r"(?m)^pingpong +raw_blocking +[\d.]+ (k )?round trips/s +p50_us ")
        self.assertRegex(text, r"(?m)^epoll_pingpong_vs_raw \d+\.\d{3}$")


class Rpc(support.CliTest):
    def test_the_report_is_complete(self):
        if support.two_cpus() is None:
            self.skipTest("needs two CPUs")
        report = json.loads(self.run_ok("bench", "rpc", "--rounds", "2", "--seconds", "0.05",
                                        "--cores", support.two_cpus(), "--json"))
        self.assertEqual(report["schema_version"], 1)
        self.assertEqual(report["benchmark"], "rpc")
        self.assertEqual([result["name"] for result in report["results"]],
                         ["rpc_call", "bare_exchange", "rpc_calls", "bare_batch"])
        for result in report["results"]:
            self.assertEqual(len(result["samples"]), 2, result)
            self.assertGreater(result["value"], 0, result)
            self.assertLessEqual(result["p50_us"], result["p99_us"])
        self.assertEqual(sorted(report["ratios"]),
                         ["rpc_call_p50_vs_bare", "rpc_call_vs_bare", "rpc_calls_vs_bare"])
        for name, value in report["ratios"].items():
            self.assertGreater(value, 0, name)


class Mistakes(support.CliTest):
    def test_options(self):
        runtime = ["bench", "runtime"]
        for value in ("0", "x", "1001", "1.5", "-1", ""):
            self.expect_usage([*runtime, f"--rounds={value}"], "--rounds")
        for value in ("0", "x", "nan", "inf", "1e9", "-1"):
            self.expect_usage([*runtime, "--seconds", value], "--seconds")
        self.expect_usage([*runtime, "--only", "strem"], "did you mean 'stream'?")
        self.expect_usage([*runtime, "--cores", "0"], "takes two CPUs such as 0,1, not '0'")
        self.expect_usage([*runtime, "--cores", "0,0"], "names CPU 0 twice")

    def test_a_cpu_that_is_not_there(self):
        result = self.run_cairn(*TINY, "--cores", "0,1023")
        self.expect_sentence(result, 1, "CPU 1023 is not one this process may use: choose among")


if __name__ == "__main__":
    support.main()
