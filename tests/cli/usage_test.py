#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands, options, help, and mistakes in them."""

import functools
import os
import pathlib
import re
import shutil
import subprocess

import support


def listed_in(text, title):
    """The rows of a block of help: what is typed, and the first line of what it means."""
    block = re.search(rf"(?m)^{title}:\n((?:  .+\n)+)", text)
    rows = [] if block is None else block[1].splitlines()
    return [(*re.split(" {2,}", row.strip(), maxsplit=1), "")[:2] for row in rows if row[2] != " "]


class Help(support.CliTest):
    found = []  # by helps(), once

    def test_no_command_shows_help_on_stderr(self):
        result = self.run_cairn()
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("Usage: cairn COMMAND", result.stderr)

    def test_help_lists_every_command_and_fits_a_screen(self):
        text = self.run_ok("--help")
        self.assertLess(text.count("\n"), 27)
        self.assertEqual(self.run_ok("-h"), text)
        listed = [line.split("  ")[0].split()[1:] for line in self.run_ok("help").splitlines()]
        self.assertGreater(len(listed), 1)
        self.assertEqual([args for args, _ in self.helps() if args], listed)

    def test_groups_name_the_commands_that_their_help_lists(self):
        groups = [(args, text) for args, text in self.helps()
                  if args and f"Usage: cairn {' '.join(args)} COMMAND\n" in text]
        self.assertGreater(len(groups), 1)
        for args, text in groups:
            with self.subTest(args):
                needed = ", ".join(name for name, _ in listed_in(text, "Commands"))
                self.expect_usage(args, f"'cairn {' '.join(args)}' needs a command: {needed}.")

    def test_each_command_has_help_with_a_purpose_and_examples(self):
        for args, text in self.helps():
            name = " ".join(["cairn", *args])
            with self.subTest(name):
                self.assertRegex(text, rf"(?m)^Usage: {name}( |$)")
                for line in text.splitlines():
                    self.assertLessEqual(len(line), 100)
                if not args:
                    continue
                self.assertRegex(text, rf"\A{name}: \w.+\n\nUsage: ")
                if f"Usage: {name} COMMAND\n" not in text:  # groups do nothing by themselves
                    self.assertRegex(text, rf"\nExamples:\n(  .*\n)*  .*\b{name}\b")

    def test_each_argument_and_option_is_explained(self):
        options = 0
        for args, text in self.helps():
            rows = [*listed_in(text, "Arguments"), *listed_in(text, "Options")]
            options += len(rows)
            with self.subTest(args):
                if args:  # the first line of the root's says it
                    self.assertEqual(rows[-1], ("-h, --help", "show this help"))
                for name, what in rows:
                    self.assertRegex(what, r"\w", name)
        self.assertGreater(options, len(self.helps()), "somebody has more than --help")

    def helps(self):
        """What --help says of each command, with its arguments, from the root down."""
        pending = [] if Help.found else [[]]
        while pending:
            args = pending.pop(0)
            text = self.run_ok(*args, "--help")
            Help.found.append((args, text))
            pending[:0] = [[*args, name] for name, _ in listed_in(text, "Commands")]
        return Help.found

    def test_help_names_all_settings(self):
        self.write("c.toml", "[runtime]\nnone = 1\n[log]\nnone = 1\n")
        told = self.run_cairn("config", "check", "c.toml").stderr
        keys = ", ".join(re.findall(r"\(allowed: (.+)\)", told)).split(", ")
        self.assertIn("poll_cores", keys)
        self.assertEqual(keys.count("level"), 1, "that of the log")
        options = dict(listed_in(self.run_ok("up", "--help"), "Options"))
        names = {option.split()[0] for option in options}
        for key in keys:
            self.assertIn({"level": "--log-level"}.get(key, "--" + key.replace("_", "-")), names)


