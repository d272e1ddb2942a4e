#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands, options, help, and mistakes in them."""

import support


class Help(support.CliTest):
    def test_no_command_shows_help_on_stderr(self):
        result = self.run_cairn()
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("Usage: cairn COMMAND", result.stderr)

    def test_help_lists_every_command_and_fits_a_screen(self):
        text = self.run_ok("--help")
        for command in "up doctor box bench sim config version".split():
            self.assertRegex(text, rf"(?m)^  {command}  +\w")
        self.assertLess(text.count("\n"), 25)
        self.assertEqual(self.run_ok("-h"), text)

    def test_each_command_has_help_with_examples(self):
        for words in ("up", "doctor", "bench runtime", "sim echo", "config check"):
            with self.subTest(words):
                text = self.run_ok(*words.split(), "--help")
                self.assertTrue(text.startswith(f"cairn {words}: "), text)
                self.assertIn(f"Usage: cairn {words} ", text)
                self.assertIn(f"Examples:\n  cairn {words}", text)
                self.assertLess(text.count("\n"), 25)
                for line in text.splitlines():
                    self.assertLessEqual(len(line), 100)

    def test_groups_list_their_commands(self):
        self.assertRegex(self.run_ok("bench", "--help"), r"(?m)^  runtime  +\w")
        self.assertRegex(self.run_ok("sim", "--help"), r"(?m)^  echo  +\w")
        self.assertRegex(self.run_ok("config", "--help"), r"(?m)^  check  +\w")

    def test_help_names_all_settings(self):
        text = self.run_ok("up", "--help")
        for option in "--io --cores --poll --config --log-level --help".split():
            self.assertIn(option, text)


class Version(support.CliTest):
    def test_version_names_commit_and_compiler(self):
        text = self.run_ok("version")
        self.assertRegex(text, r"^cairn \d+\.\d+\.\d+\ncommit ([0-9a-f]{40}(-dirty)?|unknown)\n")
        self.assertRegex(text, r"Clang \d+")
        self.assertEqual(self.run_ok("--version"), text)


class Mistakes(support.CliTest):
    def test_unknown_command(self):
        self.expect_usage(["doctr"], "has no command 'doctr'", "did you mean 'doctor'?",
                          "'cairn --help'")
        self.expect_usage(["bench", "runtim"], "did you mean 'runtime'?", "'cairn bench --help'")

    def test_nothing_is_near(self):
        for words in (["zebra"], [""], ["doctor", "--zebra"]):
            result = self.run_cairn(*words)
            self.expect_sentence(result, 2, "has no ")
            self.assertNotIn("did you mean", result.stderr)

    def test_unknown_option(self):
        self.expect_usage(["doctor", "--jsn"], "'cairn doctor' has no option '--jsn'",
                          "did you mean '--json'?", "'cairn doctor --help'")
        self.expect_usage(["--jsn", "doctor"], "'cairn' has no option '--jsn'")
        self.expect_usage(["up", "--cors=0"], "no option '--cors'", "did you mean '--cores'?")
        self.expect_usage(["doctor", "-j"], "no option '-j'")

    def test_missing_command(self):
        self.expect_usage(["bench"], "'cairn bench' needs a command: runtime")

    def test_surplus_words(self):
        self.expect_usage(["doctor", "now"], "has no command 'now'")
        self.expect_usage(["version", "now"], "has no use for 'now'")
        self.expect_usage(["config", "check", "a", "b"], "has no use for 'b'")

    def test_values(self):
        self.expect_usage(["up", "--io"], "--io needs a value")
        self.expect_usage(["config", "check"], "needs FILE")
        self.expect_usage(["doctor", "--json=3"], "--json takes no value")
        self.expect_usage(["up", "--io", "urin"], "--io 'urin' is not one of auto, uring, epoll",
                          "did you mean 'uring'?")
        self.expect_usage(["up", "--log-level", "loud"], "debug, info, warn, error")
        self.expect_usage(["up", "--cores", "0,x"], "--cores '0,x'", "something like 0,1")
        self.expect_usage(["up", "--cores", "1,1"], "names CPU 1 twice")

    def test_bytes_that_would_move_the_cursor_are_escaped(self):
        self.expect_usage(["\x1b[31mred"], r"'\x1b[31mred'")

    def test_a_word_longer_than_a_screen_is_cut(self):
        result = self.run_cairn("x" * 100_000)
        self.expect_sentence(result, 2)
        self.assertLess(len(result.stderr), 200)

    def test_of_two_values_the_last_counts(self):
        self.run_ok("sim", "echo", "--seconds", "5", "--seconds", "1")

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for words in (["version"], ["doctor", "--json"], ["--help"]):
                result = self.run_cairn(*words, stdout=full)
                self.expect_sentence(result, 1, "could not be written")


if __name__ == "__main__":
    support.main()
