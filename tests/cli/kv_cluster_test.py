#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster of keys and values as its users meet it: nodes on loopback, clients that others wrote,
nodes that die under load, join and leave. CAIRN_KV_ROUNDS=n kills n nodes instead of 2."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

import support
from kv_cluster_support import Connection, KvClusterTest, Load, Refused
from rack_support import ETCD

ROUNDS = int(os.environ.get("CAIRN_KV_ROUNDS", "2"))
NAMES = ("kv0", "kv1", "kv2")


def python_with_redis():
    """An interpreter that has python3-redis; None: there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        if pathlib.Path(python).exists() and subprocess.run(
                [python, "-c", "import redis.cluster"], stderr=subprocess.DEVNULL,
                check=False).returncode == 0:
            return python
    return None


class Clients(KvClusterTest):
    def setUp(self):
        super().setUp()
        self.meta = self.serve_metadata()
        self.start_cluster(self.meta, *NAMES)

    def redis_cli(self, name, *args):
        result = subprocess.run(
            ["redis-cli", "-c", "-p", str(self.ports[name][1]), *args], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout.strip()

    @unittest.skipIf(shutil.which("redis-cli") is None, "not installed: redis-tools")
    def test_what_redis_cli_writes_at_one_node_is_read_at_all(self):
        for i in range(50):
            self.assertEqual(self.redis_cli("kv0", "SET", f"key:{i}", f"value {i}"), "OK")
        for i in range(50):
            self.assertEqual(self.redis_cli(NAMES[i % 3], "GET", f"key:{i}"), f"value {i}")
        self.assertIn("cluster_state:ok", self.redis_cli("kv1", "CLUSTER", "INFO"))
        sizes = [int(self.redis_cli(name, "DBSIZE")) for name in NAMES]
        self.assertEqual(sum(sizes), 50)
        self.assertTrue(all(sizes), sizes)
        self.assertEqual(self.redis_cli("kv2", "CLUSTER", "KEYSLOT", "foo"), "12182")

    def test_redis_py_finds_the_nodes_of_keys(self):
        python = python_with_redis()
        if python is None:
            self.skipTest("not installed: python3-redis")
        script = self.write("client.py", """
import sys
from redis.cluster import RedisCluster
client = RedisCluster(host="127.0.0.1", port=int(sys.argv[1]))
assert len(client.get_primaries()) == 3, client.get_nodes()
for i in range(200):
    assert client.set(f"py:{i}", i)
    assert client.incr(f"py:{i}", 1000) == i + 1000
assert sorted(client.scan_iter("py:*")) == sorted(f"py:{i}".encode() for i in range(200))
assert client.mset_nonatomic({f"m:{i}": i for i in range(20)})
assert client.mget_nonatomic([f"m:{i}" for i in range(20)]) == [b"%d" % i for i in range(20)]
assert client.mset({"{tag}a": 1, "{tag}b": 2})
assert client.mget("{tag}a", "{tag}b", "{tag}c") == [b"1", b"2", None]
with client.pipeline() as pipe:
    for i in range(50):
        pipe.get(f"py:{i}")
    assert pipe.execute() == [b"%d" % (i + 1000) for i in range(50)]
