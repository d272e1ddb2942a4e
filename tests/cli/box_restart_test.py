#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a box keeps over a restart, how it ends, and what it says about trouble with files."""

import json
import signal
import socket

import support
from box_support import NQN, BoxTest

MIB = 1 << 20
MEMORY = ("mem:size=1M",)


class Keeping(BoxTest):
    def start_kept(self, *args):
        return self.start_box("--state", "s", *MEMORY, "file:d,size=1M", *args)

    def serial(self):
        return self.ask("drive", "status")["servers"][0]["subsystems"][0]["serial"]

    def test_every_change_is_there_after_a_kill(self):
        box = self.start_kept()
        self.ask("drive", "add", "file:e,size=1M", "--nsid", "7", "--ana-group", "3",
                 "--uuid", "01234567-89ab-cdef-0123-456789abcdef")
        self.ask("drive", "remove", "d0", "--yes")
        self.ask("drive", "resize", "d1", "2M")
        self.ask("drive", "resize", "d6", "3M")
        self.ask("drive", "ana", "--group", "3", "--state", "non-optimized")
        self.ask("host", "add", f"{NQN}-host")
        before = self.namespaces()
        box.kill()
        self.start_kept()
        self.assertEqual(self.namespaces(), before)
        self.assertEqual({nsid: each["size"] for nsid, each in before.items()},
                         {2: 2 * MIB, 7: 3 * MIB})
        self.assertEqual(before[7]["ana_state"], "non-optimized")
        subsystem = self.ask("drive", "status")["servers"][0]["subsystems"][0]
        self.assertEqual((subsystem["any_host"], subsystem["hosts"]), (False, [f"{NQN}-host"]))

    def test_an_edited_drive_is_what_it_became(self):
        args = ("--state", "s", "a=slice(file:d,size=4M)", "b=mem:size=1M")
        box = self.start_box(*args)
        self.ask("drive", "edit", "a", "limit(slice(file:d), iops=5000)")
        self.ask("drive", "add", "c=priority(file:e,size=1M)")
        self.ask("drive", "edit", "c", "limit(priority(file:e), iops=7000)")
        before = self.namespaces()
        self.assertRegex(before[1]["stack"], r"^limit\(slice\(file:\S+\), iops=5000\)$")
        box.kill()
        box = self.start_box(*args)
        after = self.namespaces()
        for nsid in (1, 2, 3):
            for key in ("name", "stack", "uuid", "nguid", "size", "health"):
                self.assertEqual(after[nsid][key], before[nsid][key], (nsid, key))
        self.assertEqual([each["name"] for each in after.values()], ["a", "b", "c"])
        self.assertEqual(box.stop(), 0)

    def test_an_edited_drive_that_is_not_configured_any_more_is_told(self):
        box = self.start_box("--state", "s", "a=mem:size=1M")
        self.ask("drive", "edit", "a", "limit(mem:size=1M, iops=50)")
        self.assertEqual(box.stop(), 0)
        box = self.start_box("--state", "s")
        self.assertEqual(self.namespaces(), {})
        self.assertRegex(box.log, r"namespace 1 of \S+ was changed while it was served, and is "
                         r"not in the configuration any more: it is not served; to have it, serve "
                         r"'a=limit\(mem:size=1M,block=4096, iops=50\)'")

    def test_names_are_the_same_without_a_state_too(self):
        box = self.start_box("file:d,size=1M")
        before, serial = self.namespaces(), self.serial()
        box.kill()
        self.start_box("file:d")
        after = self.namespaces()
        self.assertEqual([(each["uuid"], each["nguid"]) for each in after.values()],
                         [(each["uuid"], each["nguid"]) for each in before.values()])
        self.assertEqual(self.serial(), serial)

    def test_a_removed_one_can_come_back(self):
        box = self.start_kept()
        self.ask("drive", "remove", "d0", "--yes")
        self.ask("drive", "add", "--nsid", "1", "mem:size=4M")
        box.kill()
        self.start_kept()
        self.assertEqual(self.namespaces()[1]["size"], 4 * MIB)

    def test_damage_is_told_and_nothing_is_lost(self):
        box = self.start_kept()
        self.ask("drive", "remove", "d0", "--yes")
        box.stop()
        kept = self.folder / "s/changes.toml"
        text = kept.read_bytes()
        for damage in (b"", text[:-3], text[:40], text.replace(b"removed", b"remobed"),
                       text.split(b"\n", 1)[1].replace(b"[end]", b""), b"\0" * 100):
            kept.write_bytes(damage)
            result = self.run_cairn("serve", "--nvme-tcp", "127.0.0.1:0", "--state", "s", *MEMORY)
            self.assertEqual(result.returncode, 1, damage)
            self.assertIn("s/changes.toml: what was changed while the server ran is kept here",
                          result.stderr)
            self.assertIn("move it away", result.stderr)
            self.assertEqual(kept.read_bytes(), damage)
        kept.write_bytes(text.split(b"\n", 1)[1].replace(b"[1]", b"[2]"))  # edited by a person
        self.start_kept()
        self.assertEqual(sorted(self.namespaces()), [1])

    def test_what_cannot_be_kept_is_told_though_it_is_done(self):
        self.start_kept()
        (self.folder / "s/changes.toml.new").mkdir()
        self.refused(["drive", "remove", "d0", "--yes"],
                     "is removed, but this will not survive a restart", "Is a directory")
        self.assertEqual(sorted(self.namespaces()), [2])

    def test_one_box_has_the_folder(self):
        self.start_kept()
        self.refused(["serve", "--nvme-tcp", "127.0.0.1:0", "--state", "s", *MEMORY],
                     "in use by another server")


