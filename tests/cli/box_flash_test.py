#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn serve flash:...`: modelled drives, and what `cairn drive stats` tells of them."""

from box_support import NQN, BoxTest

import support

BLOCKS = 300


class FlashBox(BoxTest):
    def flash(self):
        return self.ask("drive", "stats")["flash"]

    def test_stats_show_the_inside_of_the_model(self):
        box = self.start_box("flash:profile=laptop-tlc,size=1G", "mem:size=1M")
        (new,) = self.flash()
        self.assertEqual((new["nqn"], new["nsid"], new["profile"]), (NQN, 1, "laptop-tlc"))
        self.assertEqual(new["pages_programmed"], {"user": 0, "collector": 0, "mapping": 0})
        self.assertEqual((new["fragmentation"], new["lateness_ns"]["count"]), (0, 0))
        self.assertGreater(new["free_blocks"], 0)
        self.assertEqual(len(new["channels_busy"]), 4)

        (self.folder / "data").write_bytes(bytes(range(256)) * 16 * BLOCKS)
        uri = f"nvme-tcp://127.0.0.1:{box.port}/{NQN}?nsid=1"
        self.run_ok("nvme", "write", uri, "--input", str(self.folder / "data"))
        (used,) = self.flash()
        self.assertGreater(used["dirty_cache_pages"] + used["pages_programmed"]["user"], 0)
        self.assertGreater(used["lateness_ns"]["count"], 0)
        self.assertLessEqual(used["lateness_ns"]["p50"], used["lateness_ns"]["max"])
        self.assertRegex(self.run_ok("drive", "stats"), rf"(?m)^{NQN} +1 +laptop-tlc +\d")
        self.assertEqual(box.stop(), 0)

    def test_a_file_keeps_the_data(self):
        drive = f"flash:profile=laptop-optane,size=64M,file={self.folder / 'kept'}"
        box = self.start_box(drive,)
        self.refused(["drive", "add", f"file:{self.folder / 'kept'}"], "already")
        self.refused(["drive", "resize", "d0", "128M"], "keeps its size")
        self.assertEqual(box.stop(), 0)
        self.assertEqual((self.folder / "kept").stat().st_size, 64 << 20)

    def test_a_restarted_box_has_used_drives(self):
        path = self.folder / "used"
        drive = f"flash:profile=laptop-tlc,size=64M,file={path}"
        box = self.start_box(drive,)
        (new,) = self.flash()
        (self.folder / "data").write_bytes(b"cairn" * (1 << 20))
        uri = f"nvme-tcp://127.0.0.1:{box.port}/{NQN}?nsid=1"
        self.run_ok("nvme", "write", uri, "--input", str(self.folder / "data"))
        self.assertEqual(box.stop(), 0)
        box = self.start_box(drive,)
        (used,) = self.flash()
        self.assertLess(used["free_blocks"], new["free_blocks"])
        self.assertEqual(used["pages_programmed"], {"user": 0, "collector": 0, "mapping": 0})
        self.assertEqual(box.stop(), 0)

    def test_a_preconditioned_drive_is_used_from_the_start(self):
        self.start_box("flash:profile=laptop-tlc,size=1G,precondition=80",
                       "flash:profile=laptop-tlc,size=1G")
        used, new = self.flash()
        self.assertLess(used["free_blocks"], new["free_blocks"])
        self.assertGreater(used["fragmentation"], 0)
        self.expect_usage(["drive", "add", "flash:profile=laptop-tlc,size=1G,precondition=99"],
                          "from 0 to 90")

    def test_a_profile_of_ones_own_has_its_whole_path(self):
        path = self.write("own.toml", "channels = 2\nover_provisioning = 0.2\n")
        self.start_box("flash:profile=own.toml,size=1G")
        (own,) = self.flash()
        self.assertEqual((own["profile"], len(own["channels_busy"])), (str(path), 2))

    def test_what_cannot_be_modelled_is_told(self):
        self.start_box("mem:size=1M")
        for drive, part in (("flash:profile=laptop-tlc", "has no size"),
                            ("flash:profile=laptop-tcl,size=1G", "laptop-tlc"),
                            ("flash:profile=laptop-tlc,size=1T", "choose a smaller size"),
                            ("flash:profile=snis,size=1G", "loses requests")):
            self.expect_usage(["drive", "add", drive], part)


if __name__ == "__main__":
    support.main()
