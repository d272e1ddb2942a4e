#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn serve` for NVMe hosts, and the commands that ask a running server."""

import json
import os
import socket

import support
from box_support import NQN, BoxTest

MIB = 1 << 20


class Namespaces(BoxTest):
    def test_they_come_change_and_go(self):
        self.start_box("mem:size=1M")
        self.assertEqual(self.run_ok("drive", "add", "--nqn", NQN, "--nsid", "3", "mem:size=64M"),
                         "drive d2 is added as namespace 3\n")
        self.assertEqual(self.ask("drive", "add", "file:d,size=1M"),
                         {"schema_version": 1, "name": "d3", "nsid": 4})
        self.assertEqual({nsid: each["size"] for nsid, each in self.namespaces().items()},
                         {1: MIB, 3: 64 * MIB, 4: MIB})
        self.assertEqual(self.run_ok("drive", "resize", "--nqn", NQN, "d2", str(32 * MIB), "--yes"),
                         "d2 has 32 MiB now. NBD clients see it when they connect again\n")
        self.ask("drive", "resize", "d3", "2M")
        self.assertEqual((self.folder / "d").stat().st_size, 2 * MIB)
        self.assertEqual(self.namespaces()[3]["size"], 32 * MIB)
        self.assertEqual(self.run_ok("drive", "remove", "--nqn", NQN, "d2", "--yes"),
                         "drive d2 is removed\n")
        self.assertEqual(sorted(self.namespaces()), [1, 4])

    def test_no_number_is_given_twice(self):
        args = ("--state", "s", "mem:size=1M")
        box = self.start_box(*args)
        for nsid in (2, 3):
            self.assertEqual(self.ask("drive", "add", "mem:size=1M")["nsid"], nsid)
            self.ask("drive", "remove", f"d{nsid - 1}", "--yes")
        box.kill()
        self.start_box(*args)
        self.assertEqual(self.ask("drive", "add", "mem:size=1M")["nsid"], 4)

    def test_what_it_is_given_is_what_it_has(self):
        self.start_box("mem:size=1M")
        uuid = "01234567-89ab-cdef-0123-456789abcdef"
        self.ask("drive", "add", "--nsid", "7", "mem:size=1M,block=512", "--uuid", uuid,
                 "--ana-group", "5", "--read-only")
        added = self.namespaces()[7]
        self.assertEqual((added["uuid"], added["block_size"], added["ana_group"],
                          added["read_only"]), (uuid, 512, 5, True))

    def test_what_cannot_be_done_is_told(self):
        self.start_box("mem:size=1M", "file:d,size=1M")
        self.refused(["drive", "add", "--nsid", "1", "mem:size=1M"],
                     "the namespace id is in use")
        self.refused(["drive", "add", "file:d"], "served as another namespace already")
        os.symlink("d", self.folder / "other")
        self.refused(["drive", "add", "file:other"], "in use by another drive or process")
        self.refused(["drive", "add", "file:none"], "add ,size=8G to have the file made")
        self.refused(["drive", "add", "file:no/d,size=1M"], "make its folder first")
        self.refused(["drive", "remove", "d8"], "no drive 'd8' of this user", "'cairn drive list'")
        self.refused(["drive", "resize", "d8", "1M"], "no drive 'd8' of this user")
        self.refused(["drive", "resize", "d0", "1000", "--yes"],
                     "keeps its size", "not a multiple of the block size")
        self.refused(["drive", "list", "--nqn", "nqn.2026-11.io.cairn:tset"],
                     "no server of this user")
        self.assertEqual(sorted(self.namespaces()), [1, 2])

    def test_args_that_are_wrong_reach_no_box(self):
        for args, part in (
                (["drive", "add", "--nsid", "x"], "--nsid"),
                (["drive", "add", "disk0"], "'disk0' is no drive"),
                (["drive", "add", "mem:size=1M", "--nsid", "0"], "from 1 to 65536"),
                (["drive", "remove"], "needs NAME"),
                (["drive", "resize", "d0", "big"], "such as 512M or 8G"),
                (["drive", "resiz"], "did you mean 'resize'?"),
                (["drive"], "needs a command: list, status, stats, metrics, add, remove"),
                (["drive", "ana", "--state", "optimised"], "did you mean 'optimized'?"),
                (["drive", "statsu"], "did you mean 'status'?"),
                (["drive", "status", "--control", "x" * 108], "1 to 107 characters")):
            self.expect_usage(args, part)


