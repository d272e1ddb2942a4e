#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every stack that the documents show is one: `cairn drive check` reads it. Every command that they
show is one, with such options. The reference of the commands is what this program says."""

import difflib
import json
import os
import pathlib
import re
import shlex

import support

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What stands for something else in documents, and what it is here.
STANDS_FOR = {"D": "file:/srv/d{}", "DRIVE": "file:/srv/d{}", "A": "file:/srv/a",
              "B": "file:/srv/b", "SLOW": "file:/srv/slow", "FAST": "file:/srv/fast",
              "LOCAL": "file:/srv/local", "ELSEWHERE": "nvme-tcp://10.0.0.2/NQN",
              "flash:...": "flash:profile=laptop-tlc,size=1G"}
NEEDED = {"limit": "iops=500", "encrypt": "key=drive.key", "channels": "count=1",
          "trace": "to=requests.trace"}  # what a table of services leaves out


def documents():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def closing(text, opening):
    """Where the parenthesis that opens there is closed; None: nowhere."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return None


def written_out(stack):
    """A stack as somebody would type it, from what a document says in short."""
    stack = re.sub(r",\s*\.\.\.(?=[,)])", "", stack)
    stack = re.sub(r"=(\w+)\|[\w|]+", r"=\1", stack)
    stack = stack.replace("flash:...", STANDS_FOR["flash:..."])
    count = iter(range(100))
    return re.sub(r"(?<=[(\s])([A-Z]+)(?=[,)])",
                  lambda word: STANDS_FOR.get(word[1], word[1]).format(next(count)), stack)


class Documents(support.CliTest):
    def setUp(self):
        super().setUp()
        listed = json.loads(self.run_ok("drive", "services", "--json"))["services"]
        self.services = {service["name"]: service for service in listed}

    def stacks_in(self, text):
        """Services with what they stand on, where the text shows commands or code."""
        names = "|".join(self.services)
        end = 0
        for found in re.finditer(rf"(?<![\w.(])(?:{names})\(", text):
            if found.start() < end:
                continue
            last = closing(text, found.end() - 1)
            if last is not None and last > found.end():
                end = last + 1
                yield found.start(), text[found.start():end]

    def check(self, stack):
        return self.run_cairn("drive", "check", stack)

    def test_every_stack_parses(self):
        seen = 0
        for path in documents():
            lines = path.read_text().splitlines()
            for number, line in enumerate(lines):
                for _, stack in self.stacks_in(line):
                    following = lines[number + 1].strip() if number + 1 < len(lines) else ""
                    if following.startswith("^"):
                        continue
                    seen += 1
                    self.expect_stack(f"{path.name}:{number + 1}", stack)
        self.assertGreater(seen, 30, "the documents show stacks")

    def expect_stack(self, where, stack):
        text = written_out(stack)
        result = self.check(text)
        name = stack.split("(")[0]
        if result.returncode != 0 and "=" not in stack and name in NEEDED:
            result = self.check(f"{text[:-1]}, {NEEDED[name]})")
        self.assertEqual(result.returncode, 0, f"{where}: {stack}\n{result.stderr}")

    def test_mistakes_are_told_as_shown(self):
        seen = 0
        for path in documents():
            lines = path.read_text().splitlines()
            for line, answer in zip(lines, lines[1:]):
                if not answer.strip().startswith("^"):
                    continue
                seen += 1
                result = self.check(line.strip())
                self.assertNotEqual(result.returncode, 0, line)
                self.assertIn(answer.strip(), result.stderr)
        self.assertGreater(seen, 0)

    def test_stacks_as_toml(self):
        seen = 0
        for path in documents():
            for block in re.findall(r"(?:^    .*\n|^\n)+", path.read_text(), re.MULTILINE):
                if not block.lstrip().startswith("service ="):
                    continue
                seen += 1
                self.write("stack.toml", re.sub(r"^    ", "", block, flags=re.MULTILINE))
                self.run_ok("drive", "check", "--file", "stack.toml")
        self.assertGreater(seen, 0)


