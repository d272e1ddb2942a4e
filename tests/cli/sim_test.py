#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn sim`: the same seed twice is the same run; a modelled drive and its report."""

import json
import os
import tempfile

import support


class SimEcho(support.CliTest):
    def echo(self, *words, **environment):
        text = self.run_ok("sim", "echo", "--seconds", "1", "--json", *words,
                           env={**os.environ, **environment})
        return json.loads(text)

    def test_the_same_seed_gives_the_same_trace(self):
        once = self.echo("--seed", "3", "--faults")
        self.assertEqual(self.echo("--seed", "3", "--faults"), once)
        self.assertNotEqual(self.echo("--seed", "4", "--faults")["trace_hash"], once["trace_hash"])
        self.assertTrue(once["ok"])
        self.assertGreater(once["rounds"], 0)

    def test_the_seed_comes_from_the_option_the_environment_or_is_1(self):
        self.assertEqual(self.echo()["seed"], 1)
        self.assertEqual(self.echo(CAIRN_SEED="9")["seed"], 9)
        self.assertEqual(self.echo("--seed", "5", CAIRN_SEED="9")["seed"], 5)
        result = self.run_cairn("sim", "echo", env={**os.environ, "CAIRN_SEED": "x"})
        self.expect_sentence(result, 1, "CAIRN_SEED takes a whole number")

    def test_many_runs_have_a_line_each(self):
        text = self.run_ok("sim", "echo", "--seconds", "0.01", "--runs", "5")
        self.assertEqual([line.split(":")[0] for line in text.splitlines()],
                         [f"seed {seed}" for seed in range(1, 6)])

    def test_mistakes(self):
        self.expect_usage(["sim", "echo", "--seed", "-1"], "--seed takes a whole number")
        self.expect_usage(["sim", "eco"], "did you mean 'echo'?")
        self.expect_usage(["sim"], "'cairn sim' needs a command: echo")


class SimSsd(support.CliTest):
    def test_the_report_is_one_page_beside_the_numbers(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            text = self.run_ok("sim", "ssd", "--synthetic", "mix", "--requests", "2000", "--json",
                               "--html", path)
            self.assertEqual(json.loads(text)["requests"], 2000)
            with open(path, encoding="utf-8") as page:
                html = page.read()
        self.assertIn("A modelled drive: laptop-tlc", html)
        self.assertIn("2000 requests of 4096 bytes (mix), 32 in flight", html)
        self.assertGreaterEqual(html.count("<svg"), 6)

    def test_a_trace_of_any_format_is_replayed(self):
        self.write("t.log", "fio version 3 iolog\n5 /d/a add\n9 /d/a read 4096 8192\n"
                            "29 /d/a write 0 512\n")
        text = self.run_ok("sim", "ssd", "--trace", "t.log", "--time-scale", "2", "--json",
                           "--csv", "times.csv")
        self.assertEqual(json.loads(text)["requests"], 2)
        rows = (self.folder / "times.csv").read_text(encoding="utf-8").splitlines()
        self.assertEqual(sorted(row.rsplit(",", 2)[0] for row in rows[1:]),
                         ["0,8,16,R", "40000,0,1,W"])
        result = self.run_cairn("sim", "ssd", "--trace", "t.log", "--format", "mqsim")
        self.expect_sentence(result, 1, "'t.log', line 2, field sectors")

    def test_a_report_that_cannot_be_written_is_told(self):
        result = self.run_cairn("sim", "ssd", "--synthetic", "read", "--requests", "10", "--html",
                                "/proc/no/report.html")
        self.expect_sentence(result, 1, "/proc/no/report.html")


if __name__ == "__main__":
    support.main()
