#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn up`: one command that serves, and what it keeps."""

import re
import socket

import support
from box_support import BoxTest

GIB = 1 << 30


class Up(BoxTest):
    def setUp(self):
        super().setUp()
        self.data = self.folder / ".local/share/cairn"

    def up(self, *args):
        return self.start(["up", *args])

    def test_four_drives_and_lines_to_paste(self):
        up = self.up()
        nqn = re.search(r"(?m)^serving (nqn\.2026-11\.io\.cairn:up-\S+) at ", up.said).group(1)
        self.assertRegex(up.said, r"This machine: (uring|epoll) \(")
        for line in (f"nvme discover -t tcp -a 127.0.0.1 -s {up.port}",
                     f"nvme connect -t tcp -a 127.0.0.1 -s {up.port} -n {nqn}",
                     f"cairn nvme list nvme-tcp://127.0.0.1:{up.port}/{nqn}",
                     "cairn drive add mem:size=1G"):
            self.assertIn(f"\n  {line}\n", up.said)
        self.assertEqual({nsid: each["size"] for nsid, each in self.namespaces().items()},
                         {1: GIB, 2: GIB, 3: GIB, 4: GIB})
        self.assertLess((self.data / "drive-1").stat().st_blocks, 100, "it is sparse")
        self.assertEqual(up.stop(), 0)

    def test_the_next_start_serves_the_same_with_its_changes(self):
        up = self.up()
        self.ask("drive", "remove", "d1", "--yes")
        self.ask("drive", "resize", "d2", "2G")
        self.ask("drive", "add", "mem:size=1M")
        before = self.namespaces()
        up.kill()
        again = self.up()
        self.assertEqual(self.namespaces(), before)
        self.assertEqual(sorted(before), [1, 3, 4, 5])
        serving = re.compile(r"(?m)^serving (\S+)")
        self.assertEqual(serving.findall(again.said), serving.findall(up.said))

    def test_another_port_when_it_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.write("c.toml", f"[[listener]]\naddress = '127.0.0.1:{port}'\n")
            up = self.up("--config", "c.toml")
            self.assertNotEqual(up.port, port)
            self.assertIn(f"127.0.0.1:{port} is taken: another port is used", up.log)

    def test_a_folder_of_its_own_which_one_at_a_time_may_use(self):
        self.up("--data", "d")
        self.assertTrue((self.folder / "d/drive-4").exists())
        self.expect_sentence(self.run_cairn("up", "--data", "d"), 1, "is in use by another server")

    def test_a_file_may_say_what_to_serve(self):
        self.write("c.toml", "[runtime]\nio = 'epoll'\n[[listener]]\naddress = '127.0.0.1:0'\n"
                   "[[subsystem]]\nnqn = 'nqn.2026-11.io.cairn:x'\n"
                   "[[subsystem.namespace]]\ndrive = 'mem:size=1M'\n")
        up = self.up("--config", "c.toml")
        self.assertIn("This machine: epoll (it was asked for)", up.said)
        self.assertIn("serving nqn.2026-11.io.cairn:x at ", up.said)
        self.assertFalse(self.data.exists())

    def test_a_file_may_say_how_only(self):
        self.write("c.toml", "[runtime]\nio = 'epoll'\n[[listener]]\naddress = '127.0.0.1:0'\n")
        up = self.up("--config", "c.toml")
        self.assertIn("This machine: epoll (it was asked for)", up.said)
        self.assertEqual(len(self.namespaces()), 4)

    def test_what_it_cannot_do_is_told(self):
        self.expect_sentence(self.run_cairn("up", "--cores", "0,1023"), 1,
                             "CPU 1023 is not one this process may use: choose among")
        self.write("file", "")
        self.expect_sentence(self.run_cairn("up", "--data", "file/d"), 1,
                             "the data folder 'file/d' cannot be made", "--data DIR")
        self.env.pop("HOME")
        self.expect_sentence(self.run_cairn("up"), 1, "there is no HOME", "--data DIR")


if __name__ == "__main__":
    support.main()
