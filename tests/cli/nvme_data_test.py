#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn nvme` moving and measuring data: read, write, copy, verify, perf."""

import json
import signal
import subprocess

import support
from nvme_support import KIB, MIB, Box, NvmeTest, Process, pattern


class ReadAndWrite(NvmeTest):
    def test_what_is_written_is_read_back(self):
        data = pattern(3 * MIB + 36 * KIB)
        path = self.write("in", data)
        wrote = self.nvme_json("write", self.uri(), "--offset", "64K", "--input", path)
        self.assertEqual((wrote["offset"], wrote["bytes"]), (64 * KIB, len(data)))
        read = self.nvme_json("read", self.uri(), "--offset", "64K", "--length", len(data),
                              "--output", "out")
        self.assertEqual(read["bytes"], len(data))
        self.assertEqual((self.folder / "out").read_bytes(), data)
        self.assertEqual(self.bytes_at(0, "64K"), bytes(64 * KIB))

    def test_pipes(self):
        data = pattern(MIB + 512)
        status, _, err = self.pipe("write", self.uri(2), "--offset", 512, "--fua", given=data)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(self.bytes_at(512, len(data), nsid=2), data)

    def test_a_part_of_a_file(self):
        data = pattern(3 * 4096)
        self.nvme("write", self.uri(), "--input", self.write("in", data), "--length", "8K")
        self.assertEqual(self.bytes_at(0, "12K"), data[:8192] + bytes(4096))

    def test_the_whole_namespace(self):
        self.nvme("read", self.uri(2), "--output", "out")
        self.assertEqual((self.folder / "out").stat().st_size, 16 * MIB)

    def test_ranges_say_what_would_do(self):
        for args, parts in (
                (["--offset", "1000"], ["--offset 1000", "block of 4096 bytes", "0 or 4096"]),
                (["--length", "5000"], ["--length 5000", "4096 or 8192"]),
                (["--offset", "64M"], ["behind the end", "67108864"]),
                (["--offset", "1M", "--length", "64M"], ["--length 66060288 would reach its end"]),
                (["--length", "0"], ["nothing to do"])):
            self.nvme_fails(["read", self.uri(), *args, "--output", "out"], *parts)
        self.assertFalse((self.folder / "out").exists())

    def test_a_short_file_is_refused_before_anything_is_written(self):
        path = self.write("in", pattern(8192))
        self.nvme_fails(["write", self.uri(), "--length", "64K", "--input", path],
                        "has 8192 bytes, less than --length 65536", "nothing was written")
        self.nvme_fails(["write", self.uri(), "--input", self.write("odd", b"x" * 5000)],
                        "5000 bytes", "4096 or 8192")
        self.nvme_fails(["write", self.uri(), "--input", self.write("empty", b"")], "is empty")
        self.nvme_fails(["write", self.uri(), "--input", "missing"], "'missing' cannot be read")
        self.assertEqual(self.bytes_at(0, "64K"), bytes(64 * KIB))

    def test_a_pipe_that_ends_early_leaves_the_rest_alone(self):
        status, _, err = self.pipe("write", self.uri(), "--length", "64K", given=pattern(10000))
        self.assertEqual(status, 1)
        self.assertIn("ended after 10000 bytes, before --length 65536", err)
        self.assertEqual(self.bytes_at(0, "64K"), pattern(8192) + bytes(56 * KIB))

    def test_an_endless_pipe_ends_with_the_namespace(self):
        status, _, err = self.pipe("write", self.uri(2), given=bytes(16 * MIB + 512))
        self.assertEqual(status, 1)
        self.assertIn("goes on behind the end", err)

    def test_an_output_is_whole_or_left_alone(self):
        self.write("kept", "as it was")
        self.nvme_fails(["read", self.uri(7), "--output", "kept"], "no namespace 7")
        self.assertEqual((self.folder / "kept").read_text(), "as it was")
        self.nvme_fails(["read", self.uri(), "--output", "/dev/full"], "make room there")
        self.nvme_fails(["read", self.uri(), "--output", "no/such/folder"], "cannot be written")
        self.assertEqual(sorted(each.name for each in self.folder.glob("*part*")), [])

    def test_json_and_bytes_do_not_mix(self):
        self.nvme_fails(["read", self.uri(), "--json"], "name a file with --output")


