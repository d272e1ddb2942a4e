#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives of a rack's spare space: boxes that offer it, `cairn drive create` that finds and takes
it, and `cairn drive release` that gives it back; with the embedded store and with etcd."""

import pathlib
import re
import shutil
import signal
import unittest

import support
from rack_support import ETCD, MIB, RackTest

TOOLS = ("nbdinfo", "nbdcopy", "fio")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]


class Space(RackTest):
    def make_and_release(self, meta):
        boxes = self.start_boxes(meta, "a", "b", "c")
        self.assertEqual(self.offers(meta), dict.fromkeys("abc", 64 * MIB))
        mirror = self.create("safe", meta, "--raid", "1", "--size", "16M")
        stripe = self.create("fast", meta, "--raid", "0", "--size", "32M", "--iops", "2000")
        self.assertEqual(mirror["size"], 16 * MIB)
        self.assertEqual({leg["size"] for leg in stripe["legs"]}, {16 * MIB})
        self.assertEqual({leg["iops"] for leg in stripe["legs"]}, {1000})
        for drive in (mirror, stripe):
            self.assertEqual(len({leg["box"] for leg in drive["legs"]}), 2)
        taken = dict.fromkeys("abc", 0)
        for leg in mirror["legs"] + stripe["legs"]:
            taken[leg["box"]] += leg["size"]
        self.wait_for(lambda: self.offers(meta) == {box: 64 * MIB - taken[box] for box in "abc"})
        self.assertEqual([each["name"] for each in self.drives(meta)], ["fast", "safe"])
        stack = self.run_ok("rack", "stack", "safe", "--rack", meta)
        self.assertEqual(stack, f"safe={mirror['stack']}\n")
        self.expect_sentence(
            self.run_cairn("drive", "create", "safe", "--rack", meta, "--raid", "1", "--size",
                           "1M"), 1, "there is a drive safe already")
        for name in ("safe", "fast"):
            self.assertEqual(self.run_ok("drive", "release", name, "--rack", meta, "--yes"),
                             f"drive {name} is released\n")
        self.wait_for(lambda: self.offers(meta) == dict.fromkeys("abc", 64 * MIB))
        self.assertEqual(self.drives(meta), [])
        for name in "abc":
            self.assertEqual(self.shelf_files(name), [])
        for box in boxes.values():
            self.assertEqual(box.stop(), 0)
        self.assertEqual(self.offers(meta), {}, "a box that ends takes its offer away")

    def test_with_the_embedded_store(self):
        self.make_and_release(self.serve_metadata())

    @unittest.skipIf(not pathlib.Path(ETCD).exists(), "etcd is not installed")
    def test_with_etcd(self):
        self.make_and_release(self.start_etcd())

    def test_a_box_that_died_is_passed_over_and_its_space_is_there_when_it_returns(self):
        meta = self.serve_metadata()
        boxes = self.start_boxes(meta, "a", "b", "c")
        self.create("d", meta, "--raid", "1", "--size", "8M", "--legs", "3")
        boxes["a"].kill()
        self.wait_for(lambda: set(self.offers(meta)) == {"b", "c"})
        made = self.create("e", meta, "--raid", "1", "--size", "8M")
        self.assertEqual({leg["box"] for leg in made["legs"]}, {"b", "c"})
        self.expect_sentence(
            self.run_cairn("drive", "create", "f", "--rack", meta, "--raid", "1", "--size", "8M",
                           "--legs", "3"), 1, "2 of 2 shelves", "each of 3 legs")
        args = ("drive", "release", "d", "--rack", meta)
        self.expect_sentence(self.run_cairn(*args), 1, "drive d (8 MiB, RAID 1, in ",
                             "everything in it is lost: add --yes")
        self.expect_sentence(self.run_cairn(*args, "--yes"), 1, "its only current copy",
                             "add --force")
        self.assertFalse([each for each in self.drives(meta) if each["name"] == "d"][0]["leaving"])
        self.expect_sentence(self.run_cairn(*args, "--yes", "--force"), 1,
                             "1 of 3 legs are not given back yet (a/d0", "again")
        self.assertTrue([each for each in self.drives(meta) if each["name"] == "d"][0]["leaving"])
        self.start_box_in_rack("a", meta, port=boxes["a"].port)
        self.assertEqual(len(self.shelf_files("a")), 1, "a contract outlives its box's process")
        self.wait_for(lambda: "a" in self.offers(meta))
        self.assertEqual(self.offers(meta)["a"], 55 * MIB)
        self.run_ok("drive", "release", "d", "--rack", meta, "--yes")
        self.wait_for(lambda: self.offers(meta)["a"] == 64 * MIB)
        self.assertEqual(self.shelf_files("a"), [])

    def test_a_box_shows_whom_it_gave_space_to_and_keeps_it(self):
        meta = self.serve_metadata()
        self.start_boxes(meta, "a")
        self.create("d", meta, "--raid", "0", "--legs", "1", "--size", "8M", "--iops", "500")
        control = ("--control", f"{self.folder}/a.sock")
        space = self.ask("drive", "list", *control)["drives"][0]
        self.assertEqual(space["contract"]["drive"], "d")
        self.assertEqual(space["contract"]["shelf"], "d0")
        self.assertRegex(space["stack"], r"^limit\(file:\S+,size=8388608,block=4096, iops=500\)$")
        self.assertIn("(given to drive d of nqn.", self.run_ok("drive", "list", *control))
        self.refused(["drive", "remove", "d0", *control], "'cairn drive release d'")
        self.refused(["drive", "resize", "d0", "16M", *control], "by contract")
        self.wait_for(
            lambda: self.ask("drive", "list", *control)["drives"][0]["contract"]["confirmed"])
        self.run_ok("drive", "release", "d", "--rack", meta, "--yes")
        self.assertEqual(self.ask("drive", "list", *control)["drives"], [])

    def test_space_is_offered_when_nothing_is_left_of_what_was_in_it(self):
        meta = self.serve_metadata()
        box = self.start_boxes(meta, "a")["a"]
        self.create("d", meta, "--raid", "0", "--legs", "1", "--size", "8M")
        (name,) = self.shelf_files("a")
        box.kill()
        # As if the power had gone when the contract had ended and its file was not removed yet.
        self.write(f"a.shelf/{name}", b"x" * MIB)
        state = self.folder / "a.state" / "changes.toml"
        kept = state.read_text().split("\n", 1)[1]
        space, contract = re.search(
            r"(?s)(\[\[subsystem\.namespace\]\].*?)(\[\[subsystem\.contract\]\].*?)\n\[end\]",
            kept).groups()
        kept = kept.replace(space, "")
        state.write_text(kept.replace("[[subsystem.contract]]", "[[subsystem.ended]]"))
        self.assertIn("drive = \"d\"", contract)
        # And a file that nobody knows.
        stray = self.write("a.shelf/00000000-0000-4000-8000-000000000001", b"x" * MIB)
        box = self.start_box_in_rack("a", meta, port=box.port)
        self.wait_for(lambda: self.offers(meta).get("a") == 63 * MIB)
        self.assertEqual(self.shelf_files("a"), [stray.name])
        self.assertIn(f"{stray} belongs to no contract", box.log)
        self.assertNotIn("ended", state.read_text())

    def test_only_whom_a_shelf_is_for_gets_space(self):
        meta = self.serve_metadata()
        host = "nqn.2026-11.io.cairn:friend"
        self.start_boxes(meta, "a", more=f'hosts = ["{host}"]')
        args = ["drive", "create", "d", "--rack", meta, "--raid", "0", "--legs", "1", "--size",
                 "8M"]
        self.expect_sentence(self.run_cairn(*args), 1, "does not do this for this host")
        self.assertIn("drive d is made", self.run_ok(*args, "--hostnqn", host))
        self.run_ok("drive", "release", "d", "--rack", meta, "--yes")

    def test_a_box_that_demands_keys_demands_them_of_who_asks_for_space(self):
        meta = self.serve_metadata()
        host = "nqn.2026-11.io.cairn:friend"
        key = self.folder / "host.key"
        self.run_ok("key", "new", "auth", "--output", str(key))
        self.start_boxes(meta, "a", more=f"""
