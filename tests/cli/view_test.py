# SPDX-License-Identifier: Apache-2.0
"""`cairn view` and what volumes have of bandwidth: two volumes over one box, all processes of this
machine."""

import json
import shutil
import subprocess
import threading
import unittest

import support
from volume_test import VolumeTest

MIB = 1 << 20
MISSING = [tool for tool in ("nbdcopy", "qemu-io") if shutil.which(tool) is None]


@unittest.skipIf(MISSING, f"not here: {', '.join(MISSING)}")
class View(VolumeTest):
    def open_at(self, volume):
        """Its door's socket."""
        path = self.folder / f"{volume}.nbd"
        self.start_cairn("serve", f"v=volume:{volume}", "--nbd", f"unix:{path}", "--control",
                         f"{self.folder}/{volume}.sock", until="Ctrl-C", env=self.env)
        return f"nbd+unix:///v?socket={path}"

    def use(self, work):
        """Again and again, until the test ends."""
        stop = threading.Event()

        def run():
            while not stop.is_set():
                subprocess.run(work, cwd=self.folder, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, timeout=support.HANGS_S, check=False)
        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(stop.set)

    def run_bad(self, *args):
        """What it says on stderr."""
        result = self.run_cairn(*args, env=self.env)
        self.assertEqual(result.returncode, 1, result.stdout)
        return result.stderr

    def test_why_names_the_neighbour(self):
        self.start_pool(boxes=1, more=["--drive-rate", "100M", "--drive-floor", "50M"])
        for name in ("quiet", "noisy"):
            self.run_ok("volume", "create", name, "--size", "24M")
        self.assertIn("nobody", self.run_ok("view", "top"))
        self.write("in", b"x" * (16 * MIB))
        quiet, noisy = self.open_at("quiet"), self.open_at("noisy")
        self.tool("nbdcopy", self.folder / "in", quiet)
        self.use(["nbdcopy", "--request-size=131072", str(self.folder / "in"), noisy])
        reads = [word for i in range(200) for word in ("-c", f"read {i * 64}k 4k")]
        self.use(["qemu-io", "-f", "raw", *reads, quiet])

        def names_it():
            said = self.run_ok("view", "why", "quiet")
            return "drive box0/d" in said and "shared with noisy's" in said
        self.wait_for(names_it)
        top = self.run_ok("view", "top")
        self.assertIn("box0/d", top)
        self.assertIn("noisy", top)
        self.wait_for(lambda: {"noisy", "quiet"} <= {
            each["name"] for each in self.ask("view", "top")["volumes"]})
        lines = self.run_ok("view", "watch", "--json", "--interval", "50ms", "--count", "3")
        seen = [json.loads(line) for line in lines.splitlines()]
        self.assertEqual(len(seen), 3)
        self.assertEqual({each["controller"] for each in seen}, {seen[0]["controller"]})
        whole = self.ask("view", "query")
        self.assertIn("box0/ioport0", [each["name"] for each in whole["components"]])
        self.assertIn("no requests", self.run_ok("view", "why", "nobody"))

    def test_terms_are_kept_changed_and_refused_with_the_reason(self):
        self.start_pool(boxes=1, more=["--drive-floor", "100M"])
        self.run_ok("volume", "create", "vol0", "--size", "8M", "--floor", "150M", "--weight", "4")
        self.assertEqual([self.volume()[key] for key in ("floor", "cap", "weight")],
                         [150 * MIB, 0, 4])
        said = self.run_bad("volume", "create", "vol1", "--size", "8M", "--floor", "100M")
        self.assertIn("cannot be kept: drive box0/d0 can promise 94 MB/s, of which 79 MB/s", said)
        self.run_ok("volume", "create", "vol1", "--size", "8M")
        said = self.run_bad("volume", "update", "vol1", "--floor", "100M")
        self.assertIn("cannot be kept", said)
        self.open_volume()
        self.run_ok("volume", "update", "vol0", "--floor", "20M", "--cap", "300M")
        self.run_ok("volume", "update", "vol1", "--floor", "100M")
        said = self.run_bad("volume", "update", "vol1", "--cap", "1M")
        self.assertIn("less than its floor", said)
        # All of it lasts.
        self.arbiter.stop()
        self.arbiter = self.start_cairn("arbiter", "--meta", "rocks:pool", "--drive-floor", "100M",
                                        until="it leads", env=self.env)
        self.assertEqual([self.volume()[key] for key in ("floor", "cap", "weight")],
                         [20 * MIB, 300 * MIB, 4])
        self.assertIn("weight 4, floor 20M/s", self.run_ok("volume", "show", "vol0"))

    def test_without_an_arbiter_there_is_no_view(self):
        said = self.run_bad("view", "top", "--timeout", "2")
        self.assertIn("cairn arbiter status", said)


if __name__ == "__main__":
    support.main()
