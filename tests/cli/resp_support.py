# SPDX-License-Identifier: Apache-2.0
"""RESP for tests: connections that show every byte of a reply, and a Redis to compare with."""

import os
import shutil
import socket
import subprocess
import time

HANGS_S = 60


def encode(args):
    """A request as clients send it."""
    parts = [b"*%d\r\n" % len(args)]
    for word in args:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Raw:
    """A connection whose replies are bytes."""

    def __init__(self, test, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))  # without a timeout, it waits while the backlog is full
        self._socket.settimeout(HANGS_S)
        self._bytes = b""
        test.addCleanup(self._socket.close)

    def send(self, data):
        self._socket.sendall(data)

    def finish(self):
        self._socket.shutdown(socket.SHUT_WR)

    def call(self, *args):
        self.send(encode(args))
        return self.reply()

    def rest(self):
        """All that comes until the server ends the connection."""
        try:
            while more := self._socket.recv(65536):
                self._bytes += more
        except ConnectionResetError:
            pass
        data, self._bytes = self._bytes, b""
        return data

    def reply(self):
        line = self._line()
        marker, text = line[:1], line[1:-2]
        if marker in b"$=" and text != b"-1":
            return line + self._take(int(text) + 2)
        if marker in b"*~>" and text != b"-1":
            return line + b"".join(self.reply() for _ in range(int(text)))
        if marker == b"%":
            return line + b"".join(self.reply() for _ in range(2 * int(text)))
        return line

    def _more(self):
        more = self._socket.recv(65536)
        if not more:
            raise ConnectionError(f"ended after {self._bytes!r}")
        self._bytes += more

    def _take(self, count):
        while len(self._bytes) < count:
            self._more()
        data, self._bytes = self._bytes[:count], self._bytes[count:]
        return data

    def _line(self):
        while b"\n" not in self._bytes:
            self._more()
        return self._take(self._bytes.index(b"\n") + 1)


def start_redis(test, *args):
    """A Redis at a local socket of the test's folder; skips the test where there is none."""
    program = shutil.which("redis-server")
    if program is None:
        test.skipTest("no redis-server here: apt-get install redis-server")
    path = test.folder / "redis.sock"
    process = subprocess.Popen(
        [program, "--port", "0", "--unixsocket", str(path), "--save", "", "--appendonly", "no",
         "--dir", str(test.folder), "--enable-debug-command", "yes", *args],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def end():
        process.kill()
        process.wait()

    test.addCleanup(end)
    give_up = time.monotonic() + HANGS_S
    while True:
        probe = socket.socket(socket.AF_UNIX)
        try:
            probe.connect(str(path))
            return path
        except OSError:
            if process.poll() is not None or time.monotonic() > give_up:
                raise
            os.sched_yield()
        finally:
            probe.close()
