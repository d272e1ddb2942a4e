#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn sim`: the same seed twice is the same run; modelled drives and networks."""

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

    def test_a_report_that_cannot_be_written_is_told(self):
        result = self.run_cairn("sim", "ssd", "--synthetic", "read", "--requests", "10", "--html",
                                "/proc/no/report.html")
        self.expect_sentence(result, 1, "/proc/no/report.html")


class SimNet(support.CliTest):
    def net(self, *words):
        return json.loads(self.run_ok("sim", "net", "--json", *words))

    def test_the_same_seed_gives_the_same_network(self):
        words = ("--topology", "leaf-spine:2x4x2", "--load", "permutation", "--bytes", "100000")
        self.assertEqual(self.net(*words, "--seed", "3"), self.net(*words, "--seed", "3"))

    def test_pause_loses_nothing_and_drop_tail_repairs(self):
        paused = self.net("--control", "none", "--buffer", "1024")
        self.assertEqual((paused["flows"], paused["drops"]), (10, 0))
        self.assertGreater(paused["pauses_at_hosts"], 0)
        dropped = self.net("--control", "cubic")
        self.assertEqual(dropped["payload_bytes"], 10_000_000)
        self.assertGreater(dropped["drops"], 0)

    def test_a_topology_comes_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rack.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write('hosts = ["a", "b"]\n[[link]]\nbetween = ["a", "b"]\n'
                           'rate = "1 Gb/s"\ndelay = "10 us"\n')
            self.assertEqual(self.net("--topology", path)["flows"], 1)
            with open(path, "w", encoding="utf-8") as file:
                file.write("hosts = 3\n")
            self.expect_usage(["sim", "net", "--topology", path],
                              "line 1, column 9: hosts is a list of names")

    def test_mistakes(self):
        self.expect_usage(["sim", "net", "--topology", "ring:3"], "there is no topology")
        self.expect_usage(["sim", "net", "--control", "tcp"], "none, dcqcn, dctcp or cubic")


class SimCheck(support.CliTest):
    def test_a_reference_of_networks_is_a_folder(self):
        folder = os.path.join(os.path.dirname(__file__), "..", "data", "net")
        result = json.loads(self.run_ok("sim", "check", folder, "--json"))
        self.assertTrue(result["ok"])
        self.assertGreater(result["numbers"], 80)


if __name__ == "__main__":
    support.main()