class Version(support.CliTest):
    def test_version_names_commit_and_compiler(self):
        text = self.run_ok("version")
        self.assertRegex(text, r"^cairn \d+\.\d+\.\d+\ncommit ([0-9a-f]{40}(-dirty)?|unknown)\n")
        self.assertRegex(text, r"Clang \d+")
        self.assertEqual(self.run_ok("--version"), text)

    def test_programs_of_two_builds_do_not_work_together(self):
        """cairn says to the program that it starts which build it is of; that one compares."""
        if self.is_emulated:
            self.skipTest("a program cannot start another one by its path")
        folder = self.folder / "bin"
        folder.mkdir()
        cairn = pathlib.Path(self.command(())[-1])
        for name in ("cairn", "cairn-lab"):
            shutil.copy(cairn.parent / name, folder)
        version, commit = re.findall(r"^(?:cairn|commit) (\S+)$", self.run_ok("version"), re.M)
        run = functools.partial(subprocess.run, capture_output=True, text=True, check=False,
                                timeout=support.HANGS_S)
        both = run([folder / "cairn", "plan", "--help"])
        self.assertEqual((both.returncode, both.stderr), (0, ""))
        for other in ("0.0.1 " + commit, version + " " + "0" * 40, ""):
            told = run([folder / "cairn-lab", "plan", "--help"],
                       env={**os.environ, "CAIRN_STARTED_BY": other})
            self.expect_sentence(told, 1, f"cairn is of build '{other}'", f"'{version} {commit}'",
                                 "./cairn bench --help")
        (folder / "cairn-lab").write_text("#!/bin/sh\necho $CAIRN_STARTED_BY\n")
        (folder / "cairn-lab").chmod(0o755)
        self.assertEqual(run([folder / "cairn", "plan"]).stdout, f"{version} {commit}\n")


class Mistakes(support.CliTest):
    def test_unknown_command(self):
        self.expect_usage(["doctr"], "has no command 'doctr'", "did you mean 'doctor'?",
                          "'cairn --help'")
        self.expect_usage(["bench", "runtim"], "did you mean 'runtime'?", "'cairn bench --help'")

    def test_nothing_is_near(self):
        for args in (["zebra"], [""], ["doctor", "--zebra"]):
            result = self.run_cairn(*args)
            self.expect_sentence(result, 2, "has no ")
            self.assertNotIn("did you mean", result.stderr)

    def test_unknown_option(self):
        self.expect_usage(["doctor", "--jsn"], "'cairn doctor' has no option '--jsn'",
                          "did you mean '--json'?", "'cairn doctor --help'")
        self.expect_usage(["--jsn", "doctor"], "'cairn' has no option '--jsn'")
        self.expect_usage(["up", "--cors=0"], "no option '--cors'", "did you mean '--cores'?")
        self.expect_usage(["doctor", "-j"], "no option '-j'")

    def test_a_renamed_command_names_the_new_one(self):
        for old, new in {"sim ssd": "plan ssd", "sim net": "plan net", "sim snis": "plan snis",
                         "sim plan": "plan capacity", "sim fit": "plan fit",
                         "sim check": "plan validate", "nvme gen-key": "key new auth",
                         "nvme gen-tls-key": "key new tls", "nvme check-tls-key": "key inspect",
                         "drive key new": "key new drive", "box": "serve",
                         "drive serve": "serve"}.items():
            for rest in ([], ["--help"], ["x", "--json"]):
                with self.subTest(old=old, rest=rest):
                    self.expect_usage([*old.split(), *rest], f"is 'cairn {new}' now",
                                      f"'cairn {new} --help'")
            self.run_ok(*new.split(), "--help")

    def test_missing_command(self):
        self.expect_usage(["bench"], "'cairn bench' needs a command: runtime")

    def test_surplus_args(self):
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
        args = ("sim", "echo", "--seed", "7", "--seconds")
        once = self.run_ok(*args, "1")
        self.assertEqual(self.run_ok(*args, "2", "--seconds", "1"), once)
        self.assertNotEqual(self.run_ok(*args, "1", "--seconds", "2"), once)

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for args in (["version"], ["doctor", "--json"], ["--help"]):
                result = self.run_cairn(*args, stdout=full)
                self.expect_sentence(result, 1, "could not be written")


if __name__ == "__main__":
    support.main()
