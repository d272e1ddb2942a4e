# SPDX-License-Identifier: Apache-2.0
"""The door for clients of Redis beside Redis itself: the same requests, byte for byte the same
replies, in both versions of the protocol."""

import random

import resp_support
import support

# Each group begins with an empty keyspace. Words are split at spaces unless they are given apart.
GROUPS = {
    "strings": [
        "GET a", "SET a 1", "GET a", "set a 2", "GeT a", "SET a b c", "SET a 1 EX", "SET a 1 EX x",
        "SET a 1 EX 0", "SET a 1 EX -1", "SET a 1 PX 0", "SET a 1 EXAT 0", "SET a 1 PXAT -5",
        "SET a 1 EX 9223372036854775807", "SET a 1 EX 10000000000000000", "SET a 1 NX", "GET a",
        "SET n 1 NX", "SET n 2 XX", "GET n", "SET m 1 XX", "GET m", "SET a 1 NX XX",
        "SET a 1 XX NX",
        "SET a 5 GET", "SET none 5 GET", "SET a 6 NX GET", "SET fresh 6 NX GET", "SET a 7 XX GET",
        "SET gone 7 XX GET", "SET a 1 EX 10 PX 10", "SET a 1 EX 10 KEEPTTL",
        "SET a 1 KEEPTTL EX 10",
        "SET a 9 EX 100", "TTL a", "SET a 10 KEEPTTL", "TTL a", "SET a 11", "TTL a", "SET a", "SET",
        "GET", "GET a b", "SET a 1 FOO", "SET a 1 GET GET", "SET a 1 KEEPTTL KEEPTTL",
        "SET a v PXAT 1", "GET a", "EXISTS a", "SET a v EXAT 9000000000", "EXPIRETIME a",
        "SETNX x 1", "SETNX x 2", "GET x", "SETEX x 10 v", "TTL x", "SETEX x 0 v", "SETEX x -1 v",
        "SETEX x y v", "PSETEX x 10000 v", "PSETEX x 0 v", "SETEX x 9223372036854775807 v",
        "GETSET x new", "GETSET nox new", "TTL x", "GETDEL x", "GETDEL x", "GETDEL",
        "SET g 1 EX 100",
        "GETEX g", "TTL g", "GETEX g PERSIST", "TTL g", "GETEX g EX 100", "TTL g", "GETEX g EX 0",
        "GETEX g PX x", "GETEX g EX", "GETEX g FOO", "GETEX g PERSIST EX 1", "GETEX g EX 1 PX 1",
        "GETEX none EX 10", "GETEX none EX x", "GETEX g EXAT 9000000000", "EXPIRETIME g",
        "GETEX g PXAT 1", "GET g", "MSET a 1 b 2", "MSET a", "MSET a 1 b", "MGET a b c", "MGET",
        "MSETNX c 1 d 2", "MSETNX d 1 e 2", "MSETNX e 1 e 2", "GET e", "MSETNX x", "MSET a 1 a 2",
        "GET a", "MGET a a", ("SET", "", "empty key is not compared"),
    ],
    "numbers": [
        "INCR n", "INCR n", "DECR n", "INCRBY n 10", "DECRBY n 3", "INCRBY n x", "INCRBY n 1.5",
        "DECRBY n -9223372036854775808", "SET n 9223372036854775807", "INCR n", "GET n",
        "SET n -9223372036854775808", "DECR n", "INCRBY n -1", "SET n abc", "INCR n",
        ("SET", "n", " 11"), "INCR n", ("SET", "n", "11 "), "INCR n", "SET n 011", "INCR n",
        "SET n +11", "INCR n", "SET n -0", "INCR n", "SET n 1 EX 100", "INCR n", "TTL n",
        "INCRBYFLOAT f 1.5", "INCRBYFLOAT f 1.5", "INCRBYFLOAT f -3", "INCRBYFLOAT f 1e3",
        "INCRBYFLOAT f x", "INCRBYFLOAT f nan", "INCRBYFLOAT f inf", "INCRBYFLOAT f 1e400",
        "SET f 3.0e3", "INCRBYFLOAT f 200", "SET f 10.50", "INCRBYFLOAT f 0.1",
        "INCRBYFLOAT f -5", ("SET", "f", " 1"), "INCRBYFLOAT f 1", "SET f abc", "INCRBYFLOAT f 1",
        "SET f 17179869184", "INCRBYFLOAT f 1.5", "SET f 0", "INCRBYFLOAT f 0.00000000000000001",
        "INCRBYFLOAT f -0", ("SET", "f", ""), "INCRBYFLOAT f 1", "INCR f", "INCR", "INCRBY n",
        "SET n 20 ", "STRLEN n",
    ],
    "ranges": [
        "APPEND a hello", "APPEND a world", "GET a", "STRLEN a", "STRLEN none", "GETRANGE a 0 3",
        "GETRANGE a 0 -1", "GETRANGE a -4 -1", "GETRANGE a 5 3", "GETRANGE a 5 5000",
        "GETRANGE a -5000 10000", "GETRANGE a -1 -5", "GETRANGE none 0 -1", "GETRANGE a x 1",
        "GETRANGE a 1 x", "GETRANGE a 0 4294967297", "GETRANGE a 0 9223372036854775807",
        "GETRANGE a -9223372036854775808 -1", "SUBSTR a 1 2", "SETRANGE a 0 J", "SETRANGE a 2 xyz",
        "GET a", "SETRANGE a -1 x", "SETRANGE a x x", ("SETRANGE", "a", "0", ""),
        ("SETRANGE", "none", "0", ""), "EXISTS none", "SETRANGE pad 5 x", "GET pad",
        "SETRANGE a 536870912 x", "SETRANGE a 9223372036854775807 x", "GETBIT a 1",
        "GETBIT a 100000",
        "GETBIT none 0", "SETBIT b 7 1", "GET b", "SETBIT b 7 0", "SETBIT b 30 1", "STRLEN b",
        "SETBIT b x 1", "SETBIT b -1 1", "SETBIT b 1 2", "SETBIT b 1 x", "SETBIT b 4294967296 1",
        "GETBIT b x", "GETBIT b -1", "APPEND a", "STRLEN", ("APPEND", "bin", b"\x00\xff\r\n"),
        "GET bin", ("APPEND", "none2", ""), "EXISTS none2",
    ],
    "keys": [
        "EXISTS a", "SET a 1", "EXISTS a a b", "DEL a a", "DEL a", "DEL", "UNLINK a", "SET a 1",
        "SET b 2", "UNLINK a b c", "TYPE a", "SET a 1", "TYPE a", "TYPE", "TOUCH a b", "RENAME a b",
        "GET b", "GET a", "RENAME a b", "RENAME b b", "RENAMENX b b", "SET a 5", "RENAMENX a b",
        "RENAMENX a c", "GET c", "RENAMENX none x", "SET t 1 EX 100", "RENAME t u", "TTL u",
        "COPY u v", "TTL v", "COPY u v", "COPY u v REPLACE", "COPY u u", "COPY none u",
        "COPY u w FOO",
        "COPY u w DB x", "COPY u w DB", "OBJECT ENCODING none", "SET a 12", "OBJECT ENCODING a",
        "SET a abc",
        "OBJECT ENCODING a", ("SET", "a", "x" * 44), "OBJECT ENCODING a", ("SET", "a", "x" * 45),
        "OBJECT ENCODING a", "SET a 9223372036854775807", "OBJECT ENCODING a",
        "SET a 9223372036854775808", "OBJECT ENCODING a", "OBJECT REFCOUNT a",
        "OBJECT REFCOUNT none",
        "OBJECT FREQ a", "OBJECT FREQ none", "OBJECT", "OBJECT FOO a", "OBJECT ENCODING",
        "OBJECT ENCODING a b", "MEMORY USAGE none", "MEMORY USAGE", "MEMORY USAGE a FOO",
        "MEMORY USAGE a SAMPLES x", "MEMORY FOO", "DBSIZE", "DBSIZE x", "FLUSHALL FOO",
        "FLUSHDB FOO BAR",
        "FLUSHALL", "DBSIZE", "SET a 1", "FLUSHDB", "DBSIZE", "FLUSHALL ASYNC", "FLUSHALL SYNC",
        "RANDOMKEY", "SET only 1", "RANDOMKEY", "KEYS *", "KEYS o*", "KEYS x*", "KEYS", "KEYS a b",
        "SCAN 0", "SCAN 0 MATCH x*", "SCAN 0 COUNT 0", "SCAN 0 COUNT x", "SCAN 0 COUNT",
        "SCAN 0 FOO 1", "SCAN x", "SCAN -1", "SCAN 0 TYPE string", "SCAN 0 TYPE hash",
        "SCAN 0 MATCH o* COUNT 100 TYPE string", "SCAN",
    ],
    "patterns": [
        "MSET hello 1 hallo 2 hxllo 3 hllo 4 heello 5 a[b] 6 key:1 7", "KEYS h?llo2", "KEYS hllo",
        "KEYS h[^aex]*", "KEYS h[x-z]llo", "KEYS h[z-x]llo", "KEYS a\\[b\\]", "KEYS a[[]b]",
        "KEYS key:[0-9]", "KEYS key:[", "KEYS [", "KEYS \\", "KEYS *[", "KEYS ?ey:*", "KEYS *:1",
        "KEYS **1", "KEYS key:[^1]", "KEYS HELLO",
    ],
    "expiry": [
        "EXPIRE a 10", "SET a 1", "TTL a", "PTTL a", "EXPIRE a 100", "TTL a", "EXPIRE a x",
        "EXPIRE a",
        "EXPIRE a 10 FOO", "EXPIRE a 10 NX", "EXPIRE a 10 XX", "TTL a", "EXPIRE a 5 GT",
        "EXPIRE a 200 GT",
        "TTL a", "EXPIRE a 300 LT", "EXPIRE a 50 LT", "TTL a", "EXPIRE a 10 NX XX",
        "EXPIRE a 10 NX GT",
        "EXPIRE a 10 GT LT", "EXPIRE a 100 XX GT", "TTL a", "PERSIST a", "PERSIST a",
        "PERSIST none",
        "TTL a", "EXPIRE a 100 GT", "EXPIRE a 100 LT", "TTL a", "EXPIRE a -1", "EXISTS a", "TTL a",
        "PTTL none", "EXPIRETIME none", "PEXPIRETIME none", "SET b 1", "EXPIRETIME b",
        "EXPIREAT b 9000000000",
        "EXPIRETIME b", "PEXPIREAT b 190000000009", "PEXPIRETIME b", "EXPIRETIME b",
        "PEXPIREAT b 1", "GET b",
        "SET c 1", "EXPIRE c 9223372036854775807", "PEXPIRE c 9223372036854775807",
        "EXPIRE c -9223372036854775808", "EXPIREAT c 9223372036854775807",
        "PEXPIRE c -9223372036854775808",
        "EXPIRE c 9223372036854775", "TTL none", "EXISTS c", "SET d 1", "EXPIRE d 0", "EXISTS d",
        "TTL",
        "SET e 1 EX 100", "APPEND e 2", "TTL e", "SETRANGE e 0 x", "TTL e", "GETSET e 1", "TTL e",
        ("EXPIRE", "e", ""), "EXPIRE e 1.5", "EXPIRE e 100 nx", "EXPIRE e 5 lt gt",
    ],
    "transactions": [
        "EXEC", "DISCARD", "MULTI", "MULTI", "SET a 1", "GET a", "INCR a", "EXEC", "GET a", "MULTI",
        "SET a", "EXEC", "MULTI", "FOO", "GET a", "EXEC", "MULTI", "SET a 5", "DISCARD", "GET a",
        "MULTI",
        "EXEC", "MULTI", "WATCH a", "SET a 9", "EXEC", "WATCH", "WATCH a b", "SET b 1", "MULTI",
        "SET c 1",
        "EXEC", "GET c", "WATCH a", "MULTI", "SET c 1", "EXEC", "GET c", "WATCH a", "SET a 2",
        "UNWATCH",
        "MULTI", "PING", "EXEC", "WATCH a", "SET a 3", "DISCARD", "MULTI", "PING", "EXEC",
        "MULTI", "INCR c",
        "APPEND c x", "INCR c", "GET c", "EXEC", "GET c", "WATCH none", "MULTI", "PING", "EXEC",
        "WATCH none",
        "SET none 1", "MULTI", "PING", "EXEC", "WATCH none", "DEL none", "MULTI", "PING", "EXEC",
        "WATCH a",
        "EXPIRE a 100", "MULTI", "PING", "EXEC", "MULTI", "MSET x 1 y 2", "DEL x", "EXISTS x y",
        "RENAME y x",
        "MGET x y", "SET x 5 GET", "GETDEL x", "DBSIZE", "KEYS x", "FLUSHALL", "DBSIZE", "EXEC",
        "MULTI", "UNWATCH",
        "ECHO hi", "SELECT 0", "EXEC", "WATCH a", "FLUSHALL", "MULTI", "PING", "EXEC", "SET a 1",
        "WATCH a",
        "FLUSHALL", "MULTI", "PING", "EXEC", "EXEC x", "MULTI x", "WATCH a", "MULTI", "UNWATCH",
        "EXEC", "MULTI",
        "RESET", "EXEC",
    ],
    "connection": [
        "PING", "PING hi", "PING a b", "ECHO", "ECHO hi", "ECHO a b", "SELECT 0", "SELECT x",
        "SELECT 99",
        "AUTH x", "AUTH default x", "AUTH other x", "AUTH", "AUTH a b c d", "CLIENT", "CLIENT FOO",
        "CLIENT GETNAME", "CLIENT SETNAME me", "CLIENT GETNAME", ("CLIENT", "SETNAME", "a b"),
        ("CLIENT", "SETNAME", ""), "CLIENT GETNAME", "CLIENT SETNAME", "CLIENT KILL",
        "CLIENT KILL 1.2.3.4:5",
        "CLIENT KILL ID x", "CLIENT KILL ID 99999", "CLIENT KILL ID 0", "CLIENT KILL TYPE foo",
        "CLIENT KILL ADDR 1.2.3.4:5", "CLIENT KILL SKIPME maybe", "CLIENT KILL TYPE pubsub",
        "CLIENT KILL USER nobody", "CLIENT LIST FOO", "CLIENT LIST TYPE foo", "CLIENT LIST ID x",
        "CLIENT LIST ID 99999", "CLIENT LIST TYPE replica", "CLIENT NO-EVICT on",
        "CLIENT NO-EVICT off",
        "CLIENT NO-EVICT x", "CLIENT UNBLOCK 9999", "CLIENT UNBLOCK x", "CLIENT GETREDIR",
        "CLIENT REPLY on",
        "CLIENT REPLY x", "HELLO x", "HELLO 1", "HELLO 4", "HELLO 3 FOO", "HELLO 3 AUTH a",
        "HELLO 2 AUTH a b",
        ("HELLO", "2", "SETNAME", "a b"), "FOO", "FOO a b c", ("FOO", "x" * 200, "b"),
        ("x" * 200,), "foo bar",
        ("FOO", b"a\r\nb"), "WAIT 0 0", "WAIT x 0", "WAIT 0 x", "WAIT 0 -1", "ACL WHOAMI",
        "ACL USERS",
        "ACL FOO", "CLIENT REPLY SKIP", "PING", "PING again", "RESET", "CLIENT GETNAME", "ROLE x",
        "TIME x",
        "LOLWUT2", "GETX", "COMMAND COUNT x", "COMMAND FOO", "COMMAND GETKEYS GET a",
        "COMMAND GETKEYS MSET a 1 b 2", "COMMAND GETKEYS PING", "COMMAND GETKEYS FOO",
        "COMMAND GETKEYS SET a",
        "COMMAND GETKEYS", "COMMAND DOCS nosuch", "COMMAND INFO nosuch",
        "COMMAND LIST FILTERBY FOO x",
        "CONFIG GET nosuch", "CONFIG GET", "CONFIG SET nosuch 1", "CONFIG SET timeout x",
        "CONFIG SET timeout",
        "CONFIG SET timeout 0 timeout 0", "CONFIG SET timeout -1", "CONFIG SET maxclients 0",
        "CONFIG SET hz 10 nosuch 1", "CONFIG SET databases 5", "CONFIG SET appendonly maybe",
        "CONFIG FOO",
        "CONFIG REWRITE", "CONFIG RESETSTAT", "CONFIG RESETSTAT x",
        "CONFIG SET maxmemory-clients x",
        "CONFIG GET timeout", "CONFIG GET TIMEOUT", "DEBUG SET-ACTIVE-EXPIRE 1", "DEBUG SLEEP 0",
        "FUNCTION FLUSH", "FUNCTION FOO", "INFO nosuch",
    ],
    "types": [
        ("DEBUG", "PROTOCOL", kind) for kind in
        ("string", "integer", "double", "null", "array", "set", "map", "verbatim", "bignum",
        "true", "false")
    ],
}

