# SPDX-License-Identifier: Apache-2.0
"""`cairn kv`: served, asked by its own commands, and used by clients that others wrote."""

import json
import resource
import shutil
import socket
import subprocess
import threading
import time
import unittest

import resp_support
import support

try:
    import redis
except ImportError:
    redis = None

MIB = 1 << 20


class KvTest(support.CliTest):
    def serve(self, *args, on="--memory", **options):
        """Starts a server at a free port of this machine."""
        self.socket = self.folder / "kv.sock"
        server = self.start_cairn("kv", "serve", on, "--resp", "127.0.0.1:0",
                                  "--resp", f"unix:{self.socket}", *args, until="Ctrl-C",
                                  **options)
        self.port = int(server.said.split("at 127.0.0.1:")[1].split()[0])
        self.at = f"127.0.0.1:{self.port}"
        return server

    def raw(self):
        return resp_support.Raw(self, self.socket)

    def password(self, text="open sesame"):
        path = self.write("password", text + "\n")
        path.chmod(0o600)
        return path

    def rss(self, server):
        with open(f"/proc/{server.pid}/status", encoding="ascii") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines["VmRSS"].split()[0]) * 1024


class Commands(KvTest):
    def test_values_are_put_got_listed_and_removed(self):
        self.serve()
        self.assertEqual(self.run_ok("kv", "put", "greeting", "hello", "--at", self.at), "")
        self.assertEqual(self.run_ok("kv", "get", "greeting", "--at", self.at), "hello")
        self.run_ok("kv", "put", "user:1", "a", "--expire", "100s", "--at", f"unix:{self.socket}")
        self.assertEqual(sorted(self.run_ok("kv", "scan", "--at", self.at).split()),
                         ["greeting", "user:1"])
        self.assertEqual(self.run_ok("kv", "scan", "--match", "u*", "--at", self.at), "user:1\n")
        self.assertIn(self.raw().call("TTL", "user:1"), (b":100\r\n", b":99\r\n"))
        self.assertEqual(self.run_ok("kv", "del", "greeting", "none", "--at", self.at),
                         "removed 1 of 2\n")
        self.expect_sentence(self.run_cairn("kv", "get", "greeting", "--at", self.at), 1,
                             "there is no key 'greeting'")
        self.assertIn("db0:keys=1", self.run_ok("kv", "stats", "--at", self.at))
        self.assertIn('cairn_kv_commands_total{command="set"} 2',
                      self.run_ok("kv", "stats", "--prometheus", "--at", self.at))

    def test_nobody_there_is_one_sentence(self):
        self.expect_sentence(self.run_cairn("kv", "get", "a", "--at", "127.0.0.1:1"), 1,
                             "no answer from 127.0.0.1:1", "--at")

    def test_mistakes_are_one_sentence(self):
        self.expect_sentence(self.run_cairn("kv", "serve"), 1, "--memory")
        self.expect_usage(["kv", "serve", "--memory", "--resp", "nowhere"], "is no address")
        self.expect_sentence(self.run_cairn("kv", "serve", "--memory", "--resp", "0.0.0.0:0"), 1,
                             "--password-file")
        self.serve()
        self.expect_sentence(self.run_cairn("kv", "serve", "--memory", "--resp", self.at), 1,
                             self.at)

    def test_workloads_on_a_server_and_on_a_drive(self):
        self.serve()
        few = ("--records", "200", "--seconds", "0.2", "--depth", "4")
        drive = f"file:{self.folder / 'drive'},size=64M,direct=off"
        for where in (("--at", self.at), (drive,)):
            report = json.loads(self.run_ok("kv", "bench", *where, *few, "--rate", "500",
                                            "--json"))
            self.assertEqual((report["workload"], report["operations"]), ("a", 100))
            self.assertLessEqual(report["read_p50_us"], report["read_p999_us"])
            table = self.run_ok("kv", "bench", *where, *few, "--keep", "--workload", "D",
                                "--uniform")
            self.assertIn("operations_per_second", table)
        self.expect_sentence(
            self.run_cairn("kv", "bench", "--at", self.at, *few, "--keep", "--records", "5000"), 1,
            "not there")
        self.expect_usage(["kv", "bench", "--workload", "e"], "none of a, b")

    def test_it_ends_in_order_and_answers_what_has_arrived(self):
        server = self.serve()
        client = self.raw()
        self.assertEqual(client.call("SET", "a", "1"), b"+OK\r\n")
        self.assertEqual(server.stop(), 0)
        self.assertEqual(client.rest(), b"")
        self.assertEqual(server.log, "")
        self.assertFalse(self.socket.exists())