class Ending(BoxTest):
    def test_both_signals_end_it_in_order(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            box = self.start_box(*MEMORY)
            self.assertEqual(box.stop(number), 0)
            self.assertEqual(box.log, "")
            with socket.socket() as probe:
                self.assertNotEqual(probe.connect_ex(("127.0.0.1", box.port)), 0)

    def test_a_silent_connection_does_not_hold_it_up(self):
        box = self.start_box(*MEMORY, "--drain-timeout", "1h")
        with socket.create_connection(("127.0.0.1", box.port)):
            self.assertEqual(box.stop(), 0)

    def test_times(self):
        for text in ("5", "x", "-1s", "100h"):
            self.expect_usage(["serve", *MEMORY, f"--drain-timeout={text}"], "something like 500ms")


class Files(BoxTest):
    def test_one_file_one_namespace(self):
        at = ("--nvme-tcp", "127.0.0.1:0")
        box = self.start_box("file:d,size=1M", "file:./d")
        self.assertIn("served as another namespace already", box.log)
        self.assertEqual({nsid: each["health"] for nsid, each in self.namespaces().items()},
                         {1: "ok", 2: "failing"})
        self.refused(["serve", *at, "file:d"], "in use by another drive or process",
                     "'cairn drive list' lists what is served")

    def test_a_port_in_use(self):
        box = self.start_box(*MEMORY)
        self.refused(["serve", "--nvme-tcp", f"127.0.0.1:{box.port}", *MEMORY],
                     f"cannot listen at 127.0.0.1:{box.port}", "choose another port")
        self.refused(["serve", "--nvme-tcp", "192.0.2.1:4420", *MEMORY],
                     "name an address of this machine")

    def test_sizes_that_do_not_fit(self):
        at = ("--nvme-tcp", "127.0.0.1:0")
        self.write("d", b"\0" * MIB)
        self.refused(["serve", *at, "file:d,size=2M"], "the file exists with another size",
                     "leave size out")
        self.write("odd", b"\0" * 5000)
        self.refused(["serve", *at, "file:odd"], "not a multiple of the block size")
        self.write("empty", b"")
        self.refused(["serve", *at, "file:empty"], "not a multiple of the block size")
        self.refused(["serve", *at, "file:none"], "add ,size=8G to have the file made")
        self.refused(["serve", *at, "file:."], "drive 'file:")

    def test_a_deleted_file_is_told_at_the_end(self):
        box = self.start_box("file:d,size=1M")
        (self.folder / "d").unlink()
        self.assertEqual(box.stop(), 0)
        self.assertIn(f"namespace 1 of {NQN} fails: the file was deleted", box.log)


class OldKernel(BoxTest):
    """One that has neither io_uring nor writes that are durable by themselves."""

    def test_writes_are_made_durable_by_a_flush(self):
        box = self.start_box("mirror(file:l,size=4M, file:r,size=4M)",
                             denied=("ENOSYS", "io_uring_setup,pwritev2"))
        report = json.loads(self.run_ok(
            "nvme", "verify", f"nvme-tcp://127.0.0.1:{box.port}/{NQN}?nsid=1", "--fua", "--seconds",
            "0.2", "--size", "1M", "--json"))
        self.assertTrue(report["ok"], report)
        self.assertEqual(box.stop(), 0, box.log)


if __name__ == "__main__":
    support.main()
