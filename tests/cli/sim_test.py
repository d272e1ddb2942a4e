#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn sim`: the same seed twice is the same run."""

import json
import os

import support


class SimEcho(support.CliTest):
    def echo(self, *args, **environment):
        text = self.run_ok("sim", "echo", "--seconds", "1", "--json", *args,
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


if __name__ == "__main__":
    support.main()
