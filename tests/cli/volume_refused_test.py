# SPDX-License-Identifier: Apache-2.0
"""What pools and volumes refuse: it is said in one sentence that has the next command, and nothing
was changed. Boxes that say of drives what is not so, pools of others, and a store that another
version wrote."""

import base64
import contextlib
import json
import os
import shutil
import unittest
import urllib.request

import support
from rack_support import ETCD, RackTest
from volume_test import MIB, MISSING, VolumeTest, free_port

# A promise of so much of so small a pool leaves no room for anything else.
SMALL = "20M"


class Refused(VolumeTest):
    def start_small_pool(self):
        """Two boxes of two drives, each of ten extents, one of which has the label."""
        self.ports = {f"box{i}": free_port() for i in range(2)}
        self.boxes = {name: self.start_drives(name, port, SMALL)
                      for name, port in self.ports.items()}
        self.arbiter = self.start_cairn("arbiter", "--meta", "rocks:pool", until="it leads",
                                        env=self.env)
        for name, port in self.ports.items():
            self.run_ok("pool", "add", self.place(name, port), "--box", name)

    def known(self):
        """All that the arbiter says of its pool and volumes."""
        return (self.drives(), self.ask("volume", "list", "--snapshots")["volumes"])

    @contextlib.contextmanager
    def nothing_changes(self):
        before = self.known()
        yield
        self.assertEqual(self.known(), before)


@unittest.skipIf(MISSING, f"not here: {', '.join(MISSING)}")
class Full(Refused):
    def test_a_pool_promises_no_more_than_it_has(self):
        self.start_small_pool()
        self.run_ok("volume", "create", "vol0", "--size", "26M", "--replicas", "2")
        client = self.open_volume()
        data = os.urandom(26 * MIB)
        self.copy_in(data)
        for args in (("volume", "create", "vol1", "--size", "12M", "--replicas", "2"),
                     ("volume", "resize", "vol0", "--size", "60M"),
                     ("volume", "update", "vol0", "--replicas", "3"),
                     ("volume", "snapshot", "vol0", "monday")):
            with self.subTest(args), self.nothing_changes():
                self.refused(args, "add drives to it", "cairn pool add")
        with self.nothing_changes():
            self.refused(("pool", "drain", "0"), "no room", "cairn pool add")
        self.expect_data(data)
        self.assertEqual(client.stop(), 0)

    def test_a_lost_drive_goes_when_another_has_room_for_what_was_promised(self):
        self.ports = {name: free_port() for name in ("box0", "box1")}
        self.boxes = {name: self.start_drives(name, port, SMALL, 1)
                      for name, port in self.ports.items()}
        self.start_cairn("arbiter", "--meta", "rocks:pool", until="it leads", env=self.env)
        for name, port in self.ports.items():
            self.run_ok("pool", "add", self.place(name, port), "--box", name)
        self.run_ok("volume", "create", "vol0", "--size", "30M", "--policy", "pack")
        self.boxes["box1"].kill()
        for args in (("pool", "drain", "1"), ("pool", "remove", "1", "--lost", "--yes")):
            with self.subTest(args), self.nothing_changes():
                self.refused(args, "no room", "cairn pool add")
        port = free_port()
        self.start_drives("box2", port, SMALL, 1)
        self.run_ok("pool", "add", self.place("box2", port), "--box", "box2")
        self.run_ok("pool", "remove", "1", "--lost", "--yes")
        client = self.open_volume()
        data = os.urandom(30 * MIB)
        self.copy_in(data)
        self.expect_data(data)
        self.assertEqual(client.stop(), 0)


class Unknown(Refused):
    def test_each_command_says_where_volumes_are_named(self):
        self.start_small_pool()
        self.run_ok("volume", "create", "vol0", "--size", "8M")
        for args in (("show", "none"), ("destroy", "none", "--yes"),
                     ("resize", "none", "--size", "8M", "--yes"),
                     ("update", "none", "--replicas", "2"), ("snapshot", "none", "monday"),
                     ("clone", "none@monday", "vol1"), ("clone", "vol0@monday", "vol1"),
                     ("destroy", "vol0@monday", "--yes")):
            with self.subTest(args), self.nothing_changes():
                self.refused(("volume", *args), "no such volume", "cairn volume list")
        with self.nothing_changes():
            self.refused(("volume", "create", "vol0", "--size", "8M"), "volume of that name",
                         "cairn volume list")