[[subsystem.host]]
nqn = "{host}"
key = "{key}"
""")
        args = ["drive", "create", "d", "--rack", meta, "--raid", "0", "--legs", "1", "--size",
                 "8M", "--hostnqn", host]
        self.assertEqual(self.run_cairn(*args).returncode, 1)
        self.assertEqual(self.run_cairn(*args[:-2], "--connect",
                                        f"dhchap_key={key}").returncode, 1)
        self.assertEqual(self.offers(meta), {"a": 64 * MIB}, "strangers got nothing")
        self.run_ok(*args, "--connect", f"dhchap_key={key}")
        self.assertIn("&dhchap_key=%2F", self.run_ok("rack", "stack", "d", "--rack", meta))
        self.run_ok("drive", "release", "d", "--rack", meta, "--yes")
        self.wait_for(lambda: self.offers(meta) == {"a": 64 * MIB})

    def test_what_is_wrong_is_said(self):
        self.expect_usage(["drive", "create", "d", "--raid", "1"], "--size")
        self.expect_usage(["drive", "create", "d", "--raid", "5", "--size", "1M"], "0 (stripes)")
        self.expect_usage(["rack", "offers", "--rack", "nowhere"], "is no metadata store")
        self.expect_usage(["serve", "--shelf", "d0=tape:size=1G"], "is no shelf")
        self.expect_usage(["serve", "--shelf", "d0=mem:size=1G,heads=4"], "no option 'heads'")
        shelf = ["serve", "--shelf", "d0=mem:size=1G"]
        self.refused(shelf, "--rack meta://127.0.0.1:4430")
        self.refused([*shelf, "--rack", "meta://127.0.0.1:1"], "--state DIR")
        meta = self.serve_metadata()
        self.expect_sentence(
            self.run_cairn("drive", "create", "--rack", meta, "--raid", "1", "--size", "1M"), 1,
            "no box offers any space")
        self.expect_sentence(self.run_cairn("drive", "release", "d", "--rack", meta), 1,
                             "there is no drive d")
        self.expect_usage(["drive", "create", "d", "--raid", "1", "--size", "1M", "--hostnqn",
                           "vm1"], "'vm1' is not the NQN of a host")
        self.expect_sentence(self.run_cairn("rack", "serve", "meta", "--listen", "127.0.0.1:0"),
                             1, "another process has it open")
        self.assertEqual(self.store.stop(), 0)
        for args in (["rack", "offers"], ["drive", "create", "d", "--raid", "0", "--size", "1M"],
                      ["drive", "release", "d", "--yes"]):
            result = self.run_cairn(*args, "--rack", meta, "--timeout", "1")
            self.expect_sentence(result, 1, "the metadata store does not answer",
                                 "start it ('cairn rack serve', or etcd)")
            self.assertNotRegex(result.stderr, "unreachable|timed_out")


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Data(RackTest):
    def test_a_mirror_goes_on_without_a_box(self):
        meta = self.serve_metadata()
        boxes = self.start_boxes(meta, "a", "b")
        made = self.create("safe", meta, "--raid", "1", "--size", "16M")
        self.serve(f"safe={made['stack']}")
        self.expect_sentence(self.run_cairn("drive", "release", "safe", "--rack", meta, "--yes"),
                             1, "drive safe is in use", "--force")
        self.assertGreaterEqual(int(self.run_tool("nbdinfo", "--size", self.uri("safe"))),
                                16 * MIB)
        self.fio("safe", "--rw=randwrite", "--do_verify=1")
        boxes["a"].send(signal.SIGKILL)
        self.fio("safe", "--rw=randrw", "--do_verify=1", "--randseed=7")

    def test_stripes_keep_what_is_written(self):
        meta = self.serve_metadata()
        self.start_boxes(meta, "a", "b", "c")
        made = self.create("fast", meta, "--raid", "0", "--size", "30M", "--legs", "3")
        running = self.serve(f"fast={made['stack']}")
        self.assertEqual(int(self.run_tool("nbdinfo", "--size", self.uri("fast"))), 30 * MIB)
        data = self.write("in", bytes((i * i >> 3) & 0xff for i in range(4096)) * (30 * 256))
        self.run_tool("nbdcopy", data, self.uri("fast"))
        self.run_tool("nbdcopy", self.uri("fast"), "out")
        self.assertEqual((self.folder / "out").read_bytes(), data.read_bytes())
        self.assertEqual(running.stop(), 0)
        self.run_ok("drive", "release", "fast", "--rack", meta, "--yes")

    def test_the_line_of_a_released_drive_writes_to_no_other(self):
        meta = self.serve_metadata()
        self.start_boxes(meta, "a")
        args = ("--raid", "0", "--legs", "1", "--size", "8M", "--hostnqn",
                 "nqn.2026-11.io.cairn:owner")
        old = self.create("old", meta, *args)
        self.assertRegex(old["stack"], r"\?uuid=[-0-9a-f]{36}&hostnqn=")
        self.run_ok("drive", "release", "old", "--rack", meta, "--yes")
        new = self.create("new", meta, *args)
        self.assertNotEqual(new["legs"][0]["nsid"], old["legs"][0]["nsid"])
        result = self.run_cairn("serve", old["stack"], "--nbd", f"unix:{self.socket}")
        self.assertEqual(result.returncode, 1)
        self.assertIn("has no namespace with the UUID", result.stderr)
        stranger = new["stack"].replace(":owner", ":stranger")
        result = self.run_cairn("serve", stranger, "--nbd", f"unix:{self.socket}")
        self.assertEqual(result.returncode, 1)
        self.assertIn("has no namespace with the UUID", result.stderr)
        running = self.serve(f"new={new['stack']}")
        self.assertEqual(running.stop(), 0)


if __name__ == "__main__":
    support.main()
