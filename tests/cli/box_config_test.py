#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A box from a file: every key, every mistake, and what the command line adds."""

import support
from box_support import NQN, BoxTest

FULL = """
[runtime]
io = "epoll"

[log]
level = "warn"

[server]
state = "s"
control = "c"
drain_timeout = "5s"
handshake_timeout = "2s"
write_timeout = "1m"
connections_max = 100
connections_unproven_max = 20
connections_reserved = 10
header_digest = false
data_digest = true

[[listener]]
address = "127.0.0.1:0"
advertise = "192.0.2.7:4420"

[[listener]]
address = "[::1]:0"
subsystems = ["nqn.2026-11.io.cairn:b"]

[[subsystem]]
nqn = "nqn.2026-11.io.cairn:a"
serial = "S1"
model = "A model"
hosts = ["nqn.2026-11.io.cairn:h1", "nqn.2026-11.io.cairn:h2"]
queues_max = 4
queue_entries_max = 64
controllers_max = 10
controller_id_min = 100
controller_id_max = 199

[[subsystem.namespace]]
drive = "mem:size=1M"

[[subsystem.namespace]]
nsid = 9
drive = "mem:size=2M,block=512"
uuid = "01234567-89ab-cdef-0123-456789abcdef"
nguid = "0123456789abcdef0123456789abcdef"
ana_group = 4
read_only = true

[[subsystem.ana]]
group = 4
state = "inaccessible"

[[subsystem]]
nqn = "nqn.2026-11.io.cairn:b"

[[subsystem.namespace]]
drive = "file:d,size=1M"
"""

SMALL = f"""[[listener]]
address = "127.0.0.1:0"
[[subsystem]]
nqn = "{NQN}"
[[subsystem.namespace]]
drive = "mem:size=1M"
"""


class Files(BoxTest):
    def test_every_key(self):
        self.write("c.toml", FULL)
        self.assertEqual(self.run_ok("config", "check", "c.toml"), "c.toml: ok\n")
        box = self.start(["serve", "--config", "c.toml"])
        self.assertRegex(box.said, r"serving nqn.2026-11.io.cairn:b at \[::1\]:\d+\n"
                                   r"  nvme connect -t tcp -a ::1 -s \d+ -n ")
        asked = self.ask("drive", "status", "--control", "c")["servers"][0]
        self.assertEqual(len(asked["listeners"]), 2)
        first, second = asked["subsystems"]
        self.assertEqual((first["serial"], first["model"], first["hosts"]),
                         ("S1", "A model", ["nqn.2026-11.io.cairn:h1", "nqn.2026-11.io.cairn:h2"]))
        self.assertTrue(second["any_host"])
        spaces = self.ask("drive", "list", "--control", "c")["drives"]
        self.assertEqual([(each["nqn"][-1], each["nsid"]) for each in spaces],
                         [("a", 1), ("a", 9), ("b", 1)])
        ninth = spaces[1]
        self.assertEqual((ninth["uuid"], ninth["nguid"], ninth["ana_group"], ninth["ana_state"],
                          ninth["read_only"], ninth["block_size"]),
                         ("01234567-89ab-cdef-0123-456789abcdef",
                          "0123456789abcdef0123456789abcdef", 4, "inaccessible", True, 512))
        self.assertTrue((self.folder / "s").is_dir())
        self.assertEqual(box.stop(), 0)
        self.assertEqual(box.log, "")

    def test_a_subsystem_must_be_named_where_there_are_two(self):
        self.write("c.toml", FULL)
        self.start(["serve", "--config", "c.toml"])
        self.refused(["drive", "add", "mem:size=1M", "--control", "c"],
                     "this server serves 2 subsystems: say which with --nqn")
        self.refused(["serve", "--config", "c.toml", "mem:size=1M"],
                     "the file has several subsystems", "--nqn")

    def test_the_command_line_adds_and_wins(self):
        self.write("c.toml", SMALL)
        self.start(["serve", "--config", "c.toml", "--nvme-tcp", "[::1]:0", "mem:size=2M",
                    "--host", f"{NQN}-host"])
        self.assertEqual(len(self.namespaces()), 2)
        box = self.ask("drive", "status")["servers"][0]
        self.assertRegex(box["listeners"][0], r"^\[::1\]:")
        self.assertEqual(box["subsystems"][0]["hosts"], [f"{NQN}-host"])

    def test_another_subsystem_by_the_command_line(self):
        self.write("c.toml", SMALL)
        self.start(["serve", "--config", "c.toml", "--nqn", NQN + "2", "mem:size=2M"])
        self.assertEqual(len(self.ask("drive", "status")["servers"][0]["subsystems"]), 2)


