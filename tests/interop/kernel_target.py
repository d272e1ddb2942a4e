# SPDX-License-Identifier: Apache-2.0
"""The kernel's target in a guest serves our host, `cairn nvme`, at 127.0.0.1."""

import itertools
import json
import os
import pathlib
import socket
import struct
import subprocess
import time
import unittest

import keys_for_tests
from cairn_host import run_cairn_host_cases
from kernel_host import at_end, report
from linux_guest import wait_until
from target import AnaTarget, why_no_command

ANSWER_LIMIT_S = 60


def icreq(digests):
    """An ICReq PDU; bit 0 of `digests` asks for header digests, bit 1 for data digests."""
    return struct.pack("<BBBBIHBBI112x", 0x00, 0, 128, 0, 128, 0, 0, digests, 0)


def processor_s(pid):
    """Processor time that a process has used, in seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class CairnHost(unittest.TestCase):
    """One target for all tests; subclasses say which kernel's."""

    kernel: str
    folder: pathlib.Path
    guests: pathlib.Path
    program: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.target = AnaTarget(cls.guests, cls.folder, cls.kernel)
        at_end(cls, cls.target.kill)
        cls.target.start()

    def test_both_ports_take_every_combination_of_digests(self):
        for port, digests in itertools.product((self.target.port, self.target.second_port),
                                               range(4)):
            with self.subTest(port=port, digests=digests), socket.create_connection(
                    (self.target.address, port), ANSWER_LIMIT_S) as stream:
                stream.settimeout(ANSWER_LIMIT_S)
                stream.sendall(icreq(digests))
                answer = b""
                while len(answer) < 128:
                    piece = stream.recv(128 - len(answer))
                    self.assertTrue(piece, "the target closed the connection")
                    answer += piece
                kind, length, granted = answer[0], answer[2], answer[11]
                self.assertEqual((kind, length, granted), (0x01, 128, digests))

    def test_cairn_nvme_follows_groups_from_path_to_path(self):
        """Each port loses the namespace in turn while it is verified over both."""
        uri = (f"nvme-tcp://{self.target.address}:{self.target.port}/{self.target.nqn}"
               f"?nsid=1&path={self.target.address}:{self.target.second_port}")
        verify = self.begin_verify(uri)
        turns = 0
        while verify.poll() is None:
            port = turns % 2 + 1
            self.target.set_ana_state(port, 1, "inaccessible")
            self.target.set_ana_state(port, 1, "optimized" if port == 1 else "non-optimized")
            turns += 1
        self.expect_verified(verify)
        self.assertGreater(turns, 1)
        self.assertIsNone(self.target.trouble())

    def test_cairn_nvme_outlives_a_target_that_is_killed(self):
        uri = f"nvme-tcp://{self.target.address}:{self.target.port}/{self.target.nqn}?nsid=2"
        verify = self.begin_verify(uri)
        wait_until(lambda: processor_s(verify.pid) > 0.1, ANSWER_LIMIT_S, "I/O under way")
        self.target.kill()
        self.target.start()
        out, err = verify.communicate(timeout=ANSWER_LIMIT_S)
        found = json.loads(out)
        self.assertIsNone(found["mismatch"], out + err)
        # This target does not say what it has kept: a flush after writes must not say yes.
        self.assertIn("the target was restarted", found["error"] or "the target was restarted", out)

    def begin_verify(self, uri):
        args = [self.program, "nvme", "verify", uri, "--seconds", "5", "--size", "4M", "--json"]
        verify = subprocess.Popen([str(word) for word in args], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(verify.kill)
        return verify

    def expect_verified(self, verify):
        out, err = verify.communicate(timeout=ANSWER_LIMIT_S)
        self.assertEqual(verify.returncode, 0, out + err)

    def test_cairn_nvme_authenticates(self):
        if self.kernel == "6.1":
            self.skipTest("this kernel is built without authentication")
        files = keys_for_tests.write_files(self.folder)
        # The target keeps a controller key for good: one-way comes first.
        for mutual, (hash_name, group) in itertools.product((False, True), keys_for_tests.MEANS):
            with self.subTest(hash=hash_name, group=group, mutual=mutual):
                nqn = self.target.demand_keys(hash_name, group, mutual)
                self.expect_let_in(nqn, files["host"], files["controller"] if mutual else None)
        self.expect_kept_out(nqn, "is its key the right one", files["other"])
        self.expect_kept_out(nqn, "impostor", files["host"], files["other"])
        self.assertIsNone(self.target.trouble())

    def id_ns(self, nqn, key, controller_key=None):
        uri = (f"nvme-tcp://{self.target.address}:{self.target.port}/{nqn}"
               f"?hostnqn={keys_for_tests.HOST_NQN}&queues=2&dhchap_key={key}")
        if controller_key:
            uri += f"&dhchap_ctrl_key={controller_key}"
        return subprocess.run([self.program, "nvme", "id-ns", uri], capture_output=True, text=True,
                              timeout=ANSWER_LIMIT_S)

    def expect_let_in(self, *args):
        result = self.id_ns(*args)
        self.assertEqual(result.returncode, 0, result.stderr)

    def expect_kept_out(self, nqn, reason, *keys):
        result = self.id_ns(nqn, *keys)
        self.assertEqual(result.returncode, 1)
        self.assertIn(reason, result.stderr)

    def test_cairn_nvme(self):
        reason = why_no_command(self.program, "nvme")
        if reason:
            self.skipTest(reason)
        address = f"{self.target.address}:{self.target.port}"
        begun = time.monotonic()
        for case, reason in run_cairn_host_cases(address, self.target.nqn, self.program,
                                                 self.folder / "data"):
            now = time.monotonic()
            report("FAIL" if reason else "pass", f"cairn host, {self.target.name}", case,
                   now - begun, reason or "")
            begun = now
            with self.subTest(case):
                self.assertIsNone(reason)