class Access(BoxTest):
    def subsystem(self):
        return self.ask("drive", "status")["servers"][0]["subsystems"][0]

    def test_hosts(self):
        self.start_box("mem:size=1M")
        self.assertTrue(self.subsystem()["any_host"])
        one, other = f"{NQN}-host-a", f"{NQN}-host-b"
        self.refused(["host", "remove", one], "is open to every host")
        for host in (one, other, one):
            self.ask("host", "add", host)
        self.assertEqual(self.subsystem()["hosts"], [one, other])
        self.assertFalse(self.subsystem()["any_host"])
        self.refused(["host", "remove", "nqn.c"], "'nqn.c' is not on the list")
        self.ask("host", "remove", one)
        self.assertEqual(self.subsystem()["hosts"], [other])
        self.ask("host", "add", "any")
        self.assertTrue(self.subsystem()["any_host"])
        self.ask("host", "remove", "any", "--yes")
        self.assertEqual((self.subsystem()["any_host"], self.subsystem()["hosts"]), (False, []))

    def test_ana(self):
        box = self.start_box("mem:size=1M")
        self.ask("drive", "add", "mem:size=1M", "--ana-group", "2")
        self.ask("drive", "ana", "--group", "2", "--state", "inaccessible")
        states = {nsid: each["ana_state"] for nsid, each in self.namespaces().items()}
        self.assertEqual(states, {1: "optimized", 2: "inaccessible"})
        uri = f"nvme-tcp://127.0.0.1:{box.port}/{NQN}?nsid=2&loss_timeout=0"
        result = self.run_cairn("nvme", "read", uri, "--output", "out")
        self.expect_sentence(result, 1, "ANA closes every path", "the target answers",
                             "'cairn drive ana'")


class Finding(BoxTest):
    def test_nobody_is_there(self):
        self.refused(["drive", "status"], "no server of this user runs here")
        self.refused(["drive", "status", "--control", "none"], "no server listens at 'none'")

    def test_of_several_the_one_with_the_name(self):
        first = self.start_box("mem:size=1M")
        other = NQN + "2"
        self.start_box("mem:size=2M", nqn=other)
        self.assertEqual(self.ask("drive", "list", "--nqn", other)["drives"][0]["size"], 2 * MIB)
        self.refused(["drive", "add", "mem:size=1M"], "2 servers could be meant",
                     f"server-{first.pid}.sock")
        self.assertEqual(len(self.ask("drive", "status")["servers"]), 2)
        first.stop()
        self.assertEqual(len(self.ask("drive", "list")["drives"]), 1)

    def test_a_socket_of_its_own(self):
        box = self.start_box("mem:size=1M", "--control", "s")
        self.refused(["drive", "status"], "no server of this user")
        self.assertIn("listens at", self.run_ok("drive", "status", "--control", "s"))
        self.refused(["serve", "--nvme-tcp", "127.0.0.1:0", "mem:size=1M", "--control", "s"],
                     f"listens at the control socket '{self.folder}/s'")
        self.assertEqual(box.stop(), 0)
        self.assertFalse((self.folder / "s").exists())

    def test_a_dead_box_leaves_a_socket_that_is_taken_over(self):
        self.start_box("mem:size=1M", "--control", "s").kill()
        self.assertTrue((self.folder / "s").exists())
        self.refused(["drive", "status", "--control", "s"], "no server listens at 's'")
        self.start_box("mem:size=1M", "--control", "s")
        self.run_ok("drive", "status", "--control", "s")

    def test_its_stacks_are_shown(self):
        self.start_box("mem:size=1M", "limit(mem:size=2M, iops=500)", "--control", "s")
        shown = json.loads(self.run_ok("drive", "show", "--control", "s", "--json"))["drives"]
        self.assertEqual([drive["is_stack"] for drive in shown], [False, True])
        self.assertEqual([drive["name"] for drive in shown], ["d0", "d1"])
        self.assertEqual(shown[0]["layers"][0]["size"], 1 << 20)
        self.assertEqual([layer["name"] for layer in shown[1]["layers"]],
                         ["limit", "mem:size=2097152,block=4096"])
        text = self.run_ok("drive", "show", "d1", "--control", "s")
        self.assertIn("limit iops=500", text)
        self.assertNotIn("d0 ", text)
        self.assertIn("d1", self.run_ok("drive", "list", "--control", "s"))
        self.expect_sentence(self.run_cairn("drive", "show", "d7", "--control", "s"), 1,
                             "no drive 'd7' is served here")
        self.assertEqual(self.ask("drive", "edit", "d1", "priority(mem:size=2M)",
                                  "--control", "s")["stack"],
                         "priority(mem:size=2097152,block=4096)")
        shown = self.ask("drive", "show", "d1", "--control", "s")["drives"][0]
        self.assertEqual(shown["layers"][0]["name"], "priority")

    def test_a_host_that_breaks_the_protocol_is_in_the_log(self):
        box = self.start_box("mem:size=1M")
        with socket.create_connection(("127.0.0.1", box.port)) as host:
            host.sendall(b"GET / HTTP/1.1\r\n\r\n")
            address = "{}:{}".format(*host.getsockname())
            while host.recv(4096):
                pass
        self.assertIn(f"the host at {address} broke the protocol on queue 0, which was closed: "
                      "invalid PDU header field at byte 0, in a PDU of type 47h", box.log)

    def test_without_a_socket(self):
        self.start_box("mem:size=1M", "--control", "off")
        self.assertFalse((self.folder / "cairn").exists())

    def test_a_folder_open_to_others_is_refused(self):
        (self.folder / "cairn").mkdir(mode=0o755)
        self.refused(["serve", "--nvme-tcp", "127.0.0.1:0", "mem:size=1M"],
                     "is open to others", "chmod 700")