class Mistakes(BoxTest):
    def expect(self, text, *lines):
        self.write("c.toml", text)
        for args in (["config", "check", "c.toml"], ["serve", "--config", "c.toml"],
                      ["up", "--config", "c.toml"]):
            result = self.run_cairn(*args)
            self.assertEqual(result.stderr, "cairn: " + "\n".join(lines) + "\n")
            self.assertEqual(result.returncode, 1)

    def test_keys(self):
        self.expect("[sever]\n", "c.toml:1:2: unknown key 'sever' in this file; did you mean "
                    "'server'? (allowed: runtime, log, server, nbd, listener, subsystem, rack)")
        self.expect("[[listener]]\nadress = 1\n",
                    "c.toml:2:1: unknown key 'adress' in [listener[0]]; did you mean 'address'? "
                    "(allowed: address, advertise, tls, subsystems)",
                    "c.toml:1:1: [listener[0]] needs the key 'address'; add it")
        self.expect("[server]\ndrain_timeout = 'soon'\n",
                    "c.toml:2:17: server.drain_timeout: 'soon' is not a time from 1ms to 24h: "
                    "write something like 500ms or 10s")
        self.expect("[[listener]]\naddress = 'box1'\n",
                    "c.toml:2:11: listener[0].address: 'box1' is no address: "
                    "write 127.0.0.1:4420 or [::]:4420")

    def test_subsystems(self):
        self.expect("[[subsystem]]\nnqn = 'box'\n",
                    "c.toml:2:7: subsystem[0].nqn: 'box' is no name for a subsystem: "
                    "write one like nqn.2026-11.io.cairn:NAME")
        self.expect(SMALL + SMALL.split("\n", 2)[2],
                    f"c.toml:8:7: subsystem[1].nqn: '{NQN}' is there twice: "
                    "give each subsystem its own name")
        self.expect(f"[[subsystem]]\nnqn = '{NQN}'\nserial = '{'x' * 21}'\n",
                    f"c.toml:3:10: subsystem[0].serial: '{'x' * 21}' is not 1 to 20 printable "
                    "ASCII characters")

    def test_namespaces(self):
        head = f"[[subsystem]]\nnqn = '{NQN}'\n[[subsystem.namespace]]\n"
        self.expect(head + "drive = 'disk0'\n",
                    "c.toml:4:9: subsystem[0].namespace[0].drive: 'disk0' is no drive: "
                    "write mem:size=1G, file:PATH,size=8G or flash:profile=laptop-tlc,size=4G")
        self.expect(head + "nsid = 70000\ndrive = 'mem:size=1M'\n",
                    "c.toml:4:8: subsystem[0].namespace[0].nsid is 70000 (allowed: 1 to 65536)")
        twice = "nsid = 2\ndrive = 'mem:size=1M'\n[[subsystem.namespace]]\nnsid = 2\n"
        self.expect(head + twice + "drive = 'mem:size=1M'\n",
                    "c.toml:6:1: [subsystem[0].namespace[1]]: nsid 2 is there twice: "
                    "give each namespace its own")
        self.expect(head + "drive = 'file:/d'\n[[subsystem.namespace]]\ndrive = 'file:/x/../d'\n",
                    "c.toml:5:1: [subsystem[0].namespace[1]]: the file '/d' is used twice: "
                    "give each namespace its own")
        self.expect(head + "drive = 'mem:size=1M'\nuuid = 'x'\n",
                    "c.toml:5:8: subsystem[0].namespace[0].uuid: 'x' is not 32 hexadecimal digits, "
                    "some not 0")
        self.expect(f"[[subsystem]]\nnqn = '{NQN}'\n[[subsystem.ana]]\ngroup = 1\nstate = 'good'\n",
                    "c.toml:5:9: subsystem[0].ana[0].state: 'good' is not one of optimized, "
                    "non-optimized, inaccessible, persistent-loss, change")


if __name__ == "__main__":
    support.main()