class Commands(support.CliTest):
    """Every command that a document shows is one, and has the options that are shown."""

    LAUNCHER = ("package", "test")  # what ./cairn does by itself

    def setUp(self):
        super().setUp()
        self.helps = {}

    def help_of(self, *words):
        if words not in self.helps:
            self.helps[words] = self.run_ok(*words, "--help")
        return self.helps[words]

    def verbs_of(self, words):
        """The words that name a command: as long as the help lists the next one."""
        verbs = []
        for word in words:
            listed = self.help_of(*verbs).partition("\nCommands:\n")[2].partition("\n\n")[0]
            if not re.search(rf"(?m)^  {re.escape(word)}  ", listed):
                break
            verbs.append(word)
        return verbs

    def commands_in(self, text):
        """What a person would type: lines of code, and code in sentences and tables."""
        text = re.sub(r" *\\\n +", " ", text)
        blocks = re.findall(r"(?m)^ {4}(?:\$ )?(?:\./)?(cairn .+?)(?:  .*)?$", text)
        inside = re.findall(r"`(?:\./)?(cairn [^`]+)`", text)
        return blocks + [re.sub(r"\s*\n\s*", " ", command) for command in inside]

    def written_out(self, command):
        """Each command that `cairn kv get|put KEY` stands for, as words; none: it is no command."""
        try:
            words = shlex.split(command.replace("\\|", "|"), comments=True)
        except ValueError:
            return  # a sentence that goes on behind the code
        for stop in ("|", ">", "&", "2>&1", "..."):
            if stop in words:
                words = words[:words.index(stop)]
        for at, word in enumerate(words):
            if re.fullmatch(r"[a-z-]+(\|[a-z-]+)+", word):
                for one in word.split("|"):
                    yield from self.written_out(shlex.join([*words[:at], one, *words[at + 1:]]))
                return
        if words[1:2] and words[1] not in self.LAUNCHER:
            yield words[1:]

    def check(self, words):
        verbs = self.verbs_of(words)
        if words[0].startswith("-"):
            return
        self.assertNotEqual(verbs, [], "no such command")
        said = self.help_of(*verbs)
        rest = words[len(verbs):]
        if "\nCommands:\n" in said and "[COMMAND]" not in said and rest:
            self.assertTrue(rest[0].startswith("-") or not rest[0].islower(),
                            f"no such command: {rest[0]}")
        for option in (word.strip("[]").partition("=")[0] for word in words):
            if re.fullmatch(r"--[a-z][a-z0-9-]*", option) and option not in ("--help", "--version"):
                self.assertRegex(said, rf"(?m)^  (-., )?{re.escape(option)}[ ,\n]")

    def test_each_is_one_with_such_options(self):
        seen = 0
        for path in documents():
            if path.name == "commands.md":  # generated, and compared below
                continue
            for command in self.commands_in(path.read_text()):
                for words in self.written_out(command):
                    with self.subTest(f"{path.name}: {command}"):
                        seen += 1
                        self.check(words)
        self.assertGreater(seen, 300)


class Alarms(support.CliTest):
    def test_each_alarm_has_a_row(self):
        text = (ROOT / "docs/operate.md").read_text()
        rules = (ROOT / "packaging/prometheus/cairn.rules.yml").read_text()
        alarms = re.findall(r"- alert: (\w+)", rules)
        self.assertGreater(len(alarms), 10)
        self.assertEqual(re.findall(r"(?m)^\| `(Cairn\w+)` \|", text), alarms)


