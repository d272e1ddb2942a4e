#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn bench ycsb`: a database too small to mean anything, whose records are all right."""

import json

import support


class Ycsb(support.CliTest):
    def args(self, *more):
        return ("bench", "ycsb", "--folder", str(self.folder), "--buffered", *more)

    def bench(self, *more):
        return json.loads(self.run_ok(*self.args("--operations", "300", "--json", *more)))

    def test_the_report_is_complete(self):
        report = self.bench("--keys", "500")
        self.assertEqual((report["benchmark"], report["schema_version"]), ("ycsb", 1))
        self.assertTrue(report["commit"])
        lines = {(line["name"], line.get("variant", "")): line for line in report["results"]}
        self.assertEqual(set(lines), {("load", "")} | {
            (f"workload_{workload}", threads) for workload in "abc"
            for threads in ("1 thread", "4 threads", "16 threads")})
        for (name, _), line in lines.items():
            self.assertGreater(line["value"], 0)
            if name == "load":
                continue
            self.assertEqual(line["operations"], 300)
            self.assertLessEqual(line["read_p50_us"], line["read_p999_us"])
            self.assertEqual("update_p99_us" in line, name != "workload_c")

    def test_a_kept_database_is_used_again(self):
        self.bench("--keys", "500", "--workload", "a", "--threads", "2", "--sync")
        report = self.bench("--keep", "--workload", "a", "--threads", "3", "--distribution",
                            "zipfian", "--cache", "0")
        self.assertEqual([(line["name"], line["variant"]) for line in report["results"]],
                         [("workload_a", "3 threads")])

    def test_seconds_instead_of_operations(self):
        table = self.run_ok(*self.args("--keys", "500", "--seconds", "0.01", "--workload", "c"))
        self.assertIn("workload_c", table)

    def test_nothing_to_keep(self):
        result = self.run_cairn(*self.args("--keep"))
        self.expect_sentence(result, 1, "no database to keep", "without --keep")

    def test_no_such_folder(self):
        result = self.run_cairn("bench", "ycsb", "--folder", str(self.folder / "none"))
        self.expect_sentence(result, 1, "there is no folder", "none")

    def test_a_folder_without_direct_reads(self):
        result = self.run_cairn("bench", "ycsb", "--folder", "/proc", "--keys", "100")
        self.assertEqual(result.returncode, 1)
        self.assertIn("'/proc'", result.stderr)

    def test_options_that_make_no_sense(self):
        self.expect_usage(self.args("--threads", "0"), "--threads", "from 1 to 100")
        self.expect_usage(self.args("--distribution", "normal"), "uniform or zipfian")
        self.expect_usage(self.args("--workload", "d"), "'d'")
        self.expect_usage(self.args("--keep", "--keys", "500"), "--keep")
        self.expect_usage(("bench", "ycsb"), "--folder")


if __name__ == "__main__":
    support.main()
