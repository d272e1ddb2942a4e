# SPDX-License-Identifier: Apache-2.0
"""Clusters of `cairn kv serve --join` for tests, and load whose replies are judged."""

import json
import os
import random
import socket
import tempfile
import threading

import resp_support
from rack_support import RackTest

MEMORY = "/dev/shm"


def free_ports(count):
    """Ports that nobody has, and that nobody else is given meanwhile."""
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


class Refused(Exception):
    """An error that a server answered."""


class Connection:
    """To a node; replies as Python has them."""

    def __init__(self, port, timeout=30):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._file = self._socket.makefile("rb")

    def close(self):
        self._file.close()
        self._socket.close()

    def call(self, *args):
        self._socket.sendall(resp_support.encode(args))
        return self._reply()

    def _reply(self):
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the node ended the connection")
        marker, text = line[:1], line[1:-2].decode()
        if marker == b"-":
            raise Refused(text)
        if marker == b"+":
            return text
        if marker == b":":
            return int(text)
        if text == "-1":
            return None
        if marker == b"$":
            data = self._file.read(int(text) + 2)
            if len(data) != int(text) + 2:
                raise ConnectionError("the node ended the connection")
            return data[:-2].decode()
        return [self._reply() for _ in range(int(text))]


class KvClusterTest(RackTest):
    def setUp(self):
        # In memory where that can be: nodes answer for their leases, and a disk that others keep
        # busy may stand still for longer. Processes are killed here, not machines.
        if os.access(MEMORY, os.W_OK):
            self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
            tempfile.tempdir = MEMORY
        super().setUp()
        self.nodes = {}
        self.ports = {}

    def start_node(self, name, meta, *more, size="64M"):
        """A node with a store in a file of the test's folder; it comes back at the same ports."""
        if name not in self.ports:
            self.ports[name] = free_ports(2)
        peer, resp = self.ports[name]
        self.nodes[name] = self.start_cairn(
            "kv", "serve", f"file:{name}.kv,size={size},direct=off", "--join", meta, "--name", name,
            "--machine", name, "--listen", f"127.0.0.1:{peer}", "--resp", f"127.0.0.1:{resp}",
            "--lease", "3s", *more, until="Ctrl-C")
        return self.nodes[name]

    def start_cluster(self, meta, *names, **options):
        for name in names:
            self.start_node(name, meta, **options)
        self.wait_settled(meta, names)

    def ring(self, meta):
        return json.loads(self.run_ok("kv", "ring", "show", "--meta", meta, "--json"))

    def wait_settled(self, meta, names):
        """All these nodes, and no other, keep what they should."""
        def holds():
            ring = self.ring(meta)
            states = {each["name"]: each["state"] for each in ring["nodes"]}
            return ring["settled"] and states == {name: "here" for name in names}
        self.wait_for(holds)

    def call(self, name, *args):
        connection = Connection(self.ports[name][1])
        try:
            return connection.call(*args)
        finally:
            connection.close()


class Load:
    """Writers with a key each, and readers, at whichever node answers. A writer's values count up;
    what a reader sees was acknowledged last before it asked, or came later, or is one of those
    whose writer was not told whether they happened. Counters are added to by everybody."""

    def __init__(self, ports, writers=4, readers=2):
        self.problems = []
        self.acknowledged = [0] * writers
        self.sent = [0] * writers
        self.doubtful = [set() for _ in range(writers)]
        self.added = 0
        self.perhaps_added = 0
        self.reads = 0
        self._ports = list(ports)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(self._write, number))
                         for number in range(writers)]
        self._threads += [threading.Thread(target=self._run, args=(self._read, number))
                          for number in range(readers)]
        for each in self._threads:
            each.start()

    @staticmethod
    def key(number):
        return f"load:{number}"

    def stop(self):
        self._stop.set()
        for each in self._threads:
            each.join()

    def _run(self, one, number):
        rng = random.Random(number)
        connection = None
        while not self._stop.is_set():
            try:
                if connection is None:
                    connection = Connection(rng.choice(self._ports))
                if rng.random() < 0.01:
                    connection.close()
                    connection = None
                    connection = Connection(rng.choice(self._ports))
                one(connection, number, rng)
            except Refused:
                pass
            except OSError:
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _write(self, connection, number, rng):
        if rng.random() < 0.2:
            return self._add(connection)
        self.sent[number] += 1
        value = self.sent[number]
        self.doubtful[number].add(value)
        connection.call("SET", self.key(number), value)
        self.acknowledged[number] = value
        self.doubtful[number].discard(value)

    def _add(self, connection):
        with self._lock:
            self.perhaps_added += 1
        connection.call("INCR", "load:sum")
        with self._lock:
            self.perhaps_added -= 1
            self.added += 1

    def _read(self, connection, _, rng):
        number = rng.randrange(len(self.sent))
        doubtful = set(self.doubtful[number])
        before = self.acknowledged[number]
        value = int(connection.call("GET", self.key(number)) or 0)
        self.reads += 1
        doubtful |= self.doubtful[number]
        if not (before <= value <= self.sent[number] or value in doubtful):
            self.problems.append(f"key {number}: read {value}, {before} was acknowledged before")

    def judge(self, test, connection):
        """After stop(): what is there in the end."""
        test.assertEqual(self.problems, [])
        for number, value in enumerate(self.acknowledged):
            now = int(connection.call("GET", self.key(number)) or 0)
            test.assertIn(now, {value} | self.doubtful[number], f"key {number}")
        total = int(connection.call("GET", "load:sum") or 0)
        test.assertGreaterEqual(total, self.added)
        test.assertLessEqual(total, self.added + self.perhaps_added)
