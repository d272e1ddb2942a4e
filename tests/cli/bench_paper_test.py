#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn bench paper`: runs too short to mean anything, and pages that are complete."""

import json
import os
import sys

import support


class PaperI10(support.CliTest):
    def bench(self, *args):
        if support.two_cpus() is None:
            self.skipTest("needs two CPUs")
        return json.loads(self.run_ok("bench", "paper", "i10", "--rounds", "1", "--seconds", "0.02",
                                      "--cores", support.two_cpus(), "--json", *args))

    def test_the_page_and_the_report_are_complete(self):
        report = self.bench("--out", "i10.html", "--svg", "plots")
        page = (self.folder / "i10.html").read_text(encoding="utf-8")
        plots = [path.name for path in (self.folder / "plots").iterdir()]
        self.assertEqual(report["benchmark"], "paper_i10")
        for name, value in report["ratios"].items():
            self.assertIsInstance(value, float, name)
        measured = {(result["name"], result["variant"]) for result in report["results"]}
        for expected in (("ablation_read4k", "caravans"), ("components_read4k", "application"),
                         ("mix_read25", "adaptive"), ("targets48_write4k", "off"),
                         ("size_512", "adaptive"), ("load_20k", "fixed"),
                         ("depth1_read4k", "adaptive, polling")):
            self.assertIn(expected, measured)
        self.assertEqual(page.count("<svg"), len(plots))
        self.assertEqual(page.count("<h2>"), 7)
        for stranger in ("src=", "href=", "<script", "http"):
            self.assertNotIn(stranger, page.replace("http://www.w3.org/2000/svg", ""))
        self.assertIn("i10-load-p99.svg", plots)

    def test_one_experiment_alone(self):
        report = self.bench("--only", "depth1")
        self.assertEqual({result["name"] for result in report["results"]},
                         {"depth1_read4k", "depth1_write4k"})

    def test_a_file_that_cannot_be_written(self):
        if support.two_cpus() is None:
            self.skipTest("needs two CPUs")
        result = self.run_cairn("bench", "paper", "i10", "--rounds", "1", "--seconds", "0.02",
                                "--only", "depth1", "--cores", support.two_cpus(), "--out",
                                "/proc/i10.html")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/proc/i10.html", result.stderr)


