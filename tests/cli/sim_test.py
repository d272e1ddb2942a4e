#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn sim`: the same seed twice is the same run; a modelled drive and its report."""

import json
import os
import pty
import subprocess
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

    def on_terminal(self, *words):
        """What `cairn` shows on a terminal's stderr."""
        terminal, side = pty.openpty()
        with os.fdopen(terminal, "rb", buffering=0) as shown:
            process = subprocess.Popen(self.command(words), stderr=side, cwd=self.folder,
                                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            os.close(side)
            text = b""
            try:
                while part := shown.read(4096):
                    text += part
            except OSError:  # how Linux says that nobody has the terminal's other side any more
                pass
            self.assertEqual(process.wait(timeout=60), 0)
        return text.decode()

    LONG = ("sim", "ssd", "--synthetic", "write", "--requests", "1000000")

    def test_a_terminal_is_told_how_long_it_will_take(self):
        text = self.on_terminal(*self.LONG)
        self.assertRegex(text, r"\[=* *\] +\d+%  [\d.]+ s simulated, \d+ s to go")
        self.assertTrue(text.endswith("\r\x1b[K"), text[-80:])

    def test_with_json_a_terminal_is_told_nothing_and_so_is_a_pipe(self):
        self.assertEqual(self.on_terminal(*self.LONG, "--json"), "")
        self.run_ok(*self.LONG[:-1], "20000")

    def test_a_report_that_cannot_be_written_is_told(self):
        result = self.run_cairn("sim", "ssd", "--synthetic", "read", "--requests", "10", "--html",
                                "/proc/no/report.html")
        self.expect_sentence(result, 1, "/proc/no/report.html")


if __name__ == "__main__":
    support.main()
