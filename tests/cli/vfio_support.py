# SPDX-License-Identifier: Apache-2.0
"""A vfio-user client in plain Python, and a driver that knows as much NVMe as a test needs."""

import mmap
import os
import select
import socket
import struct

HEADER = struct.Struct("<HHIII")
VERSION, DMA_MAP, GET_INFO, GET_REGION_INFO, SET_IRQS = 1, 2, 4, 5, 8
REGION_READ, REGION_WRITE, RESET = 9, 10, 13
BAR0, CONFIG = 0, 7
MSIX, REQ = 2, 4


class Refused(Exception):
    """The server's errno."""


class VfioClient:
    """One connection. Calls are made one after the other."""

    def __init__(self, path, greet=True):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        self.next_id = 0
        if greet:
            proposal = struct.pack("<HH", 0, 0) + b'{"capabilities":{}}\0'
            self.version = self.call(VERSION, proposal)[0]

    def close(self):
        self.socket.close()

    def call(self, command, payload=b"", fds=()):
        """The payload of the reply, and its descriptors."""
        self.next_id += 1
        size = HEADER.size + len(payload)
        message = HEADER.pack(self.next_id, command, size, 0, 0) + payload
        socket.send_fds(self.socket, [message], list(fds))
        head, received, _, _ = socket.recv_fds(self.socket, HEADER.size, 16)
        if len(head) < HEADER.size:
            raise EOFError("the server has hung up")
        reply_id, reply_command, size, flags, errno = HEADER.unpack(head)
        assert (reply_id, reply_command, flags & 0xf) == (self.next_id, command, 1)
        body = b""
        while len(body) < size - HEADER.size:
            body += self.socket.recv(size - HEADER.size - len(body))
        if flags & 0x20:
            raise Refused(errno)
        return body, received

    def read(self, region, offset, count):
        return self.call(REGION_READ, struct.pack("<QII", offset, region, count))[0][16:]

    def write(self, region, offset, data):
        self.call(REGION_WRITE, struct.pack("<QII", offset, region, len(data)) + data)

    def doorbells(self):
        """The page of doorbells, mapped; None where the server wants them as messages."""
        body, fds = self.call(GET_REGION_INFO, struct.pack("<IIIIQQ", 4064, 0, BAR0, 0, 0, 0))
        _, flags, _, cap, _, offset = struct.unpack_from("<IIIIQQ", body)
        if not flags & 4:
            return None
        _, _, _, areas, _, at, size = struct.unpack_from("<HHIIIQQ", body, cap)
        assert areas == 1 and len(fds) == 1
        page = mmap.mmap(fds[0], size, offset=offset + at)
        os.close(fds[0])
        return page

    def interrupt(self, vector):
        """A descriptor that is readable when the vector was raised."""
        event = os.eventfd(0, os.EFD_NONBLOCK)
        self.call(SET_IRQS, struct.pack("<IIIII", 20, 4 | 32, MSIX, vector, 1), [event])
        return event


class NvmeDriver:
    """A controller with an admin queue and one pair of I/O queues, one command at a time."""

    ADDRESS = 0x1_0000_0000
    SIZE = 1 << 20
    ENTRIES = 16

    def __init__(self, client):
        self.client = client
        fd = os.memfd_create("guest")
        os.ftruncate(fd, self.SIZE)
        self.memory = mmap.mmap(fd, self.SIZE)
        client.call(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, self.ADDRESS, self.SIZE), [fd])
        os.close(fd)
        self.page = client.doorbells()
        self.queues = {0: [0, 0, 1], 1: [0, 0, 1]}  # tail, head, phase
        client.write(CONFIG, 4, struct.pack("<H", 0x406))
        client.write(BAR0, 0x14, struct.pack("<I", 0))
        client.write(BAR0, 0x24, struct.pack("<I", (self.ENTRIES - 1) * 0x10001))
        client.write(BAR0, 0x28, struct.pack("<Q", self.ADDRESS))
        client.write(BAR0, 0x30, struct.pack("<Q", self.ADDRESS + 4096))
        client.write(BAR0, 0x14, struct.pack("<I", 0x460001))
        for _ in range(10000):
            if client.read(BAR0, 0x1c, 4)[0] & 1:
                return
        raise TimeoutError("the controller does not become ready")

    def ring(self, index, value):
        if self.page is None:
            self.client.write(BAR0, 0x1000 + 4 * index, struct.pack("<I", value))
        else:
            self.page[4 * index:4 * index + 4] = struct.pack("<I", value)

    def make_queues(self):
        at = self.ADDRESS + 8192
        self.must(0, 0x05, prp=at, cdw10=(self.ENTRIES - 1) << 16 | 1, cdw11=1 << 16 | 3)
        self.must(0, 0x01, prp=at + 4096, cdw10=(self.ENTRIES - 1) << 16 | 1, cdw11=1 << 16 | 1)

    def must(self, queue, opcode, **fields):
        status = self.execute(queue, opcode, **fields)
        assert status == 0, f"status {status:x}"

    def execute(self, queue, opcode, wake=None, **fields):
        self.submit(queue, opcode, **fields)
        if wake is not None:
            assert select.select([wake], [], [], 30)[0], "no interrupt came"
            os.eventfd_read(wake)
        return self.take(queue)

    def submit(self, queue, opcode, nsid=0, prp=0, cdw10=0, cdw11=0, cdw12=0):
        """Rings for a command, and does not wait for it."""
        tail, head, phase = self.queues[queue]
        submission = 0 if queue == 0 else 12288
        entry = struct.pack("<BBHIQQQQIIIIII", opcode, 0, tail, nsid, 0, 0, prp, 0, cdw10, cdw11,
                            cdw12, 0, 0, 0)
        self.memory[submission + 64 * tail:submission + 64 * (tail + 1)] = entry
        tail = (tail + 1) % self.ENTRIES
        self.queues[queue] = [tail, head, phase]
        self.ring(2 * queue, tail)

    def take(self, queue):
        """The status of the next command that ends."""
        tail, head, phase = self.queues[queue]
        completion = 4096 if queue == 0 else 8192
        while True:
            *_, status = struct.unpack_from("<IIHHHH", self.memory, completion + 16 * head)
            if status & 1 == phase:
                break
        head += 1
        if head == self.ENTRIES:
            head, phase = 0, 1 - phase
        self.queues[queue] = [tail, head, phase]
        self.ring(2 * queue + 1, head)
        return status >> 1