class Listeners(BoxTest):
    def test_both_families_at_once_on_one_port(self):
        if not socket.has_ipv6:
            self.skipTest("needs IPv6")
        first = self.start_box("mem:size=1M", listen=("0.0.0.0:0",))
        port = first.port
        first.stop()
        box = self.start_box("mem:size=1M", listen=(f"0.0.0.0:{port}", f"[::]:{port}"))
        for at, reached in (("0.0.0.0", "127.0.0.1"), ("[::]", "::1")):
            self.assertIn(f"serving {NQN} at {at}:{port}\n"
                          f"  nvme connect -t tcp -a {reached} -s {port} ", box.said)
        for address in ("127.0.0.1", "::1"):
            socket.create_connection((address, port)).close()

    def test_advertise_goes_with_listen(self):
        self.refused(["serve", "mem:size=1M", "--advertise", "192.0.2.1:1"],
                     "--advertise goes with a --nvme-tcp each")
        self.expect_usage(["serve", "--nvme-tcp", "here"], "--nvme-tcp 'here' is no address")


class Protocol(BoxTest):
    """The control socket as any program of the user could use it."""

    def setUp(self):
        super().setUp()
        self.start_box("mem:size=1M", "--control", "s")

    def talk(self, data):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.folder / "s"))
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            said = b""
            while more := client.recv(65536):
                said += more
            return [json.loads(line) for line in said.splitlines()]

    def test_a_line_a_request(self):
        question = b'{"version":1,"command":"drive.list"}\n'
        answers = self.talk(question * 3)
        self.assertEqual([answer["ok"] for answer in answers], [True] * 3)

    def test_nonsense_is_told_and_the_next_is_heard(self):
        for line, part in ((b"", "not a JSON object"), (b"[1]", "not a JSON object"),
                           (b"\xff\xfe\x00", "not a JSON object"), (b"[" * 9000, "not a JSON"),
                           (b"{}", "no version"), (b'{"version":2}', "version 2 is spoken"),
                           (b'{"version":1}', "no command ''"),
                           (b'{"version":1,"command":"drive.lits"}', "did you mean 'drive.list'?"),
                           (b'{"version":1,"command":"status","nsdi":1}', "did you mean 'nsid'?"),
                           (b'{"version":1,"command":"drive.add","nsid":-1}', "'nsid' must be"),
                           (b'{"version":1,"command":"drive.add"}', "say what the drive is")):
            wrong, right = self.talk(line + b'\n{"version":1,"command":"status"}\n')
            self.assertFalse(wrong["ok"], line)
            self.assertIn(part, wrong["error"])
            self.assertTrue(right["ok"], line)

    def test_a_line_without_end_is_not_kept(self):
        try:
            self.assertEqual(self.talk(b"x" * (1 << 20)), [])
        except (ConnectionResetError, BrokenPipeError):
            pass
        self.run_ok("drive", "status", "--control", "s")


if __name__ == "__main__":
    support.main()