class Change(NvmeTest):
    def test_zeroes_and_discards_clear_their_range(self):
        data = pattern(64 * KIB)
        for verb in ("write-zeroes", "discard"):
            self.fill(data)
            self.nvme_json(verb, self.uri(), "--offset", "8K", "--length", "16K")
            self.assertEqual(self.bytes_at(0, "64K"),
                             data[:8 * KIB] + bytes(16 * KIB) + data[24 * KIB:])
            self.nvme_fails([verb, self.uri()], "say how much with --length")
            self.nvme_fails([verb, self.uri(), "--length", "100"], "0 or 4096 would do")

    def test_flush(self):
        self.assertEqual(self.nvme("flush", self.uri()), "flush: done\n")


class Copy(NvmeTest):
    def setUp(self):
        super().setUp()
        self.data = pattern(2 * MIB + 300 * KIB)
        self.fill(self.data, offset="64K")

    def test_between_namespaces(self):
        copied = self.nvme_json("copy", self.uri(1), self.uri(2), "--offset", "64K",
                                "--length", len(self.data), "--verify")
        self.assertEqual(copied["bytes_by_target"], 0)
        self.assertEqual(self.bytes_at("64K", len(self.data), nsid=2), self.data)

    def test_within_a_namespace_the_target_copies(self):
        copied = self.nvme_json("copy", self.uri(1), "--offset", "64K", "--length",
                                len(self.data), "--to-offset", "32M", "--verify")
        self.assertEqual(copied["bytes_by_target"], len(self.data))
        self.assertEqual(self.bytes_at("32M", len(self.data)), self.data)

    def test_what_does_not_fit_or_overlaps_is_refused(self):
        self.nvme_fails(["copy", self.uri(1), self.uri(2)], "at the target", "16 MiB")
        self.nvme_fails(["copy", self.uri(1), "--length", "1M", "--to-offset", "4K"], "overlap",
                        "--to-offset 1048576")
        self.nvme_fails(["copy", self.uri(2), self.uri(1), "--length", "512"],
                        "at the target", "0 or 4096")


class CopyOfHoles(NvmeTest):
    drives = ("file:d0,size=64M,direct=off", "file:d1,size=64M,direct=off")

    def test_takes_the_space_of_what_is_there(self):
        self.fill(pattern(MIB))
        self.nvme_json("copy", self.uri(1), self.uri(2), "--length", "32M", "--verify")
        self.nvme_json("copy", self.uri(1), "--length", "32M", "--to-offset", "32M", "--verify")
        for name, held_max in (("d0", 2 * MIB), ("d1", MIB)):
            held = (self.folder / name).stat().st_blocks * 512
            self.assertLessEqual(held, held_max + 128 * KIB, name)


class Verify(NvmeTest):
    drives = ("file:d0,size=16M,direct=off", "mem:size=1M,block=512")

    def verify(self, *args):
        return self.nvme_json("verify", self.uri(), "--seconds", "0.2", *args)

    def test_a_sound_target_passes(self):
        found = self.verify("--size", "1M", "--depth", 8)
        self.assertTrue(found["ok"])
        self.assertGreater(found["blocks_written"], 0)
        self.assertGreater(found["blocks_checked"], 0)
        self.assertEqual((found["offset"], found["size"]), (0, MIB))
        self.assertIn("All held", self.nvme("verify", self.uri(2), "--seconds", "0.1"))

    def test_writes_stay_in_the_range(self):
        self.fill(pattern(8192))
        self.verify("--offset", "8K", "--size", "16K")
        self.assertEqual(self.bytes_at(0, "8K"), pattern(8192))
        self.assertEqual(self.bytes_at("24K", "8K"), bytes(8192))

    def test_check_only_knows_what_was_acknowledged_before_a_crash(self):
        found = self.verify("--size", "256K", "--state", "state")
        self.box.stop(signal.SIGKILL)
        self.box = Box(self, *self.drives)
        checked = self.nvme_json("verify", self.uri(), "--check-only", "--state", "state")
        self.assertTrue(checked["ok"])
        self.assertEqual((checked["writes"], checked["seed"]), (0, found["seed"]))
        self.assertGreater(checked["blocks_checked"], 0)

    def test_a_block_that_changed_is_named(self):
        seed = self.verify("--size", "64K", "--state", "state", "--write-percent", 100)["seed"]
        block = bytearray(self.bytes_at("4K", "4K"))
        block[1000] ^= 1
        self.fill(bytes(block), offset="4K")
        for how in (["--state", "state"], ["--seed", seed, "--size", "64K"]):
            result = self.run_cairn("nvme", "verify", self.uri(), "--check-only", "--json",
                                    *map(str, how), env=self.env)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(json.loads(result.stdout)["mismatch"]["block"], 1)
            self.assertIn("damaged from byte 1000 on", result.stderr)

    def test_mistakes(self):
        self.nvme_fails(["verify", self.uri(), "--check-only"], "needs the --state")
        self.nvme_fails(["verify", self.uri(), "--check-only", "--state", "none"], "no file 'none'")
        path = self.write("junk", "junk")
        self.nvme_fails(["verify", self.uri(), "--check-only", "--state", path], "is of no use")


