#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The vfio-user door with a client that shares no code with it."""

import errno
import os
import pathlib
import random
import struct
import threading
import unittest

import support
from vfio_support import (BAR0, CONFIG, GET_INFO, NvmeDriver, Refused, REQ, RESET, SET_IRQS,
                          VERSION, VfioClient)

BLOCK = 512
DATA = 65536


class VfioUser(support.CliTest):
    def serve(self, *args):
        return self.start_cairn("serve", *args, until="Ctrl-C")

    def connect(self, name="vm.sock"):
        client = VfioClient(self.folder / name)
        self.addCleanup(client.close)
        return client

    def connect_after(self):
        """Once the server has put the last client away."""
        while True:
            try:
                return self.connect()
            except Refused:
                pass

    def check_drive(self, client, blocks, nsid=1):
        driver = NvmeDriver(client)
        driver.must(0, 0x06, prp=driver.ADDRESS + DATA, nsid=nsid, cdw10=0)
        self.assertEqual(struct.unpack_from("<Q", driver.memory, DATA)[0], blocks)
        driver.make_queues()
        wake = client.interrupt(1)
        self.addCleanup(os.close, wake)
        pattern = os.urandom(4096)
        driver.memory[DATA:DATA + 4096] = pattern
        here = driver.ADDRESS + DATA
        driver.must(1, 0x01, nsid=nsid, prp=here, cdw10=8, cdw12=7, wake=wake)
        driver.must(1, 0x00, nsid=nsid, wake=wake)
        driver.memory[DATA:DATA + 4096] = bytes(4096)
        driver.must(1, 0x02, nsid=nsid, prp=here, cdw10=8, cdw12=7, wake=wake)
        self.assertEqual(driver.memory[DATA:DATA + 4096], pattern)
        # Outside of the drive, and outside of the memory.
        self.assertNotEqual(driver.execute(1, 0x02, nsid=nsid, prp=here, cdw10=blocks), 0)
        self.assertNotEqual(driver.execute(1, 0x02, nsid=nsid, prp=0x1000, cdw10=0), 0)
        return pattern

    def test_a_guest_reads_what_it_wrote_in_every_mode(self):
        for mode in ("adaptive", "polling", "interrupt"):
            with self.subTest(mode):
                running = self.serve("mem:size=1M,block=512", "--vfio-user",
                                     f"vm.sock,mode={mode}")
                client = self.connect()
                self.assertEqual(client.doorbells() is None, mode == "interrupt")
                self.assertEqual(client.read(CONFIG, 0, 4), bytes.fromhex("361b10ca"))
                self.assertEqual(client.read(CONFIG, 9, 3), bytes.fromhex("020801"))
                self.check_drive(client, 2048)
                client.close()
                running.stop()

    def test_data_are_there_for_the_next_client_and_in_the_file(self):
        running = self.serve("file:d,size=1M,block=512", "--vfio-user", "vm.sock")
        client = self.connect()
        pattern = self.check_drive(client, 2048)
        with self.assertRaises(Refused):
            VfioClient(self.folder / "vm.sock")
        client.close()
        client = self.connect_after()
        client.call(RESET)
        self.assertEqual(client.read(BAR0, 0x1c, 4)[0] & 1, 0)
        client.close()
        running.stop()
        self.assertEqual((self.folder / "d").read_bytes()[4096:8192], pattern)
        self.assertFalse((self.folder / "vm.sock").exists())

    def test_a_killed_server_loses_nothing_that_it_acknowledged(self):
        draw = random.Random(8)
        blocks = 64
        may_hold = [{bytes(4096)} for _ in range(blocks)]
        for _ in range(6):
            running = self.serve("file:d,size=1M,block=4096", "--vfio-user", "vm.sock")
            client = self.connect()
            driver = NvmeDriver(client)
            driver.make_queues()
            here = driver.ADDRESS + DATA
            for lba in range(blocks):
                driver.must(1, 0x02, nsid=1, prp=here, cdw10=lba)
                found = driver.memory[DATA:DATA + 4096]
                self.assertIn(found, may_hold[lba])
                may_hold[lba] = {found}
            for _ in range(draw.randrange(10, 40)):
                lba = draw.randrange(blocks)
                driver.memory[DATA:DATA + 4096] = data = draw.randbytes(4096)
                driver.must(1, 0x01, nsid=1, prp=here, cdw10=lba)
                may_hold[lba] = {data}
            # Some more, whose end nobody lives to see.
            for slot, lba in enumerate(draw.sample(range(blocks), 8)):
                data = draw.randbytes(4096)
                driver.memory[DATA + 4096 * slot:DATA + 4096 * (slot + 1)] = data
                may_hold[lba].add(data)
                driver.submit(1, 0x01, nsid=1, prp=here + 4096 * slot, cdw10=lba)
            running.kill()
            client.close()

    def test_a_controller_for_each_drive(self):
        running = self.serve("a=mem:size=1M,block=512", "b=mem:size=2M,block=512",
                             "--vfio-user", "%.sock", "--vfio-user", "all.sock",
                             "--control", "ctl")
        self.assertIn("vfio-user-pci", running.said)
        said = self.run_ok("drive", "qemu-args", "b", "--control", "ctl")
        self.assertIn(f'"path":"{self.folder / "b.sock"}"', said)
        self.check_drive(self.connect("a.sock"), 2048)
        self.check_drive(self.connect("b.sock"), 4096)
        self.check_drive(self.connect("all.sock"), 4096, nsid=2)

    def test_doors_come_and_go(self):
        self.serve("a=mem:size=1M,block=512", "b=mem:size=2M,block=512", "--nbd", "unix:nbd",
                   "--control", "ctl")
        door = ["drive", "door"]
        said = self.run_ok(*door, "add", "b", "--vfio-user", "vm.sock", "--control", "ctl")
        self.assertIn(str(self.folder / "vm.sock"), said)
        client = self.connect()
        self.check_drive(client, 4096)
        # A guest that listens is asked, and leaves.
        asked = os.eventfd(0)
        self.addCleanup(os.close, asked)
        client.call(SET_IRQS, struct.pack("<IIIII", 20, 4 | 32, REQ, 0, 1), [asked])
        leaving = threading.Thread(target=lambda: (os.eventfd_read(asked), client.close()))
        leaving.start()
        self.run_ok(*door, "remove", "b", "--vfio-user", "vm.sock", "--guest-timeout", "1h",
                    "--control", "ctl")
        leaving.join()
        self.assertFalse((self.folder / "vm.sock").exists())
        # One that does not is left; and one that listens and stays too.
        for listens in (False, True):
            self.run_ok(*door, "add", "b", "--vfio-user", "vm.sock,mode=interrupt", "--control",
                        "ctl")
            client = self.connect()
            if listens:
                client.call(SET_IRQS, struct.pack("<IIIII", 20, 4 | 32, REQ, 0, 1), [asked])
            self.run_ok(*door, "remove", "b", "--vfio-user", "vm.sock", "--guest-timeout", "1ms",
                        "--control", "ctl")
            with self.assertRaises((EOFError, ConnectionError)):
                client.read(CONFIG, 0, 4)
        # Two at once, one of them beside a resize.
        for socket in ("a1", "a2"):
            self.run_ok(*door, "add", "a", "--vfio-user", socket, "--control", "ctl")
        self.run_ok("drive", "resize", "a", "4M", "--control", "ctl")
        self.run_ok(*door, "remove", "a", "--vfio-user", "a1", "--control", "ctl")
        self.check_drive(self.connect("a2"), 8192)

    def test_mistakes_with_doors_are_told(self):
        self.serve("a=mem:size=1M,block=512", "--vfio-user", "vm.sock", "--control", "ctl")
        door = ["drive", "door"]
        self.expect_usage([*door, "add", "a", "--vfio-user", "s,mode=fast", "--control", "ctl"],
                          "polling, adaptive or interrupt")
        self.expect_usage([*door, "add", "a", "--vfio-user", "a=s", "--control", "ctl"], "NAME=")
        for args, told in (
                (["add", "a", "--vfio-user", "vm.sock"], "a door already"),
                (["add", "a", "--vfio-user", "none/s"], "none/s"),
                (["add", "x", "--vfio-user", "s"], "no drive 'x'"),
                (["add", "a"], "which door"),
                (["remove", "a", "--vfio-user", "vm.sok"], "did you mean"),
                (["remove", "a", "--vhost-user", "vm.sock"], "no vhost-user door")):
            with self.subTest(args):
                result = self.run_cairn(*door, *args, "--control", "ctl")
                self.expect_sentence(result, 1, told)
        self.check_drive(self.connect(), 2048)

    def test_a_folder_has_the_socket_where_spdk_looks(self):
        pathlib.Path(self.folder / "vfu").mkdir()
        self.serve("mem:size=1M", "--vfio-user", "vfu")
        client = self.connect("vfu/cntrl")
        info = struct.unpack("<IIII", client.call(GET_INFO, struct.pack("<IIII", 16, 0, 0, 0))[0])
        self.assertEqual(info, (16, 3, 9, 5))

    def test_what_is_no_message_ends_the_connection(self):
        running = self.serve("mem:size=1M", "--vfio-user", "vm.sock")
        client = VfioClient(self.folder / "vm.sock", greet=False)
        client.socket.sendall(b"\xff" * 64)
        try:
            self.assertEqual(client.socket.recv(16), b"")
        except ConnectionResetError:
            pass  # what it never read went with it
        client.close()
        client = VfioClient(self.folder / "vm.sock", greet=False)  # waits for the last one to leave
        self.addCleanup(client.close)
        with self.assertRaises(Refused) as refused:
            client.call(VERSION, struct.pack("<HH", 9, 9) + b"{}\0")
        self.assertNotEqual(refused.exception.args[0], errno.EBUSY)
        client.close()
        client = self.connect_after()
        self.assertEqual(client.read(CONFIG, 0, 2), bytes.fromhex("361b"))
        self.assertEqual(running.log.count("was turned away"), 2)

    def test_mistakes_are_told(self):
        self.expect_usage(["serve", "mem:size=1M", "--vfio-user", "s,mode=fast"],
                          "polling, adaptive or interrupt")
        result = self.run_cairn("serve", "mem:size=1M", "--vfio-user", "x=s")
        self.expect_sentence(result, 1, "no drive", "d0")


if __name__ == "__main__":
    support.main()