class Security(KvTest):
    def test_without_the_password_nothing_is_told(self):
        self.serve("--password-file", self.password())
        stranger = self.raw()
        for args in (("GET", "a"), ("SET", "a", "1"), ("INFO",), ("PING",), ("CONFIG", "GET",
        "*")):
            self.assertEqual(stranger.call(*args), b"-NOAUTH Authentication required.\r\n")
        self.assertIn(b"-NOAUTH HELLO must be called", stranger.call("HELLO", "3"))
        wrong = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
        self.assertEqual(stranger.call("AUTH", "wrong"), wrong)
        self.assertEqual(stranger.call("AUTH", "admin", "open sesame"), wrong)
        self.assertEqual(stranger.call("AUTH", "open sesame"), b"+OK\r\n")
        self.assertEqual(stranger.call("PING"), b"+PONG\r\n")
        self.assertEqual(stranger.call("RESET"), b"+RESET\r\n")
        self.assertEqual(stranger.call("PING"), b"-NOAUTH Authentication required.\r\n")
        self.assertIn(b"proto", self.raw().call("HELLO", "3", "AUTH", "default", "open sesame"))
        large = self.raw()
        large.send(b"*2\r\n$4\r\nPING\r\n$16385\r\n")
        self.assertIn(b"unauthenticated bulk length", large.rest())
        many = self.raw()
        many.send(b"*11\r\n")
        self.assertIn(b"unauthenticated multibulk length", many.rest())

    def test_our_client_shows_the_password(self):
        path = self.password()
        self.serve("--password-file", path)
        self.expect_sentence(self.run_cairn("kv", "put", "a", "1", "--at", self.at), 1, "NOAUTH")
        self.run_ok("kv", "put", "a", "1", "--at", self.at, "--password-file", path)
        self.assertEqual(
            self.run_ok("kv", "get", "a", "--at", self.at, "--password-file", path), "1")
        other = self.write("other", "wrong")
        other.chmod(0o600)
        self.expect_sentence(
            self.run_cairn("kv", "get", "a", "--at", self.at, "--password-file", other), 1,
            "WRONGPASS")

    def test_a_password_that_others_can_read_is_none(self):
        path = self.password()
        path.chmod(0o644)
        result = self.run_cairn("kv", "serve", "--memory", "--password-file", path)
        self.assertIn("chmod 600", result.stderr)
        self.assertEqual(result.returncode, 2)

    def test_through_tls(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout",
        "key",
                        "-out", "cert", "-days", "2", "-subj", "/CN=kv", "-addext",
                        "subjectAltName=IP:127.0.0.1"], cwd=self.folder, check=True,
                       capture_output=True)
        (self.folder / "key").chmod(0o600)
        self.serve("--tls-cert", "cert", "--tls-key", "key")
        self.run_ok("kv", "put", "a", "1", "--at", self.at, "--tls-ca", "cert")
        self.assertEqual(self.run_ok("kv", "get", "a", "--at", self.at, "--tls-ca", "cert"), "1")
        plain = self.run_cairn("kv", "get", "a", "--at", self.at)
        self.assertEqual(plain.returncode, 1)
        if shutil.which("redis-cli"):
            got = subprocess.run(["redis-cli", "-p", str(self.port), "--tls", "--cacert", "cert",
                                  "get", "a"], cwd=self.folder, capture_output=True, check=True)
            self.assertEqual(got.stdout, b"1\n")


