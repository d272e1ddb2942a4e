#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boxes that are killed and started again under a mirror that uses them: nothing is lost, and legs
get back what they lack. CAIRN_BOX_KILLS says how often fio is interrupted, 3 times unless given."""

import json
import os
import re
import shutil
import subprocess
import time
import unittest

from box_support import NQN, BoxTest
from nbd_support import DriveTest
import support

TOOLS = ("nbdinfo", "nbdcopy", "fio")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
MIB = 1 << 20
KILLS = int(os.environ.get("CAIRN_BOX_KILLS", "3"))


class Leg:
    """A box that is always at the same port, with the same words."""

    def __init__(self, test, number, drive):
        self._test = test
        self._args = (drive,)
        self._nqn = f"{NQN}{number}"
        self._box = test.start_box(*self._args, nqn=self._nqn)
        self.port = self._box.port

    @property
    def uri(self):
        return f"nvme-tcp://127.0.0.1:{self.port}/{self._nqn}"

    def kill(self):
        self._box.kill()

    def start(self):
        self._box = self._test.start_box(*self._args, nqn=self._nqn,
                                         listen=(f"127.0.0.1:{self.port}",))

    def stop(self):
        return self._box.stop()


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Legs(DriveTest, BoxTest):
    def serve_mirror(self, *drives):
        self.control = str(self.folder / "ctl")
        self.legs = [Leg(self, number, drive) for number, drive in enumerate(drives)]
        uris = ", ".join(leg.uri for leg in self.legs)
        return self.serve(f"mirror({uris}, retry_ms=100)", "--control", self.control)

    def facts(self):
        answer = json.loads(self.run_ok("drive", "show", "d0", "--json", "--control", self.control))
        return answer["drives"][0]["layers"][0]["facts"]

    def wait_until_whole(self):
        end = time.monotonic() + support.HANGS_S
        while time.monotonic() < end:
            facts = self.facts()
            if facts["legs_good"] == 2 and facts["regions_to_copy"] == 0:
                return
        self.fail(f"a leg does not come back: {facts}")

    def copy(self, *args):
        result = subprocess.run(["nbdcopy", *map(str, args)], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                                timeout=support.HANGS_S)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_box_that_comes_back_empty_is_filled_again(self):
        running = self.serve_mirror("mem:size=16M", "mem:size=16M")
        self.wait_until_whole()
        size = int(subprocess.check_output(["nbdinfo", "--size", self.uri()], text=True))
        written = self.write("in", os.urandom(size))
        self.copy("--flush", written, self.uri())
        for leg in (self.legs[0], self.legs[1], self.legs[0]):
            leg.kill()
            leg.start()
            # Twice, so that both legs would be asked for every block.
            for _ in range(2):
                self.copy(self.uri(), "out")
                self.assertEqual((self.folder / "out").read_bytes(), written.read_bytes())
            self.wait_until_whole()
        self.copy(self.uri(), "out")
        self.assertEqual((self.folder / "out").read_bytes(), written.read_bytes())
        self.assertEqual(running.stop(), 0)

    def start_fio(self, seed):
        fio = subprocess.Popen(
            ["fio", "--name=job", "--ioengine=nbd", f"--uri={self.uri()}", "--rw=randwrite",
             "--bsrange=4k-32k", "--size=12M", "--iodepth=16", "--fsync=64", f"--randseed={seed}",
             "--rate_iops=1200", "--verify=crc32c", "--verify_fatal=1", "--do_verify=1",
             "--end_fsync=1", "--eta=always", "--eta-interval=250ms", "--eta-newline=250ms"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(fio.stdout.close)
        self.addCleanup(fio.kill)
        return fio

    def test_a_leg_on_two_boxes_of_which_one_is_empty_when_all_restarts_is_filled_again(self):
        self.control = str(self.folder / "ctl")
        self.legs = [Leg(self, number, "mem:size=8M") for number in range(4)]
        pairs = [f"stripe({self.legs[i].uri}, {self.legs[i + 1].uri})" for i in (0, 2)]
        args = (f"mirror({', '.join(pairs)}, retry_ms=100)", "--control", self.control)
        running = self.serve(*args)
        self.wait_until_whole()
        size = int(subprocess.check_output(["nbdinfo", "--size", self.uri()], text=True))
        written = self.write("in", os.urandom(size))
        self.copy("--flush", written, self.uri())
        for leg in (self.legs[1], self.legs[3]):
            running.kill()
            leg.kill()
            leg.start()
            self.socket.unlink(missing_ok=True)
            running = self.serve(*args)
            self.copy(self.uri(), "out")
            self.assertEqual((self.folder / "out").read_bytes(), written.read_bytes())
            self.wait_until_whole()
        self.assertEqual(running.stop(), 0)

    def test_fio_never_notices_that_boxes_are_killed(self):
        running = self.serve_mirror("file:d0,size=16M", "file:d1,size=16M")
        for round_number in range(KILLS):
            self.wait_until_whole()
            fio = self.start_fio(round_number)
            said = ""
            for line in fio.stdout:
                said += line
                if "[w=" in line and "[w=0" not in line:
                    break
            leg = self.legs[round_number % 2]
            leg.kill()
            leg.start()
            said += fio.stdout.read()
            self.assertEqual(fio.wait(timeout=support.HANGS_S), 0, said)
        self.wait_until_whole()
        self.assertEqual(running.stop(), 0)
        for leg in self.legs:
            self.assertEqual(leg.stop(), 0)
        data = [(self.folder / name).read_bytes()[64 << 10:] for name in ("d0", "d1")]
        self.assertEqual(data[0], data[1])


class Names(BoxTest):
    def test_two_boxes_that_nobody_named_differ(self):
        boxes = [self.start_box("mem:size=1M", nqn=None) for _ in range(2)]
        seen = []
        for box in boxes:
            nqn = re.search(r"(?m)^serving (nqn\S+) at ", box.said).group(1)
            uri = f"nvme-tcp://127.0.0.1:{box.port}/{nqn}"
            (space,) = json.loads(self.run_ok("nvme", "list", uri, "--json"))["namespaces"]
            page = json.loads(self.run_ok("nvme", "id-ctrl", uri, "--json"))
            seen.append((nqn, space["uuid"], page["sn"]))
        for one, other in zip(*seen):
            self.assertNotEqual(one, other)

    def test_names_stay_where_something_is_kept(self):
        for args in (("file:d,size=1M",), ("mem:size=1M", "--state", "s")):
            said = []
            for _ in range(2):
                box = self.start_box(*args, nqn=None)
                said.append(re.search(r"(?m)^serving (nqn\S+) at ", box.said).group(1))
                self.assertEqual(box.stop(), 0)
            self.assertEqual(said[0], said[1])


if __name__ == "__main__":
    support.main()