@unittest.skipIf(MISSING, f"not here: {', '.join(MISSING)}")
class Boxes(Refused):
    """What a box says of its drives is not believed."""

    def setUp(self):
        super().setUp()
        self.start_pool(boxes=3)
        self.run_ok("volume", "create", "vol0", "--size", "24M", "--replicas", "3")
        self.client = self.open_volume()
        self.data = os.urandom(24 * MIB)
        self.copy_in(self.data)

    def restart_box(self, name, size="64M"):
        self.boxes[name].kill()
        self.boxes[name] = self.start_drives(name, self.ports[name], size)

    def legs_on(self, name):
        return sum(each["extents"] for each in self.drives() if each["box"] == name)

    def is_whole(self):
        return self.volume()["lacking"] == 0

    def expect_good(self):
        self.expect_data(self.data)
        self.assertEqual(self.run_ok("drive", "tell", "v", "0", "scrub", "--control",
                                     f"{self.folder}/client.sock").strip(),
                         "0 extents had legs that differed, and were mended")
        self.assertEqual(self.client.stop(), 0)

    def test_a_drive_that_has_become_smaller_is_left(self):
        self.boxes["box0"].kill()
        for i in range(2):
            os.truncate(self.folder / f"box0-{i}", 8 * MIB)
        self.boxes["box0"] = self.start_drives("box0", self.ports["box0"], "8M")
        self.data = self.data[::-1]  # what is written finds out
        self.copy_in(self.data)
        self.wait_for(lambda: self.legs_on("box0") == 0)
        self.wait_for(self.is_whole)
        self.expect_good()

    def test_drives_that_have_changed_places_are_not_taken_for_each_other(self):
        self.boxes["box0"].kill()
        one, other = (self.folder / f"box0-{i}" for i in range(2))
        one.rename(self.folder / "held")
        other.rename(one)
        (self.folder / "held").rename(other)
        self.boxes["box0"] = self.start_drives("box0", self.ports["box0"])
        self.wait_for(lambda: self.legs_on("box0") == 0)
        self.wait_for(self.is_whole)
        self.expect_good()

    def test_one_drive_is_not_two(self):
        place = self.place("box0", self.ports["box0"])
        for uri in (place, f"{place}?nsid=2"):
            with self.subTest(uri), self.nothing_changes():
                self.refused(("pool", "add", uri, "--format"), "was not added",
                             "member of a pool", "cairn pool list")
        self.expect_good()


class Others(Refused):
    def test_drives_of_a_pool_of_somebody_else_are_refused(self):
        self.start_small_pool()
        self.run_ok("volume", "create", "vol0", "--size", "8M", "--replicas", "2")
        client = self.open_volume()
        data = os.urandom(8 * MIB)
        self.copy_in(data)
        self.start_cairn("arbiter", "--meta", "rocks:other", "--listen", self.at("other"),
                         until="it leads", env=self.env)
        with self.nothing_changes():
            for more in ((), ("--format",)):
                self.refused(("pool", "add", self.place("box0", self.ports["box0"]), "--arbiter",
                              self.at("other"), *more),
                             "was not added", "member of a pool", "cairn pool remove")
        self.assertEqual(self.drives("--arbiter", self.at("other")), [])
        self.expect_data(data)
        self.copy_in(data[::-1])
        self.expect_data(data[::-1])
        self.assertEqual(client.stop(), 0)


@unittest.skipIf(shutil.which(ETCD) is None, "not here: etcd")
class AnotherVersion(RackTest, Refused):
    """A store whose records a newer version wrote is not led, nor changed."""

    def call(self, what, body):
        at = self.meta.replace("etcd://", "http://")
        request = urllib.request.Request(f"{at}/v3/kv/{what}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def records(self):
        """All of the pool's, but who leads."""
        def coded(text):
            return base64.b64encode(text).decode()
        found = self.call("range", {"key": coded(b"flint/"), "range_end": coded(b"flint0")})
        held = {base64.b64decode(each["key"]): base64.b64decode(each["value"])
                for each in found["kvs"]}
        return {key: value for key, value in held.items()
                if key not in (b"flint/leader", b"flint/writer")}

    def put(self, key, value):
        self.call("put", {"key": base64.b64encode(key).decode(),
                          "value": base64.b64encode(value).decode()})

    def test_an_arbiter_does_not_lead_it(self):
        self.meta = self.start_etcd()
        port = free_port()
        self.start_drives("box0", port)
        first = self.start_arbiter("a", self.meta, "it leads")
        to_arbiter = ("--arbiter", self.at("a"))
        self.run_ok("pool", "add", self.place("box0", port), *to_arbiter)
        self.run_ok("volume", "create", "vol0", "--size", "8M", *to_arbiter)
        self.assertEqual(first.stop(), 0)
        for key in (b"flint/pool", b"flint/volume/vol0"):
            with self.subTest(key):
                ours = self.records()[key]
                self.put(key, ours[:1] + b"\x09" + ours[2:])
                theirs = self.records()
                arbiter = self.start_arbiter("a", self.meta, "stands by")
                self.wait_for(lambda it=arbiter: "a newer cairn wrote this pool" in it.log)
                self.refused(("volume", "list", "--timeout", "1", *to_arbiter),
                             "cairn arbiter status")
                self.assertEqual(arbiter.stop(), 0)
                self.assertEqual(self.records(), theirs)
                self.put(key, ours)
        self.start_arbiter("a", self.meta, "it leads")
        self.assertEqual([each["name"] for each in
                          self.ask("volume", "list", *to_arbiter)["volumes"]], ["vol0"])


if __name__ == "__main__":
    support.main()
