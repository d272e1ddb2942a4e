# SPDX-License-Identifier: Apache-2.0
"""What the tests of `cairn nvme` share: a box to use, and the verbs as functions."""

import json
import os
import pty
import re
import signal
import socket
import subprocess

import support

NQN = "nqn.2026-11.io.cairn:test"
KIB = 1024
MIB = 1024 * KIB


def pattern(size, salt=0):
    """Bytes that differ from block to block."""
    return bytes((i * i >> 3) + (i >> 12) * 7 + salt & 0xff for i in range(size))


def can_listen(port):
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen()
        except OSError:
            return False
    return True


class Process:
    """A cairn that runs beside the test; killed with it."""

    def __init__(self, test, args, **options):
        command = [*filter(None, support._options.emulator.split(";")), support._options.cairn,
                   *map(str, args)]
        self._process = subprocess.Popen(command, cwd=test.folder, env=test.env, text=True,
                                         **options)
        test.addCleanup(self.kill)

    def send(self, number):
        self._process.send_signal(number)

    def communicate(self):
        out, err = self._process.communicate(timeout=60)
        return self._process.returncode, out, err

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()


class Box(Process):
    """`cairn serve` on a port of its own. It has a terminal, so it speaks line by line."""

    def __init__(self, test, *drives, port=0, options=()):
        master, slave = pty.openpty()
        args = ["serve", "--nvme-tcp", f"127.0.0.1:{port}", "--nqn", NQN, *options]
        for drive in drives:
            args += [drive]
        try:
            super().__init__(test, args, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave)
        finally:
            os.close(slave)
        test.addCleanup(os.close, master)
        said = ""
        while not (found := re.search(rf"serving {re.escape(NQN)} at 127\.0\.0\.1:(\d+)", said)):
            try:
                said += os.read(master, 4096).decode()
            except OSError:  # it has ended
                raise AssertionError(f"the box ended: {said}") from None
        self.port = int(found.group(1))

    def stop(self, number=signal.SIGTERM):
        """Ends it; its port is free then. The kernel closes what a ring held in its own time."""
        self.send(number)
        self.communicate()
        while not can_listen(self.port):
            pass


class NvmeTest(support.CliTest):
    """Each test has a box with a namespace of 4096-byte blocks and one of 512-byte blocks."""

    drives = ("mem:size=64M", "mem:size=16M,block=512")
    box_options = ()

    def setUp(self):
        super().setUp()
        self.env = {**os.environ, "HOME": str(self.folder), "XDG_RUNTIME_DIR": str(self.folder)}
        self.box = Box(self, *self.drives, options=self.box_options)

    @property
    def place(self):
        return f"nvme-tcp://127.0.0.1:{self.box.port}"

    def uri(self, nsid=1, options=""):
        return f"{self.place}/{NQN}?nsid={nsid}{options}"

    def nvme(self, *args):
        """Must succeed; returns what it prints."""
        return self.run_ok("nvme", *map(str, args), env=self.env)

    def nvme_json(self, *args):
        return json.loads(self.nvme(*args, "--json"))

    def nvme_fails(self, args, *parts):
        """Must fail with one sentence that has the parts."""
        result = self.run_cairn("nvme", *map(str, args), env=self.env)
        self.expect_sentence(result, 1, *parts)

    def pipe(self, *args, given=b""):
        """Runs with bytes on stdin; returns status, bytes of stdout, text of stderr."""
        command = [*filter(None, support._options.emulator.split(";")), support._options.cairn,
                   "nvme", *map(str, args)]
        result = subprocess.run(command, input=given, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=self.env, timeout=60, check=False)
        return result.returncode, result.stdout, result.stderr.decode()

    def fill(self, data, nsid=1, offset=0):
        path = self.write("filling", data)
        self.nvme("write", self.uri(nsid), "--offset", offset, "--input", path)

    def bytes_at(self, offset, length, nsid=1):
        status, out, err = self.pipe("read", self.uri(nsid), "--offset", offset, "--length", length)
        self.assertEqual((status, err), (0, ""))
        return out