assert client.delete(*(f"py:{i}" for i in range(100))) == 100
assert sum(client.dbsize(target_nodes=RedisCluster.PRIMARIES) for _ in range(1)) == 122
assert client.flushall(target_nodes=RedisCluster.PRIMARIES)
assert client.dbsize(target_nodes=RedisCluster.PRIMARIES) == 0
print("done")
""")
        result = subprocess.run([python, str(script), str(self.ports["kv1"][1])],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                timeout=300, check=False)
        self.assertEqual(result.stdout, "done\n")

    def test_commands_that_change_what_they_see_do_so_once_wherever_they_come(self):
        ends = {name: Connection(self.ports[name][1]) for name in NAMES}
        for connection in ends.values():
            self.addCleanup(connection.close)
        a, b, c = ends.values()
        for i in range(60):
            self.assertEqual(ends[NAMES[i % 3]].call("INCR", "n"), i + 1)
        self.assertEqual(a.call("SET", "x", "1", "NX"), "OK")
        self.assertIsNone(b.call("SET", "x", "2", "NX"))
        self.assertEqual(c.call("SET", "x", "3", "XX", "GET"), "1")
        self.assertEqual(a.call("APPEND", "x", "4"), 2)
        self.assertEqual(b.call("GETSET", "x", "5"), "34")
        self.assertEqual(c.call("SETNX", "x", "6"), 0)
        self.assertEqual(a.call("GETDEL", "x"), "5")
        self.assertEqual(b.call("EXISTS", "x"), 0)
        self.assertEqual(c.call("TYPE", "n"), "string")
        self.assertEqual(a.call("SET", "t", "v", "EX", "100"), "OK")
        self.assertIn(b.call("TTL", "t"), (99, 100))
        self.assertEqual(c.call("SET", "t", "w", "KEEPTTL"), "OK")
        self.assertIn(a.call("TTL", "t"), (99, 100))
        self.assertEqual(b.call("PERSIST", "t"), 1)
        self.assertEqual(c.call("TTL", "t"), -1)
        self.assertEqual(a.call("PEXPIRE", "t", "1"), 1)
        self.wait_for(lambda: b.call("GET", "t") is None)
        a.call("SET", "w", "1")
        self.assertEqual(a.call("WATCH", "w"), "OK")
        b.call("INCR", "w")
        a.call("MULTI")
        a.call("SET", "w", "9")
        self.assertIsNone(a.call("EXEC"))
        a.call("MULTI")
        a.call("INCR", "w")
        a.call("GET", "w")
        self.assertEqual(a.call("EXEC"), [3, "3"])

    def test_wait_tells_how_many_replicas_have_what_was_written(self):
        connection = Connection(self.ports["kv0"][1])
        self.addCleanup(connection.close)
        for i in range(40):
            connection.call("SET", f"w{i}", i)
        self.assertEqual(connection.call("WAIT", "2", "0"), 2)
        self.assertEqual(connection.call("WAIT", "3", "100"), 2, "there are no more")
        self.nodes["kv2"].kill()
        # A chain goes on with two; what was there is at one besides its head.
        self.wait_for(lambda: connection.call("WAIT", "0", "1") == 1)
        self.assertEqual(connection.call("SET", "w0", "again"), "OK")
        self.assertEqual(connection.call("WAIT", "2", "100"), 1)
        self.start_node("kv2", self.meta)
        self.assertEqual(connection.call("WAIT", "2", "60000"), 2, "it waits for who is filled")
        for i in range(1, 40):
            self.assertEqual(self.call("kv2", "GET", f"w{i}"), str(i))
        info = connection.call("INFO", "cluster")
        self.assertIn("cluster_records_repaired:0", info)

    def test_what_a_cluster_cannot_do_is_said(self):
        connection = Connection(self.ports["kv0"][1])
        self.addCleanup(connection.close)
        for args, why in ((("MSET", "a", "1", "b", "2"), "CROSSSLOT"),
                          (("MGET", "a", "b"), "CROSSSLOT"),
                          (("RENAME", "{t}a", "{t}b"), "which a cluster does not do"),
                          (("MSETNX", "{t}a", "1", "{t}b", "2"), "which a cluster does not do"),
                          (("SELECT", "1"), "out of range"),
                          (("SET", "k", "v" * ((1 << 20) + 1)), "1048576"),
                          (("LPUSH", "l", "1"), "unknown command")):
            with self.assertRaisesRegex(Refused, why):
                connection.call(*args)
        self.assertEqual(connection.call("DEL", "{t}a", "{t}b"), 0)
        connection.call("MULTI")
        connection.call("SET", "{t}a", "1")
        connection.call("SET", "{t}b", "1")
        with self.assertRaisesRegex(Refused, "a transaction of several keys"):
            connection.call("EXEC")
        self.expect_usage_of_nodes()

    def expect_usage_of_nodes(self):
        for args, *parts in (
                (("--memory", "--join", self.meta), "keeps its keys on a drive"),
                (("file:x,size=64M", "--join", "rocks:meta"), "cannot share a folder"),
                (("file:x,size=64M", "--join", self.meta, "--resp", "127.0.0.1:0"),
                 "where they find nobody"),
                (("file:x,size=64M", "--join", self.meta, "--listen", "10.0.0.1:1"),
                 "--tls-keys")):
            result = self.run_cairn("kv", "serve", *args)
            self.assertNotEqual(result.returncode, 0)
            for part in parts:
                self.assertIn(part, result.stderr)


class Failures(KvClusterTest):
    def setUp(self):
        super().setUp()
        self.meta = self.serve_metadata()

    def wait_for_more(self, load, more=20):
        """All writers go on."""
        goal = [value + more for value in load.acknowledged]
        self.wait_for(lambda: all(now >= then for now, then in zip(load.acknowledged, goal)))

    def judge(self, load, names):
        load.stop()
        for name in names:
            connection = Connection(self.ports[name][1])
            self.addCleanup(connection.close)
            load.judge(self, connection)

    def test_nodes_that_are_killed_under_load_lose_nothing_and_show_nothing_old(self):
        self.start_cluster(self.meta, *NAMES)
        load = Load([self.ports[name][1] for name in NAMES])
        self.addCleanup(load.stop)
        for each in range(ROUNDS):
            victim = NAMES[each % 3]
            self.wait_for_more(load)
            self.nodes[victim].kill()
            self.wait_for_more(load)
            self.start_node(victim, self.meta)
            self.wait_settled(self.meta, NAMES)
        self.judge(load, NAMES)

    def test_a_node_that_stood_still_longer_than_its_lease_shows_nothing_old(self):
        self.start_cluster(self.meta, *NAMES)
        load = Load([self.ports[name][1] for name in NAMES])
        self.addCleanup(load.stop)
        self.wait_for_more(load)
        for victim in NAMES[:ROUNDS]:
            pid = self.nodes[victim].pid
            waiting = [Connection(self.ports[victim][1], timeout=60) for _ in load.acknowledged]
            for each in waiting:
                self.addCleanup(each.close)
            os.kill(pid, signal.SIGSTOP)
            try:
                # Others have its place by now.
                self.wait_for_more(load)
                before = list(load.acknowledged)
                # Also those that wait in the node's sockets, and happen now.
                doubtful = [set(each) for each in load.doubtful]
            finally:
                os.kill(pid, signal.SIGCONT)
            for number, connection in enumerate(waiting):
                try:
                    value = int(connection.call("GET", load.key(number)) or 0)
                except Refused:
                    continue  # it says that it cannot know
                if value not in doubtful[number]:
                    self.assertGreaterEqual(value, before[number], f"{victim}, key {number}")
            self.wait_settled(self.meta, NAMES)
        self.judge(load, NAMES)

    def test_a_fourth_joins_and_one_leaves_while_clients_go_on(self):
        self.start_cluster(self.meta, *NAMES)
        for i in range(300):
            self.call("kv0", "SET", f"old:{i}", i)
        load = Load([self.ports[name][1] for name in NAMES[1:]])
        self.addCleanup(load.stop)
        self.start_node("kv3", self.meta)
        self.wait_settled(self.meta, (*NAMES, "kv3"))
        self.wait_for_more(load)
        refused = self.run_cairn("kv", "ring", "remove", "kv0", "--meta", self.meta, "--yes")
        self.expect_sentence(refused, 1, "drain it first")
        refused = self.run_cairn("kv", "ring", "drain", "kv0", "--meta", self.meta)
        self.expect_sentence(refused, 1, "--yes")
        self.run_ok("kv", "ring", "drain", "kv0", "--meta", self.meta, "--yes")

        def is_drained():
            states = {each["name"]: each["state"] for each in self.ring(self.meta)["nodes"]}
            return states.get("kv0") == "drained"
        self.wait_for(is_drained)
        self.wait_for(lambda: "it can be stopped" in self.nodes["kv0"].log)
        self.assertEqual(self.nodes["kv0"].stop(), 0)
        rest = (*NAMES[1:], "kv3")
        self.wait_settled(self.meta, rest)
        self.wait_for_more(load)
        self.judge(load, rest)
        for i in range(300):
            self.assertEqual(self.call(rest[i % 3], "GET", f"old:{i}"), str(i))
        # It comes back only when it is called.
        self.start_node("kv0", self.meta)
        self.wait_for(is_drained)
        self.run_ok("kv", "ring", "add", "kv0", "--meta", self.meta)
        self.wait_settled(self.meta, (*rest, "kv0"))

    def test_all_that_stop_come_back_with_their_keys(self):
        self.start_cluster(self.meta, *NAMES)
        for i in range(50):
            self.call("kv0", "SET", f"k{i}", i)
        for name in NAMES:
            self.assertEqual(self.nodes[name].stop(), 0)
        for name in NAMES:
            self.start_node(name, self.meta)
        self.wait_settled(self.meta, NAMES)
        for i in range(50):
            self.assertEqual(self.call(NAMES[i % 3], "GET", f"k{i}"), str(i))

    def expect_strangers_are_refused(self, name):
        """At the port where this node speaks to others; any caller of our protocol will do."""
        at = f"meta://127.0.0.1:{self.ports[name][0]}"

        def ask(who):
            return self.run_cairn("rack", "drives", "--rack", at + who)
        stranger = f"?tls_key={self.folder}/stranger.key&name="
        for who, told, logged in (
                (stranger + "stranger", "does not know this client's name",
                 "no client of that name is in"),
                (stranger + "kv1", "or has another key for it", "its key is not the one"),
                ("", "demands TLS", "speaks without TLS")):
            self.expect_sentence(ask(who), 1, told)
            self.wait_for(lambda part=logged: part in self.nodes[name].log)

    def test_nodes_speak_tls_with_keys(self):
        lines = ""
        for name in (*NAMES, "stranger"):
            key = self.run_ok("key", "new", "tls").strip()
            self.write(f"{name}.key", key + "\n").chmod(0o600)
            if name in NAMES:
                lines += f"writer {name} {key}\n"
        self.write("nodes.keys", lines).chmod(0o600)
        for name in NAMES:
            self.start_node(name, self.meta, "--tls-keys", "nodes.keys", "--node-key",
                            f"{name}.key")
        self.wait_settled(self.meta, NAMES)
        for i in range(20):
            self.call("kv0", "SET", f"k{i}", i)
            self.assertEqual(self.call("kv1", "GET", f"k{i}"), str(i))
        self.expect_strangers_are_refused("kv0")
        self.assertEqual(self.call("kv0", "GET", "k1"), "1")

    @unittest.skipUnless(pathlib.Path(ETCD).exists(), "not installed: etcd-server")
    def test_an_etcd_may_have_the_metadata(self):
        meta = self.start_etcd()
        self.start_cluster(meta, *NAMES)
        load = Load([self.ports[name][1] for name in NAMES])
        self.addCleanup(load.stop)
        self.wait_for_more(load)
        self.nodes["kv1"].kill()
        self.wait_for_more(load)
        self.start_node("kv1", meta)
        self.wait_settled(meta, NAMES)
        self.judge(load, NAMES)


if __name__ == "__main__":
    support.main()