class Limits(KvTest):
    def test_what_is_announced_and_not_sent_costs_nothing(self):
        server = self.serve()
        before = self.rss(server)
        waiting = []
        for _ in range(200):
            client = self.raw()
            client.send(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$16777216\r\nx")
            waiting.append(client)
        refused = self.raw()
        refused.send(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$536870912\r\n")
        self.assertEqual(refused.rest(), b"-ERR Protocol error: invalid bulk length\r\n")
        self.assertEqual(self.raw().call("PING"), b"+PONG\r\n")
        self.assertLess(self.rss(server) - before, 64 * MIB)

    def test_who_does_not_read_is_not_read_from(self):
        server = self.serve()
        self.assertEqual(self.raw().call("SET", "big", "x" * MIB), b"+OK\r\n")
        before = self.rss(server)
        slow = socket.socket(socket.AF_UNIX)
        self.addCleanup(slow.close)
        slow.connect(str(self.socket))
        slow.setblocking(False)
        request = resp_support.encode(("GET", "big")) * 1000
        try:
            while True:
                slow.send(request)
        except BlockingIOError:
            pass
        self.assertEqual(self.raw().call("PING"), b"+PONG\r\n")
        self.assertLess(self.rss(server) - before, 256 * MIB)

    def test_all_clients_together_have_so_much(self):
        self.serve()
        quiet = self.raw()
        self.assertEqual(quiet.call("CONFIG", "SET", "maxmemory-clients", "8mb"), b"+OK\r\n")
        greedy = [self.raw() for _ in range(4)]
        head = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$16000000\r\n"
        for client in greedy:
            try:
                client.send(head + b"x" * 6 * MIB)
            except (BrokenPipeError, ConnectionResetError):
                pass
        while b"evicted_clients:0\r\n" in quiet.call("INFO", "stats"):
            pass
        self.assertEqual(quiet.call("PING"), b"+PONG\r\n")

    def test_thousands_of_idle_clients_cost_little(self):
        count = 2000
        server = self.serve(preexec_fn=raise_descriptors)
        raise_descriptors()
        before = self.rss(server)
        idle = [self.raw() for _ in range(count)]
        for client in idle:
            client.send(resp_support.encode(("PING",)))
        for client in idle:
            self.assertEqual(client.reply(), b"+PONG\r\n")
        self.assertLess((self.rss(server) - before) / count, 32 * 1024)
        self.assertIn(f"connected_clients:{count + 1}".encode(), self.raw().call("INFO", "clients"))

    def test_the_maximum_of_clients_is_told(self):
        self.serve("--clients-max", "2")
        first, second = self.raw(), self.raw()
        self.assertEqual(first.call("PING"), b"+PONG\r\n")
        self.assertEqual(second.call("PING"), b"+PONG\r\n")
        self.assertEqual(self.raw().rest(), b"-ERR max number of clients reached\r\n")
        self.assertEqual(first.call("CONFIG", "SET", "maxclients", "3"), b"+OK\r\n")
        self.assertEqual(self.raw().call("PING"), b"+PONG\r\n")

    def test_memory_is_full_at_its_limit(self):
        self.serve("--memory-max", "1M")
        client = self.raw()
        full = False
        for i in range(100):
            reply = client.call("SET", f"key{i}", "x" * 100_000)
            full = full or reply.startswith(b"-OOM command not allowed")
        self.assertTrue(full)
        self.assertEqual(client.call("STRLEN", "key0"), b":100000\r\n")
        self.assertEqual(client.call("DEL", "key0"), b":1\r\n")
        self.assertEqual(client.call("SET", "again", "x" * 1000), b"+OK\r\n")


def raise_descriptors():
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


class Clients(KvTest):
    def test_a_client_is_listed_and_killed(self):
        self.serve()
        me, other = self.raw(), self.raw()
        self.assertEqual(other.call("CLIENT", "SETNAME", "victim"), b"+OK\r\n")
        listed = me.call("CLIENT", "LIST").decode()
        self.assertEqual(listed.count("name=victim"), 1)
        line = next(each for each in listed.splitlines() if "name=victim" in each)
        number = line.split("id=")[1].split()[0]
        self.assertEqual(me.call("CLIENT", "KILL", "ID", number), b":1\r\n")
        self.assertEqual(other.rest(), b"")
        self.assertNotIn("name=victim", me.call("CLIENT", "LIST").decode())
        mine = me.call("CLIENT", "ID")[1:-2].decode()
        self.assertEqual(me.call("CLIENT", "KILL", "ID", mine, "SKIPME", "no"), b":1\r\n")
        self.assertEqual(me.rest(), b"")

    def test_redis_cli_and_benchmark_work_unchanged(self):
        if not shutil.which("redis-benchmark"):
            self.skipTest("no redis-tools here: apt-get install redis-tools")
        self.serve()
        said = subprocess.run(["redis-cli", "-p", str(self.port), "-3"], capture_output=True,
                              input="SET a 1\nINCR a\nCOMMAND DOCS get\nCLIENT INFO\n", text=True,
                              check=True).stdout
        self.assertIn("OK", said)
        self.assertIn("(integer) 2" if "(integer)" in said else "2", said)
        for depth in ("1", "16"):
            done = subprocess.run(["redis-benchmark", "-p", str(self.port), "-t",
            "ping,set,get,incr,mset",
                                   "-n", "2000", "-P",
                                   depth, "--csv"], capture_output=True, text=True,
                                  check=True)
            self.assertEqual(done.stdout.count("\n"), 7, done.stdout)
            self.assertEqual(done.stderr, "")

    @unittest.skipIf(redis is None, "no python3-redis here")
    def test_redis_py_works_unchanged(self):
        self.serve()
        client = redis.Redis(port=self.port, decode_responses=True)
        self.assertTrue(client.ping())
        self.assertTrue(client.set("a", "1", ex=100, nx=True))
        self.assertIsNone(client.set("a", "2", nx=True))
        self.assertEqual(client.incr("a", 5), 6)
        self.assertGreater(client.ttl("a"), 90)
        client.mset({f"key:{i}": i for i in range(500)})
        self.assertEqual(sorted(client.scan_iter("key:*", count=50)),
                         sorted(f"key:{i}" for i in range(500)))
        pipe = client.pipeline(transaction=True)
        pipe.set("x", 1).incr("x").get("x")
        self.assertEqual(pipe.execute(), [True, 2, "2"])
        self.assertEqual(client.info("stats")["total_error_replies"], 0)
        self.assertEqual(client.config_get("maxmemory"), {"maxmemory": "0"})
        self.assertIn("addr", client.client_list()[0])
        self.assertGreater(client.command_count(), 50)
        client.close()

    @unittest.skipIf(redis is None, "no python3-redis here")
    def test_transactions_of_many_clients_lose_no_update(self):
        self.serve()
        clients, times = 8, 50

        def increment():
            client = redis.Redis(port=self.port)
            for _ in range(times):
                client.transaction(
                    lambda pipe: (lambda value: (pipe.multi(), pipe.set("n", value + 1)))(
                        int(pipe.get("n") or 0)), "n")
            client.close()

        threads = [threading.Thread(target=increment) for _ in range(clients)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(self.raw().call("GET", "n"), b"$3\r\n400\r\n")

    def test_what_has_expired_is_gone(self):
        self.serve()
        client = self.raw()
        for i in range(100):
            client.call("SET", f"soon{i}", "x", "PX", "1")
        client.call("SET", "stays", "x")
        give_up = time.monotonic() + support.HANGS_S
        while client.call("DBSIZE") != b":1\r\n" and time.monotonic() < give_up:
            pass
        self.assertEqual(client.call("KEYS", "*"), b"*1\r\n$5\r\nstays\r\n")


class Load:
    """A client that sets keys and counts, until its server is gone, and knows what was answered."""

    def __init__(self, test, name):
        self.test = test
        self.name = name
        self.acknowledged = {}
        self.in_flight = {}  # perhaps done, where nobody was told
        self.count = 0
        self.answers = 0
        self.thread = None

    def start(self, socket_path):
        self.answers = 0
        self.thread = threading.Thread(target=self.run, args=(socket_path,))
        self.thread.start()

    def run(self, socket_path):
        client = resp_support.Raw(self.test, socket_path)
        try:
            while True:
                key = f"{self.name}:{self.answers % 40}"
                value = f"{self.count}:{self.answers}:" + "x" * (self.answers * 37 % 3000)
                self.in_flight = {key: value}
                if client.call("SET", key, value) == b"+OK\r\n":
                    self.acknowledged[key] = value
                self.in_flight = {}
                reply = client.call("INCR", f"{self.name}:count")
                self.count = int(reply[1:-2])
                self.answers += 1
        except (ConnectionError, BrokenPipeError):
            pass

    def verify(self, client):
        """All that was acknowledged is there; what was in flight is there as a whole or not."""
        for key, value in self.acknowledged.items():
            got = client.call("GET", key).split(b"\r\n")[1].decode()
            if got != value:
                self.test.assertEqual(got, self.in_flight.get(key), key)
                self.acknowledged[key] = got
        self.in_flight = {}
        reply = client.call("GET", f"{self.name}:count")
        found = 0 if reply == b"$-1\r\n" else int(reply.split(b"\r\n")[1])
        self.test.assertIn(found, (self.count, self.count + 1))


class OnDrive(KvTest):
    DRIVE = "file:kv,size=128M"

    def test_keys_survive_the_end_of_their_server(self):
        server = self.serve(on=self.DRIVE)
        client = self.raw()
        self.assertEqual(client.call("MSET", "a", "1", "b", "x" * 100_000), b"+OK\r\n")
        self.assertIn(b"keys_are_kept_in:drive\r\ndurability:commit\r\n",
                      client.call("INFO", "persistence"))
        self.assertEqual(server.stop(), 0)
        self.assertEqual(server.log, "")
        self.assertIn("2 keys", self.run_ok("kv", "check", "file:kv"))
        self.serve("--durability", "interval", on="file:kv")
        client = self.raw()
        self.assertEqual(client.call("INCR", "a"), b":2\r\n")
        self.assertEqual(client.call("STRLEN", "b"), b":100000\r\n")
        self.assertEqual(client.call("DBSIZE"), b":2\r\n")
        self.assertIn(b"durability:interval\r\n", client.call("INFO", "persistence"))

    def test_what_was_acknowledged_survives_every_kill(self):
        loads = [Load(self, f"client{i}") for i in range(4)]
        for _ in range(10):
            server = self.serve(on=self.DRIVE)
            client = self.raw()
            for load in loads:
                load.verify(client)
                load.start(self.socket)
            give_up = time.monotonic() + support.HANGS_S
            while min(load.answers for load in loads) < 30 and time.monotonic() < give_up:
                client.call("PING")
            server.kill()
            for load in loads:
                load.thread.join()
                self.assertGreater(load.answers, 0)
        self.assertIn("nothing is damaged", self.run_ok("kv", "check", "file:kv"))
        self.serve(on=self.DRIVE)
        for load in loads:
            load.verify(self.raw())

    def test_a_full_drive_reads_and_erases(self):
        self.serve(on="file:kv,size=16M")
        client = self.raw()
        value = "x" * 50_000
        kept = 0
        while (reply := client.call("SET", f"key{kept}", value)) == b"+OK\r\n":
            kept += 1
        self.assertTrue(reply.startswith(b"-OOM command not allowed"), reply)
        self.assertGreater(kept, 100)
        self.assertEqual(client.call("STRLEN", f"key{kept - 1}"), b":50000\r\n")
        for i in range(kept // 2):
            self.assertEqual(client.call("DEL", f"key{i}"), b":1\r\n")
        for i in range(kept // 4):
            self.assertEqual(client.call("SET", f"again{i}", value), b"+OK\r\n")
        self.assertEqual(client.call("DBSIZE"), b":%d\r\n" % (kept - kept // 2 + kept // 4))

    def test_ends_of_keys_are_kept(self):
        server = self.serve(on=self.DRIVE)
        client = self.raw()
        client.call("SET", "later", "x", "EX", "1000")
        client.call("SET", "soon", "x", "PX", "1")
        self.assertEqual(server.stop(), 0)
        self.serve(on=self.DRIVE)
        client = self.raw()
        self.assertIn(int(client.call("TTL", "later")[1:-2]), range(900, 1001))
        self.assertEqual(client.call("GET", "soon"), b"$-1\r\n")

    def test_a_drive_that_holds_something_else_is_refused(self):
        path = self.write("disk", b"precious " * 4096 * 512)
        before = path.read_bytes()
        self.expect_sentence(self.run_cairn("kv", "serve", "file:disk"), 1, "'file:disk'",
                             "something else", "--format")
        self.expect_sentence(self.run_cairn("kv", "check", "file:disk"), 1,
                             "something else")
        self.assertEqual(path.read_bytes(), before)
        server = self.serve("--format", on="file:disk")
        self.assertEqual(self.raw().call("SET", "a", "1"), b"+OK\r\n")
        self.assertEqual(server.stop(), 0)
        self.serve("--format", on="file:disk")
        self.assertEqual(self.raw().call("GET", "a"), b"$1\r\n1\r\n")

    def test_places_that_are_none_are_one_sentence(self):
        self.expect_sentence(self.run_cairn("kv", "serve", self.DRIVE, "file:b"), 1, "concat(")
        self.expect_sentence(self.run_cairn("kv", "serve", self.DRIVE, "--memory"), 1,
                             "one place")
        self.expect_usage(["kv", "serve", self.DRIVE, "--durability", "often"], "interval")
        self.expect_sentence(self.run_cairn("kv", "serve", "file:tiny,size=64K"), 1, "too small")
        self.expect_sentence(self.run_cairn("kv", "check", self.DRIVE), 1, "'cairn kv serve'")


if __name__ == "__main__":
    support.main()