# What Redis says otherwise, and why that is so here: docs/kv.md.
DIFFERENT = {
    ("SET", "", "empty key is not compared"),
    ("SETBIT", "b", "4294967296", "1"),
    ("SCAN", "-1"),
}


def args_of(request):
    return tuple(request.split()) if isinstance(request, str) else request


class SideBySide(support.CliTest):
    KEPT = "--memory"

    def setUp(self):
        super().setUp()
        redis = resp_support.start_redis(self)
        path = self.folder / "cairn.sock"
        self.start_cairn("kv", "serve", self.KEPT, "--resp", f"unix:{path}", until="Ctrl-C")
        self.paths = (redis, path)

    def both(self):
        return [resp_support.Raw(self, path) for path in self.paths]

    def compare(self, redis, cairn, args):
        expected = redis.call(*args)
        got = cairn.call(*args)
        if args in DIFFERENT:
            return
        if args[:1] == ("KEYS",) or args == ("COMMAND", "GETKEYS"):
            expected, got = sorted(expected.split(b"\r\n")), sorted(got.split(b"\r\n"))
        self.assertEqual(got, expected, args)

    def test_replies_are_those_of_redis(self):
        for protocol in (2, 3):
            for group, requests in GROUPS.items():
                redis, cairn = self.both()
                for each in (redis, cairn):
                    each.call("HELLO", protocol)
                    each.call("FLUSHALL")
                for request in requests:
                    args = args_of(request)
                    with self.subTest(protocol=protocol, group=group, request=request):
                        if args == ("CLIENT", "REPLY", "SKIP"):
                            redis.send(resp_support.encode(args))
                            cairn.send(resp_support.encode(args))
                            args = ("PING", "skipped")
                            redis.send(resp_support.encode(args))
                            cairn.send(resp_support.encode(args))
                            continue
                        self.compare(redis, cairn, args)

    def test_bytes_that_are_no_requests_are_answered_as_redis_does(self):
        for data in (b"*x\r\n", b"*1\r\nfoo\r\n", b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n",
                     b"*1\r\n$x\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$2000000000\r\n",
                     b"*3000000000\r\n",
                     b"GET 'a\r\n", b"GET \"a\"b\r\n", b"\r\n\r\nPING\r\nQUIT\r\n",
                     b"*0\r\n*-1\r\nPING\r\nQUIT\r\n",
                     b"SET \"a b\" 'c\\'d'\r\nGET \"a b\"\r\nQUIT\r\n",
                     b"ECHO \"\\x41\\n\\q\"\r\nQUIT\r\n",
                     b"PING\nQUIT\n", b"ping a b c\r\nQUIT\r\n", b"*1\r\n\r\n",
                     b"QUIT extra\r\nPING\r\n",
                     b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n"):
            with self.subTest(data=data):
                replies = []
                for each in self.both():
                    each.send(data)
                    each.finish()
                    replies.append(each.rest())
                self.assertEqual(replies[1], replies[0])

    def test_any_commands_in_a_row_leave_both_the_same(self):
        rng = random.Random(1)
        keys = ["a", "b", "c"]

        def draw():
            key, other = rng.choice(keys), rng.choice(keys)
            number = rng.choice([0, 1, -1, 5, 17, 100, -3])
            value = rng.choice(["", "1", "10", "-7", "hello", "3.5", "x" * 50])
            return rng.choice([
                ("SET", key, value), ("SET", key, value, "NX"), ("SET", key, value, "XX", "GET"),
                ("SET", key, value, "EX", 1000), ("SET", key, value, "KEEPTTL"), ("GET", key),
                ("GETDEL", key), ("GETSET", key, value), ("APPEND", key, value), ("STRLEN", key),
                ("INCR", key), ("DECRBY", key, number), ("INCRBYFLOAT", key, number / 4),
                ("GETRANGE", key, number, rng.choice([0, 3, -1, -2, 40])),
                ("SETRANGE", key, abs(number), value), ("DEL", key, other), ("EXISTS", key, other),
                ("RENAME", key, other), ("RENAMENX", key, other), ("COPY", key, other, "REPLACE"),
                ("MSET", key, value, other, "z"), ("MSETNX", key, value, other, "z"), ("MGET",
                *keys),
                ("EXPIRE", key, rng.choice([1000, -1])), ("PERSIST", key), ("TTL", key),
                ("SETBIT", key, abs(number), rng.choice([0, 1])), ("GETBIT", key, abs(number)),
                ("MULTI",), ("EXEC",), ("DISCARD",), ("WATCH", key), ("UNWATCH",), ("DBSIZE",),
                ("GETEX", key, "PERSIST"), ("TYPE", key)])

        for _ in range(5):
            redis, cairn = self.both()
            for each in (redis, cairn):
                each.call("FLUSHALL")
            for _ in range(3000):
                self.compare(redis, cairn, draw())


class SideBySideOnADrive(SideBySide):
    KEPT = "file:kv,size=128M"


if __name__ == "__main__":
    support.main()
