# SPDX-License-Identifier: Apache-2.0
"""An elastic volume of three replicas, one of them always at a Linux target in a guest: the guest
dies and comes back, and it is the kernel's reservations that keep a former holder from writing."""

import json
import os
import pathlib
import signal
import subprocess
import unittest

from kernel_host import at_end
from linux_guest import GuestError, build, wait_until
from pool import COMMAND_LIMIT_S, Pool
from target import MIB, NAMESPACES, KernelTarget

# Its target has reservations, since 6.13; those of the other suites have none.
KERNEL = "6.18"
LIMIT_S = 120
VOLUME_SIZE = 12 * MIB


class ReservedTarget(KernelTarget):
    """The second namespace can be reserved, and is alone in a subsystem; the first one cannot."""

    def __init__(self, cache, folder, kernel):
        super().__init__(cache, folder, kernel)
        self.plain_nqn = f"{self.nqn}-plain"

    def _forwards(self):
        return ((self.port, self.address, self.port),)

    def _configure(self):
        self._do("up")
        for nqn, nsid in ((self.plain_nqn, 1), (self.nqn, 2)):
            self._do("subsystem", nqn)
            self._do("namespace", nqn, nsid, f"ns{nsid}", 1, *(["reserved"] if nsid == 2 else []))
        self._do("port", 1, self.address, self.port, 16384, self.plain_nqn, self.nqn)

    def uri(self, nqn=None):
        return f"nvme-tcp://{self.address}:{self.port}/{nqn or self.nqn}"


class KernelPool(unittest.TestCase):
    """One guest for all tests; a pool for each."""

    folder: pathlib.Path
    guests: pathlib.Path
    program: pathlib.Path

    @classmethod
    def setUpClass(cls):
        try:
            build(cls.guests, KERNEL)
        except GuestError as error:
            if "can be had from apt" not in str(error):
                raise
            raise unittest.SkipTest(str(error)) from error
        cls.target = ReservedTarget(cls.guests, cls.folder, KERNEL)
        at_end(cls, cls.target.kill)
        for nsid in NAMESPACES:  # drives of a pool that was
            (cls.folder / f"ns{nsid}.raw").unlink(missing_ok=True)
        cls.target.start()

    def setUp(self):
        self.pool = Pool(self.program, self.folder / "pool")
        self.addCleanup(self.pool.kill)
        for name in ("box0", "box1"):
            self.pool.start_box(name)
        self.pool.start_arbiter()
        for name in ("box0", "box1"):
            self.pool.add(name)

    def drives(self):
        return self.pool.ask("pool", "list")["drives"]

    def start_client(self, name="client"):
        return self.pool.start_client(name, "vol0", "--nbd", f"unix:{name}.nbd")

    def tool(self, *args):
        return subprocess.run([str(word) for word in args], cwd=self.pool.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=COMMAND_LIMIT_S, check=False)

    def uri(self, name="client"):
        return f"nbd+unix:///vol0?socket={name}.nbd"

    def write(self, data, client="client"):
        (self.pool.folder / "in").write_bytes(data)
        result = self.tool("nbdcopy", "--flush", "in", self.uri(client))
        self.assertEqual(result.returncode, 0, result.stderr)

    def expect(self, data, client="client"):
        result = self.tool("nbdcopy", self.uri(client), "out")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue((self.pool.folder / "out").read_bytes() == data, "other data are read")

    def test_a_volume_has_replicas_at_linux(self):
        self.expect_refusal_without_reservations()
        self.pool.add("linux", self.target.uri())
        self.pool.ask("volume", "create", "vol0", "--size", str(VOLUME_SIZE), "--replicas", "3")
        first = self.start_client()
        data = os.urandom(VOLUME_SIZE)
        self.write(data)
        self.expect(data)
        data = self.check_fencing(first, data)
        self.check_loss(data)
        self.assertIsNone(self.target.trouble())

    def expect_refusal_without_reservations(self):
        before = self.drives()
        refused = self.pool.run("pool", "add", self.target.uri(self.target.plain_nqn))
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn("no NVMe reservations", refused.stderr)
        self.assertIn("resv_enable", refused.stderr)
        self.assertEqual(self.drives(), before)

    def check_fencing(self, first, data):
        """Who stood still while its volume was taken over writes nothing, and says so."""
        before = self.registrants()
        first.send(signal.SIGSTOP)
        self.start_client("second")
        # The arbiter stays, of the two clients one has gone and the other has come.
        self.assertEqual(len(before), 2, before)
        self.assertEqual(len(before & self.registrants()), 1, before)
        self.assertEqual(len(self.registrants()), 2)
        changed = os.urandom(MIB) + data[MIB:]
        self.write(changed, "second")
        first.send(signal.SIGCONT)
        failed = self.tool("qemu-io", "-f", "raw", "-c", f"write -P 7 0 {MIB}", "-c", "flush",
                           self.uri())
        self.assertNotEqual(failed.returncode, 0, failed.stdout)
        self.pool.kill("client")
        self.expect(changed, "second")
        return changed

    def registrants(self):
        """The keys of those whom Linux lets write, all of whom hold the reservation."""
        shown = self.tool(self.program, "nvme", "reservations", f"{self.target.uri()}?nsid=2",
                          "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        told = json.loads(shown.stdout)
        self.assertEqual(told["type"], "exclusive-access-all")
        return {each["rkey"] for each in told["regctlext"]}

    def check_loss(self, data):
        """The target is killed, what is written meanwhile is copied to it when it is back, and it
        then has all of it: the other boxes are not needed."""
        self.target.kill()
        data = os.urandom(3 * MIB) + data[3 * MIB:]
        self.write(data, "second")
        self.expect(data, "second")
        self.assertGreater(self.pool.lacking("vol0"), 0)
        self.target.start()
        wait_until(lambda: self.pool.lacking("vol0") == 0, LIMIT_S, "what it missed is copied")
        for name in ("box0", "box1"):
            self.pool.kill(name)
        self.expect(data, "second")