class PaperLeapio(support.CliTest):
    def test_the_page_and_the_report_are_complete(self):
        args = ("bench", "paper", "leapio", "--seconds", "0.01", "--json", "--figure", "11a",
                 "--figure", "11b", "--figure", "11f")
        report = json.loads(self.run_ok(*args, "--out", "leapio.html", "--svg", "plots"))
        page = (self.folder / "leapio.html").read_text(encoding="utf-8")
        plots = {path.name for path in (self.folder / "plots").iterdir()}
        self.assertEqual(report["benchmark"], "paper_leapio")
        loads = ("", ", 5000 lookups/s", ", 20000 lookups/s")
        drives = ("5000 lookups/s, aged drive", "20000 lookups/s, aged drive",
                  "40000 lookups/s, aged drive", "5000 lookups/s, batch_depth=0",
                  "5000 lookups/s, suspends in 20 us")
        self.assertEqual({(result["name"], result["variant"]) for result in report["results"]},
                         {("fig11a", f"{line}{load}")
                          for line in ("Base", "+BG", "+BG+Prio") for load in loads}
                         | {("fig11a", f"+BG+Prio, {drive}") for drive in drives}
                         | {("fig11b", line)
                            for line in ("Base", "+Snap", "+Snap+BG", "+Snap+Prio+BG")}
                         | {("fig11f", line) for line in ("Base", "+BG", "+Iso")})
        for ratio in ("priority_p99_vs_solo", "batch_floor", "priority_p99_vs_solo_5k",
                      "batch_floor_20k", "batch_floor_aged", "batch_floor_5k_floor",
                      "priority_p99_vs_solo_5k_suspend", "channels_p99_vs_solo"):
            self.assertGreater(report["ratios"][ratio], 0)
        self.assertEqual(plots, {"leapio-11a.svg", "leapio-11b.svg", "leapio-11f.svg"})
        self.assertEqual(page.count("<svg"), len(plots))
        self.assertIn("What is emulated", page)
        self.assertIn("Figure 11a: Prioritization (simulated)", page)
        self.assertRegex(page, r"search alone moves \d+% of the bytes that batch alone moves")
        self.expect_all_simulated(report)

    def test_the_runtime_on_a_host_and_on_a_card(self):
        report = json.loads(self.run_ok("bench", "paper", "leapio", "--seconds", "0.08", "--json",
                                        "--figure", "10", "--svg", "plots"))
        local = {threads: {each["variant"]: each["value"] for each in report["results"]
                           if each["name"] == f"fig10a_read_{threads}"} for threads in (1, 256)}
        # Virtual time: one read at a time pays for every queue it passes; many share that.
        self.assertLess(local[1]["SoC"], 0.9 * local[1]["SoCVM"])
        self.assertGreater(local[256]["SoC"], 0.9 * local[256]["SoCVM"])
        ratios = report["ratios"]
        self.assertLess(ratios["soc_local_vs_host"], ratios["soc_remote_vs_host"])
        self.assertLess(ratios["soc_remote_vs_host"], 1)
        self.assertEqual(len(list((self.folder / "plots").iterdir())), 4)
        self.expect_all_simulated(report)

    def expect_all_simulated(self, report):
        """No reader shall take for measured what a model computed."""
        self.assertTrue(all(result.get("simulated") for result in report["results"]))
        self.assertEqual(report["simulated_ratios"], sorted(report["ratios"]))

    def without_qemu(self, *programs):
        """Figure 8 and one that needs no guest, where only these programs can be found."""
        (self.folder / "bin").mkdir()
        for name, path in programs:
            (self.folder / "bin" / name).symlink_to(path)
        args = ("--figure", "8", "--figure", "11f", "--seconds", "0.01")
        report = json.loads(self.run_ok("bench", "paper", "leapio", "--json", "--out", "p.html",
                                        *args, env=os.environ | {"PATH": f"{self.folder}/bin"}))
        page = (self.folder / "p.html").read_text(encoding="utf-8")
        self.assertEqual({result["name"] for result in report["results"]}, {"fig11f"})
        self.assertIn("RocksDB in a guest was not measured", page)
        return report["skipped"]["fig8"]

    def test_without_qemu_the_page_goes_on(self):
        why = self.without_qemu(("python3", sys.executable))
        self.assertIn("qemu-system-x86_64", why)
        self.assertIn("apt-get install", why)

    def test_without_python_the_page_goes_on(self):
        self.assertIn("python3", self.without_qemu())

    def test_a_figure_that_is_none(self):
        result = self.run_cairn("bench", "paper", "leapio", "--figure", "12")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("11a", result.stderr)


class PaperSnis(support.CliTest):
    def test_the_page_and_the_report_are_complete(self):
        report = json.loads(self.run_ok("bench", "paper", "snis", "--requests", "200", "--json",
                                        "--out", "snis.html", "--svg", "plots"))
        page = (self.folder / "snis.html").read_text(encoding="utf-8")
        plots = [path.name for path in (self.folder / "plots").iterdir()]
        self.assertEqual(report["benchmark"], "paper_snis")
        self.assertEqual({result["name"] for result in report["results"]},
                         {"F_t_l", "F_t_m", "F_t_h", "F_s_m", "F_s_h"})
        self.assertEqual(report["ratios"]["coupled_vs_iterated_differences"], 0)
        self.assertGreater(report["ratios"]["snis_heavy_s"], 0)
        self.assertEqual(page.count("<svg"), len(plots))
        self.assertIn("Table II", page)


if __name__ == "__main__":
    support.main()
