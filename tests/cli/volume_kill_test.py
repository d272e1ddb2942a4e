# SPDX-License-Identifier: Apache-2.0
"""An elastic volume of three replicas under a load that verifies what it reads, while arbiter,
boxes and client are killed with SIGKILL, one after the other and a box together with the client.
CAIRN_KILL_ROUNDS says how often, CAIRN_SEED in which order."""

import os
import random
import shutil
import socket
import struct
import threading
import time
import unittest

import support
from volume_test import VolumeTest

ROUNDS = int(os.environ.get("CAIRN_KILL_ROUNDS", "8"))
SEED = int(os.environ.get("CAIRN_SEED", "1"))
BLOCK = 4096
BLOCKS = (6 << 20) // BLOCK  # of the volume
STRIDE = 12  # between those that are used
READ, WRITE, FLUSH = 0, 1, 3
# Longer than an arbiter is away; a volume whose holder died with a box is not opened before.
LEASE = ("--lease", "20s")
VICTIMS = ("arbiter", "box", "client", "box and client")


class Gone(Exception):
    """The server ended the connection."""


class Nbd:
    """The simple client's half of NBD: one request at a time."""

    def __init__(self, path, name):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(support.HANGS_S)
        try:
            self._socket.connect(str(path))
            self._take(18)
            self._socket.sendall(struct.pack(">I", 3) + b"IHAVEOPT"
                                 + struct.pack(">II", 1, len(name)) + name.encode())
            self._take(10)
        except OSError as error:
            self.close()
            raise Gone(str(error)) from error

    def _take(self, count):
        data = self._socket.recv(count, socket.MSG_WAITALL)
        if len(data) != count:
            raise Gone("closed")
        return data

    def ask(self, kind, block=0, data=b"", length=BLOCK):
        """The status of a request, and what was read."""
        length = 0 if kind == FLUSH else length
        try:
            self._socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, kind, 7, block * BLOCK,
                                             length) + data)
            _, status, _ = struct.unpack(">IIQ", self._take(16))
            return status, self._take(BLOCK) if kind == READ and status == 0 else b""
        except OSError as error:
            raise Gone(str(error)) from error

    def close(self):
        self._socket.close()


def content(value):
    return struct.pack("<Q", value) * (BLOCK // 8)


class Load(threading.Thread):
    """Writes, reads and flushes, and knows what each block may hold. While the server is to be gone
    it waits for the next one; any other end of a connection, and any error, is a failure."""

    def __init__(self, path, seed):
        super().__init__(daemon=True)
        self._path = path
        self._random = random.Random(seed)
        self._possible = {}  # by block: values since the last that was flushed, oldest first
        self._written = {}  # by block: the last that this connection wrote
        self._value = 0
        self.server = threading.Event()
        self.done = 0
        self.failure = ""
        self.stopped = False

    def run(self):
        try:
            while not self.stopped:
                if self.server.wait(0.1):
                    self._use()
        except Exception as error:  # pylint: disable=broad-except
            self.failure = self.failure or repr(error)

    def _use(self):
        self._written = {}
        try:
            nbd = Nbd(self._path, "v")
            try:
                while not self.stopped and self.server.is_set():
                    self._step(nbd)
                    self.done += 1
            finally:
                nbd.close()
        except Gone as error:
            if self.server.is_set():
                raise AssertionError(f"the server ended the connection: {error}") from error

    def _step(self, nbd):
        block = self._random.randrange(BLOCKS // STRIDE) * STRIDE
        what = self._random.random()
        if what < 0.5:
            self._value += 1
            self._possible.setdefault(block, [0]).append(self._value)
            self._check(nbd.ask(WRITE, block, content(self._value))[0])
            self._written[block] = self._value
        elif what < 0.95:
            self.verify(nbd, block)
        else:
            self._check(nbd.ask(FLUSH)[0])
            for each, value in self._written.items():
                held = self._possible[each]
                del held[:held.index(value)]

    def verify(self, nbd, block):
        status, data = nbd.ask(READ, block)
        self._check(status)
        value = struct.unpack("<Q", data[:8])[0]
        possible = self._possible.get(block, [0])
        if block in self._written:
            possible = [self._written[block]]
        if data != content(value) or value not in possible:
            raise AssertionError(f"block {block} holds {value}, and should hold {possible}")

    def verify_all(self):
        nbd = Nbd(self._path, "v")
        for block in range(0, BLOCKS, STRIDE):
            self.verify(nbd, block)
        nbd.close()

    def _check(self, status):
        if status != 0:
            raise AssertionError(f"a request failed with {os.strerror(status)}")


@unittest.skipIf(shutil.which("nbdinfo") is None, "not here: nbdinfo")
class Kills(VolumeTest):
    def test_nothing_is_lost_when_any_process_is_killed(self):
        self.random = random.Random(SEED)
        self.start_pool(boxes=3, more=LEASE)
        self.run_ok("volume", "create", "vol0", "--size", "6M", "--replicas", "3")
        self.client = self.open_volume("volume:vol0,take-over=yes")
        self.load = Load(self.socket, SEED)
        self.load.start()
        self.addCleanup(setattr, self.load, "stopped", True)
        self.load.server.set()
        self.goes_on()
        order = [VICTIMS[i % len(VICTIMS)] for i in range(ROUNDS)]
        self.random.shuffle(order)
        for number, victim in enumerate(order):
            with self.subTest(round=number, victim=victim, seed=SEED):
                self.kill_round(victim)
            if self.load.failure:
                break
        self.load.stopped = True
        self.load.join(support.HANGS_S)
        self.assertEqual(self.load.failure, "")
        self.load.verify_all()
        self.assertEqual(self.run_ok("drive", "tell", "v", "0", "scrub", "--control",
                                     f"{self.folder}/client.sock").strip(),
                         "0 extents had legs that differed, and were mended")
        self.assertEqual(self.client.stop(), 0)

    def kill_round(self, victim):
        box = self.random.choice(sorted(self.boxes))
        time.sleep(self.random.random() * 0.05)  # so that it meets requests at any place
        if victim == "arbiter":
            self.arbiter.kill()
            self.goes_on(20)
            self.arbiter = self.start_cairn("arbiter", "--meta", "rocks:pool", *LEASE,
                                            until="it leads", env=self.env)
        if "client" in victim:
            self.load.server.clear()
        if "box" in victim:
            self.boxes[box].kill()
        if "client" in victim:
            self.client.kill()
            self.client = self.open_again()
            self.load.server.set()
        self.goes_on()
        if "box" in victim:
            self.boxes[box] = self.start_drives(box, self.ports[box])
        self.wait_for(lambda: self.load.failure or self.volume()["lacking"] == 0)
        self.goes_on()

    def open_again(self):
        """With a box that is away, when the lease of the one that was killed has ended."""
        end = time.monotonic() + support.HANGS_S
        while True:
            try:
                return self.open_volume("volume:vol0,take-over=yes")
            except AssertionError:
                if time.monotonic() > end:
                    raise

    def goes_on(self, requests=200):
        before = self.load.done
        self.wait_for(lambda: self.load.failure or self.load.done >= before + requests)
        self.assertEqual(self.load.failure, "")


if __name__ == "__main__":
    support.main()
