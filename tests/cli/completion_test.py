#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bash, zsh and fish complete after the scripts of `cairn help --completion`, and the pages of
`cairn help --man` as groff formats them."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

import support


class CompletionTest(support.CliTest):
    shell = ""

    @classmethod
    def setUpClass(cls):
        if cls.shell and not shutil.which(cls.shell):
            raise unittest.SkipTest(f"not installed: {cls.shell}")

    def setUp(self):
        super().setUp()
        if self.shell:
            self.write("script", self.run_ok("help", "--completion", self.shell))
        self.write("a-file", "")

    def commands(self):
        """Words of each command, and what follows in the list."""
        return [line.split("  ")[0].split()[1:] for line in self.run_ok("help").splitlines()]

    def below(self, *words):
        """The next words of the commands that begin so."""
        words = list(words)
        return {each[len(words)] for each in self.commands()
                if each[:len(words)] == words and len(each) > len(words)}

    def options_of(self, *words):
        text = self.run_ok(*words, "--help").partition("\nOptions:\n")[2]
        return set(re.findall(r"(?m)^  (?:-\w, )?(--[a-z-]+)", text.partition("\n\n")[0]))

    def run_shell(self, *args):
        env = {**os.environ, "HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder),
               "LC_ALL": "C.UTF-8"}
        done = subprocess.run([self.shell, *args], cwd=self.folder, capture_output=True, text=True,
                              timeout=support.HANGS_S, env=env, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout


class Offers:
    """What every shell offers; `complete` has the words, the last of which is being typed."""

    def test_commands(self):
        self.assertEqual(self.complete("cairn", ""), self.below())
        self.assertEqual(self.complete("cairn", "drive", ""), self.below("drive"))
        self.assertEqual(self.complete("cairn", "drive", "mov"), {"move"})
        self.assertEqual(self.complete("cairn", "kv", "ring", ""), self.below("kv", "ring"))

    def test_options(self):
        for command in (["serve"], ["drive", "show"], ["volume", "create"], ["kv", "serve"]):
            offered = {each for each in self.complete("cairn", *command, "--")
                       if each.startswith("--")}
            self.assertEqual(offered, self.options_of(*command))
        self.assertEqual(self.complete("cairn", "serve", "--htt"), {"--http", "--http-token"})

    def test_options_that_were_typed_before_do_not_hide_commands(self):
        self.assertIn("show", self.complete("cairn", "drive", "s"))
        self.assertIn("--json", self.complete("cairn", "drive", "show", "safe", "--js"))

    def test_files_where_they_belong(self):
        self.assertEqual(self.complete("cairn", "serve", "--state", "a-fi"), {"a-file"})


class Bash(Offers, CompletionTest):
    shell = "bash"

    def complete(self, *words):
        script = ('source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cairn; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        return set(self.run_shell("--norc", "-c", script, "bash", *words).split())

    def test_it_is_registered(self):
        said = self.run_shell("--norc", "-c", "source ./script; complete -p cairn")
        self.assertIn("-F _cairn cairn", said)


class Fish(Offers, CompletionTest):
    shell = "fish"

    def complete(self, *words):
        line = " ".join(words)
        said = self.run_shell("-N", "-c", f"source ./script; complete -C '{line}'")
        return {each.split("\t")[0] for each in said.splitlines() if each}

    def test_each_has_its_line(self):
        said = self.run_shell("-N", "-c", "source ./script; complete -C 'cairn ser'")
        self.assertEqual(said, "serve\tserve drives and stacks of services, at every door\n")


class Zsh(CompletionTest):
    """At a terminal: nothing else runs zsh's completion."""
    shell = "zsh"

    def start(self):
        env = {"HOME": str(self.folder), "TERM": "dumb", "PATH": os.environ["PATH"],
               "LC_ALL": "C.UTF-8", "COLUMNS": "200", "LINES": "500"}
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], env)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.close, terminal)
        self.terminal = terminal
        self.type("unsetopt zle_bracketed_paste beep; PS1='' ; stty -echo\n")
        self.type("autoload -Uz compinit; compinit -u -d dump; source ./script; LISTMAX=1000\n")
        self.type("print rea''dy\n")
        self.read_until("ready\r\n")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, text):
        said = ""
        end = time.monotonic() + support.HANGS_S
        while text not in said:
            self.assertLess(time.monotonic(), end, said)
            if select.select([self.terminal], [], [], 1)[0]:
                said += os.read(self.terminal, 65536).decode(errors="replace")
        return said

    def test_it_completes_and_lists(self):
        self.start()
        # A command that is the only one is completed, with its options.
        self.type("cairn driv\tmov\t--jso\t\n")
        said = self.read_until("--json")
        # Spaces that the next word takes back are drawn and erased.
        self.assertIn("cairn drive move --json", said.replace(" \x08", ""))

    def test_it_says_what_each_is(self):
        self.start()
        self.type("cairn kv ring \t")
        said = self.read_until("give a node's keys to others")
        self.assertIn("drain", said)


class Mistakes(CompletionTest):
    def test_another_shell(self):
        result = self.run_cairn("help", "--completion", "tcsh")
        self.expect_sentence(result, 1, "write bash, zsh or fish")

    def test_one_thing_at_a_time(self):
        result = self.run_cairn("help", "--completion", "bash", "--markdown")
        self.expect_sentence(result, 1, "exclude each other")

    def test_a_folder_that_cannot_be_written(self):
        result = self.run_cairn("help", "--man", self.folder / "a-file")
        self.expect_sentence(result, 1, "name a folder that you may write to")


@unittest.skipUnless(shutil.which("groff"), "not installed: groff")
class ManPages(CompletionTest):
    def test_every_command_has_a_page_that_says_what_help_says(self):
        said = self.run_ok("help", "--man", "man")
        names = {"cairn.1"} | {"-".join(["cairn", *each]) + ".1" for each in self.commands()}
        self.assertIn(f"wrote {len(names)} pages", said)
        self.assertEqual({path.name for path in (self.folder / "man").iterdir()}, names)
        for path in sorted((self.folder / "man").iterdir()):
            with self.subTest(path.name):
                done = subprocess.run(["groff", "-man", "-Tascii", "-P-c", "-ww", path],
                                      capture_output=True, text=True, timeout=300, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                shown = re.sub(r".\x08", "", done.stdout)
                self.assertIn("EXIT STATUS", shown)
        serve = self.folder / "man/cairn-serve.1"
        page = subprocess.run(["groff", "-man", "-Tascii", "-P-c", serve], capture_output=True,
                              text=True, timeout=300, check=True).stdout
        page = re.sub(r".\x08", "", page)
        for option in self.options_of("serve"):
            self.assertIn(f" {option}", page)
        self.assertIn("cairn serve 'safe=mirror(file:/a,size=8G, file:/b,size=8G)' --nbd", page)


if __name__ == "__main__":
    support.main()
