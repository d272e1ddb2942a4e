#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command that prints data prints it as JSON too, with a version."""

import json

import support
from box_support import BoxTest

# What prints no data, each with the reason. Who gives one of them --json takes it out here.
WITHOUT = {
    "cairn up": "runs on; 'cairn status --json' says how it is",
    "cairn serve": "runs on; 'cairn drive status --json' says how it is",
    "cairn arbiter": "runs on; 'cairn arbiter status --json' says how it is",
    "cairn kv serve": "runs on; 'cairn kv stats --json' says how it is",
    "cairn rack serve": "runs on; 'cairn rack offers --json' says what is in it",
    "cairn kv put": "prints nothing",
    "cairn key new auth": "prints the key itself, as key files have it",
    "cairn key new tls": "prints the key itself, as key files have it",
    "cairn key new drive": "prints the key itself, as key files have it",
}


def commands_without_json(table):
    """Those of a table of `cairn help --json` that do something, and have no --json."""
    return {command["name"] for command in table
            if (command["commands"] == 0 or command["name"] in WITHOUT)
            and not any(option["name"].split()[0] == "--json" for option in command["options"])}


class Commands(BoxTest):
    def test_every_command_that_prints_data_has_json(self):
        table = self.ask("help")["commands"]
        self.assertGreater(len(table), 100)
        # A group that does something itself has options beside --help.
        for command in table:
            if command["commands"] and len(command["options"]) > 1:
                names = [option["name"].split()[0] for option in command["options"]]
                self.assertTrue("--json" in names or command["name"] in WITHOUT, command["name"])
        self.assertEqual(commands_without_json(table), set(WITHOUT))

    def test_a_command_that_lacks_it_is_found(self):
        lacking = {"name": "cairn new", "commands": 0,
                   "options": [{"name": "--jsonish", "what": ""}, {"name": "--help", "what": ""}]}
        group = {"name": "cairn group", "commands": 2, "options": []}
        has = {"name": "cairn old", "commands": 0, "options": [{"name": "--json", "what": ""}]}
        self.assertEqual(commands_without_json([lacking, group, has]), {"cairn new"})

    def test_what_they_print_has_a_version(self):
        self.write("c.toml", "[log]\nlevel = 'info'\n")
        for command in (["help"], ["version"], ["config", "check", "c.toml"],
                        ["drive", "services"], ["drive", "check", "mem:size=1M"], ["doctor"]):
            result = self.run_cairn(*command, "--json")
            self.assertEqual(json.loads(result.stdout)["schema_version"], 1, command)

    def test_a_file_that_is_not_sound(self):
        self.write("c.toml", "[log]\nlevel = 'loud'\n")
        result = self.run_cairn("config", "check", "c.toml", "--json")
        self.assertEqual(result.returncode, 1)
        told = json.loads(result.stdout)
        self.assertEqual((told["ok"], told["file"]), (False, "c.toml"))
        self.assertIn("loud", told["problem"])

    def test_keys_and_values(self):
        server = self.start_cairn("kv", "serve", "--memory", "--resp", "127.0.0.1:0",
                                  until="Ctrl-C", env=self.env)
        at = ("--at", server.said.split("in memory, at ")[1].split()[0])
        self.run_ok("kv", "put", "k", "v\u00e4", *at)
        self.assertEqual(self.ask("kv", "get", "k", *at),
                         {"schema_version": 1, "key": "k", "value": "v\u00e4"})
        (line,) = self.run_ok("kv", "scan", "--json", *at).splitlines()
        self.assertEqual(json.loads(line), {"schema_version": 1, "key": "k"})
        stats = self.ask("kv", "stats", *at)
        self.assertEqual(stats["schema_version"], 1)
        self.assertTrue(any(isinstance(section, dict) for section in stats.values()))
        self.assertEqual(self.ask("kv", "del", "k", "gone", *at),
                         {"schema_version": 1, "removed": 1, "asked": 2})
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    support.main()