class CommandReference(support.CliTest):
    def test_the_document_is_what_the_program_says(self):
        kept = (ROOT / "docs/commands.md").read_text()
        made = self.run_ok("help", "--markdown")
        changes = "".join(difflib.unified_diff(kept.splitlines(True), made.splitlines(True),
                                               "docs/commands.md", "cairn help --markdown", n=0))
        self.assertEqual(changes, "", "docs/commands.md is stale; make it again:\n"
                         f"    ./cairn help --markdown > docs/commands.md\n{changes}")

    def test_it_is_the_same_on_every_machine(self):
        made = self.run_ok("help", "--markdown")
        cpu = min(os.sched_getaffinity(0))
        elsewhere = {"HOME": "/nowhere", "XDG_RUNTIME_DIR": "/nowhere", "COLUMNS": "20",
                     "XDG_DATA_HOME": "/nowhere", "TMPDIR": str(self.folder), "LANG": "tr_TR.UTF-8",
                     "TERM": "xterm-256color", "USER": "nobody"}
        self.assertEqual(made, self.run_ok("help", "--markdown", env=elsewhere,
                                           preexec_fn=lambda: os.sched_setaffinity(0, {cpu})))
        self.assertNotIn("\x1b", made)
        self.assertNotIn(str(ROOT), made)

    def test_it_has_a_section_for_each_command_and_a_row_for_each_option(self):
        sections = re.split(r"(?m)^#+ (?=cairn )", self.run_ok("help", "--markdown"))[1:]
        names = [section.split("\n")[0] for section in sections]
        listed = self.run_ok("help").splitlines()
        self.assertGreater(len(listed), 1)
        self.assertEqual(names, [line.split("  ")[0] for line in listed])
        for name, section in zip(names, sections):
            with self.subTest(name):
                said = self.run_ok(*name.split()[1:], "--help")
                for typed in re.findall(r"(?m)^  (-.+?)  +\S", said):
                    if typed != "-h, --help":
                        bar = typed.replace("|", "\\|")
                        self.assertRegex(section, rf"(?m)^\| `{re.escape(bar)}` \| .+ \|$")

    def test_every_link_leads_to_a_heading(self):
        text = self.run_ok("help", "--markdown")
        headings = {heading.replace(" ", "-") for heading in re.findall(r"(?m)^#+ (.+)$", text)}
        links = re.findall(r"\]\(#(.+?)\)", text)
        self.assertGreater(len(links), 1)
        self.assertEqual([link for link in links if link not in headings], [])

    def test_the_front_page_leads_to_it(self):
        self.assertIn("(docs/commands.md)", (ROOT / "README.md").read_text())


class Check(support.CliTest):
    def test_it_draws_what_the_stack_would_be(self):
        said = self.run_ok("drive", "check", "safe=limit(mirror(file:/nowhere/a, "
                           "nvme-tcp://no.such.host/NQN), iops=500)")
        lines = said.splitlines()
        self.assertTrue(lines[0].startswith("limit iops=500 "), said)
        self.assertIn("`- mirror", lines[1])
        self.assertIn("   +- file:/nowhere/a", lines[2])
        self.assertIn("a drive elsewhere", lines[3])

    def test_nothing_is_opened_or_written(self):
        self.run_ok("drive", "check", "trace(encrypt(file:a,size=1M, key=k), to=t)")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_as_json(self):
        plan = json.loads(self.run_ok("drive", "check", "slice(mem:size=1M)", "--json"))
        self.assertEqual(plan["stack"], "slice(mem:size=1M)")
        self.assertEqual([layer["path"] for layer in plan["layers"]], ["0", "0.0"])

    def test_mistakes_have_a_place(self):
        for stack, place, why in (
                ("mirror(file:/a, file:/a)", 16, "in the stack already"),
                ("slice(mem:size=1X)", 6, "size"),
                ("slice(flash:profile=none,size=1G)", 6, "profile"),
                ("slice(nvme-tcp://10.0.0.2)", 6, "NQN"),
                ("slice(http://)", 6, "is no place"),
                ("stripe(mem:size=1M", 18, "')'")):
            result = self.run_cairn("drive", "check", stack)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(why, result.stderr)
            self.assertEqual(result.stderr.splitlines()[-1].index("^"), place, result.stderr)

    def test_a_single_drive(self):
        self.assertIn("memory, 1 MiB", self.run_ok("drive", "check", "mem:size=1M"))
        self.expect_sentence(self.run_cairn("drive", "check"), 1, "say what is to be checked")
        self.expect_sentence(self.run_cairn("drive", "check", "mem:"), 2, "is not KEY=VALUE")


if __name__ == "__main__":
    support.main()