class Perf(NvmeTest):
    def perf(self, *args):
        return self.nvme_json("perf", self.uri(), "--seconds", "0.1", "--warmup", "0", *args)

    def test_it_counts_what_it_did(self):
        found = self.perf("--bs", "8K", "--depth", 4, "--rw", "mixed:50")
        self.assertGreater(found["iops"], 0)
        self.assertAlmostEqual(found["bytes_per_second"], found["iops"] * 8192, delta=1)
        for side in ("read", "write"):
            self.assertEqual(found[side]["bytes"], found[side]["ios"] * 8192)
            latency = found[side]["latency_us"]
            self.assertLessEqual(latency["p50"], latency["p99"])
            self.assertLessEqual(latency["p99"], latency["max"])
        self.assertFalse(found["interrupted"])
        self.assertIsNone(found["error"])

    def test_patterns(self):
        for name, side in (("randread", "read"), ("randwrite", "write"), ("read", "read"),
                           ("write", "write")):
            found = self.perf("--rw", name, "--jobs", 2, "--length", "1M")
            self.assertGreater(found[side]["ios"], 0)
        self.expect_usage(["nvme", "perf", self.uri(), "--rw", "mixed:200"], "from 0 to 100")
        self.expect_usage(["nvme", "perf", self.uri(), "--rw", "rw"], "takes randread")

    def test_a_rate_is_kept_or_reported_as_missed(self):
        found = self.perf("--rate", 500, "--depth", 16)
        self.assertEqual(found["read"]["ios"] + found["unsent"], 50)

    def test_words_for_people(self):
        text = self.nvme("perf", self.uri(), "--seconds", "0.1", "--warmup", "0")
        for part in ("IOPS", "GB/s", "p99.9", "us per I/O"):
            self.assertIn(part, text)

    def test_a_load_that_does_not_fit(self):
        self.nvme_fails(["perf", self.uri(), "--bs", "1000"], "no multiple", "4096")
        self.nvme_fails(["perf", self.uri(), "--offset", "1G"], "beyond")

    def start_load(self, options=""):
        """A long load that has begun."""
        load = Process(self, ["nvme", "perf", self.uri(options=options), "--seconds", 1000,
                              "--warmup", 0, "--json"],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while self.nvme_json("smart-log", self.uri())["host_read_commands"] == 0:
            pass
        return load

    def test_a_target_that_goes_away_ends_it(self):
        load = self.start_load("&loss_timeout=0")
        self.box.stop(signal.SIGKILL)
        status, out, err = load.communicate()
        self.assertEqual(status, 1)
        self.assertIn("the target is gone", err)
        self.assertGreater(json.loads(out)["read"]["ios"], 0)

    def test_a_target_that_comes_back_is_used_again(self):
        self.box.stop()
        kept = [f"file:{self.folder}/kept,size=4M"]
        self.box = Box(self, *kept)
        load = self.start_load()
        port = self.box.port
        self.box.stop(signal.SIGKILL)
        self.box = Box(self, *kept, port=port)
        while self.nvme_json("smart-log", self.uri())["host_read_commands"] == 0:
            pass
        load.send(signal.SIGINT)
        status, out, _ = load.communicate()
        self.assertEqual(status, 0)
        self.assertIsNone(json.loads(out)["error"])

    def test_a_target_that_comes_back_empty_is_not(self):
        load = self.start_load()
        port = self.box.port
        self.box.stop(signal.SIGKILL)
        self.box = Box(self, *self.drives, port=port)
        status, _, err = load.communicate()
        self.assertEqual(status, 1)
        self.assertIn("a new medium", err)

    def test_an_interrupt_shows_what_was_measured(self):
        load = self.start_load()
        load.send(signal.SIGINT)
        status, out, err = load.communicate()
        self.assertEqual((status, err), (0, ""))
        found = json.loads(out)
        self.assertTrue(found["interrupted"])
        self.assertGreater(found["read"]["ios"], 0)


if __name__ == "__main__":
    support.main()
