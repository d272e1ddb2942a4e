# SPDX-License-Identifier: Apache-2.0
"""An elastic volume of three replicas under fio, which verifies what it reads, while each kind of
process is killed with SIGKILL and started again: boxes that keep what they hold and boxes that lose
it, the arbiter that leads and the one that stands by, etcd's leader and a follower, the client.

CAIRN_KILL_ROUNDS says how often, CAIRN_SEED in which order. With CAIRN_KILL_TOGETHER an arbiter, a
member of etcd and a box are killed at once, in every combination, in two of three rounds."""

import collections
import json
import os
import random
import shutil
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

import support
from volume_kill_test import BLOCK, Gone, Load, Nbd
from volume_test import MIB, VolumeTest, free_port

ROUNDS = int(os.environ.get("CAIRN_KILL_ROUNDS", "0"))  # none: each kind once
SEED = int(os.environ.get("CAIRN_SEED", "1"))
TOGETHER = "CAIRN_KILL_TOGETHER" in os.environ
ETCD = "/usr/bin/etcd"
MEMORY = "/dev/shm"
MISSING = [tool for tool in (ETCD, "fio") if shutil.which(tool) is None]
# Longer than the pool is without a leader when one is killed on a machine that is busy.
LEASE = ("--lease", "30s")
TRIM = 4

LOAD_SIZE = 6 * MIB  # the first part of the volume is volume_kill_test's, the rest is fio's
JOBS = 4
JOB_SIZE = 4 * MIB
# A pass lasts for some kills. The machine has other things to do beside this.
JOB_RATE = 400


class Etcd:
    """Three members on this machine; each keeps its folder and its ports."""

    def __init__(self, test):
        self._test = test
        self.names = [f"m{i}" for i in range(3)]
        self._clients = {name: f"http://127.0.0.1:{free_port()}" for name in self.names}
        self._peers = {name: f"http://127.0.0.1:{free_port()}" for name in self.names}
        self._processes = {}
        for name in self.names:
            self.start(name)
        test.wait_for(self.is_whole)

    @property
    def uri(self):
        return "etcd://" + ",".join(at.removeprefix("http://") for at in self._clients.values())

    def start(self, name):
        cluster = ",".join(f"{each}={at}" for each, at in self._peers.items())
        args = [ETCD, "--name", name, f"--data-dir={self._test.folder}/etcd-{name}",
                f"--listen-client-urls={self._clients[name]}",
                f"--advertise-client-urls={self._clients[name]}",
                f"--listen-peer-urls={self._peers[name]}",
                f"--initial-advertise-peer-urls={self._peers[name]}",
                f"--initial-cluster={cluster}"]
        with open(self._test.folder / f"etcd-{name}.log", "a", encoding="utf-8") as log:
            process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._processes[name] = process
        self._test.addCleanup(process.wait)
        self._test.addCleanup(process.kill)

    def kill(self, name):
        self._processes[name].kill()
        self._processes[name].wait()

    def _status(self, name):
        request = urllib.request.Request(f"{self._clients[name]}/v3/maintenance/status", b"{}")
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.load(answer)

    def is_whole(self):
        """All members follow one leader, and have what it had when it was asked first."""
        try:
            told = {name: self._status(name) for name in self.names}
        except OSError:
            return False
        leaders = {each.get("leader") for each in told.values()}
        least = max(int(each["raftIndex"]) for each in told.values())
        return (len(leaders) == 1 and None not in leaders and "0" not in leaders and
                all(int(self._status(name)["raftAppliedIndex"]) >= least for name in self.names))

    def leader(self):
        told = {name: self._status(name) for name in self.names}
        return next(name for name, each in told.items()
                    if each["header"]["member_id"] == each["leader"])


class Fio(threading.Thread):
    """fio writes its part of the volume again and again, flushes now and then, and reads it back
    while it writes and afterwards. One request at a time in each of some jobs: so the state that
    fio leaves when its server is killed names what was acknowledged, and no more. Discards between
    the passes, so that each also asks for new extents."""

    def __init__(self, test):
        super().__init__(daemon=True)
        self._test = test
        self._folder = test.folder / "fio"
        self._folder.mkdir()
        self._process = None
        self._seed = SEED * 1_000_000
        self.server = threading.Event()
        self.is_recovered = threading.Event()  # what the last server acknowledged was found
        self.is_recovered.set()
        self.passes = 0
        self.checked = 0  # jobs whose acknowledged writes another server was asked for
        self.failure = ""
        self.stopped = False

    def run(self):
        try:
            while not self.stopped:
                if not self.server.wait(0.1):
                    continue
                if self.is_recovered.is_set():
                    self._pass()
                else:
                    self._recover()
        except Exception as error:  # pylint: disable=broad-except
            self.failure = self.failure or repr(error)
        self.is_recovered.set()

    def server_goes(self):
        self.is_recovered.clear()
        self.server.clear()

    def _pass(self):
        self._seed += 1
        for state in self._folder.glob("*.state"):
            state.unlink()
        if not self._discard():
            return
        ended, said = self._fio(range(JOBS), "--rw=randwrite", "--do_verify=1",
                                "--verify_backlog=128", "--fsync=32", "--verify_state_save=1",
                                f"--rate_iops={JOB_RATE},{JOB_RATE * 4}")
        if ended == 0:
            self.passes += 1
        elif self.is_recovered.is_set() or "verify:" in said:
            raise AssertionError(f"fio ended with {ended}: {said}")

    def _discard(self):
        try:
            nbd = Nbd(self._test.socket, "v")
            try:
                for job in range(JOBS):
                    first = (LOAD_SIZE + job * JOB_SIZE) // BLOCK
                    if status := nbd.ask(TRIM, first, length=JOB_SIZE)[0]:
                        raise AssertionError(f"discard failed with {os.strerror(status)}")
            finally:
                nbd.close()
        except Gone as error:
            if self.is_recovered.is_set():
                raise AssertionError(f"the server ended the connection: {error}") from error
            return False
        return True

    def _recover(self):
        """The next server has what the last one acknowledged to jobs that have left a state. Those
        that were about to verify leave none."""
        jobs = [job for job in range(JOBS) if self._state(job).exists()]
        if jobs:
            ended, said = self._fio(jobs, "--rw=randread", "--do_verify=1",
                                    "--verify_state_load=1")
            if ended:
                raise AssertionError(f"fio misses what was acknowledged: {said}"
                                     f" {[self._left(job) for job in jobs]}")
            self.checked += len(jobs)
        self.is_recovered.set()

    def _state(self, job):
        return self._folder / f"local-j{job}-{job}-verify.state"

    def _left(self, job):
        """How many writes the job had issued, and where the last was that was acknowledged."""
        state = self._state(job).read_bytes()
        count, = struct.unpack_from("<Q", state, 24)
        issued, = struct.unpack_from("<Q", state, 40)
        return job, issued, struct.unpack_from("<Q", state, len(state) - 8)[0] if count else None

    def _fio(self, jobs, *args):
        """Returns its status, and what it complained of."""
        command = ["fio", "--output=out", "--eta=never"]
        for job in range(JOBS):
            if job not in jobs:  # the order of blocks depends on the place of a job among all
                command += ["--name=none", "--ioengine=null", "--size=4k"]
                continue
            command += [f"--name=j{job}", "--ioengine=nbd", f"--uri={self._test.uri('v')}",
                        "--bs=4k", f"--offset={LOAD_SIZE + job * JOB_SIZE}", f"--size={JOB_SIZE}",
                        "--iodepth=1", "--verify=crc32c", "--verify_fatal=1",
                        "--randrepeat=0", f"--randseed={self._seed}", *args]
        result = subprocess.run(command, cwd=self._folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                timeout=support.HANGS_S, check=False)
        return result.returncode, result.stdout


class TimedLoad(Load):
    """Also knows how long a request took at most."""

    longest = 0.0

    def _step(self, nbd):
        begun = time.monotonic()
        super()._step(nbd)
        self.longest = max(self.longest, time.monotonic() - begun)


class FioKills(VolumeTest):
    """Rounds of kills; subclasses say what there is to kill, and how."""

    KINDS = {"file0": "file", "file1": "file", "memory0": "mem", "memory1": "mem"}

    def setUp(self):
        # In memory where that can be: arbiters and members of etcd answer for their leases, and a
        # disk that others keep busy may stand still for longer. Processes are killed here, not
        # machines.
        if os.access(MEMORY, os.W_OK):
            self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
            tempfile.tempdir = MEMORY
        super().setUp()

    def start_boxes(self):
        self.ports = {name: free_port() for name in self.KINDS}
        self.boxes = {name: self.start_drives(name, port) for name, port in self.ports.items()}
        for name in self.ports:
            self.add_to_pool(name)

    def start_drives(self, name, port, size="64M", count=2):
        if self.KINDS[name] == "file":
            return super().start_drives(name, port, size, count)
        return self.start(["serve", *[f"mem:size={size}"] * count, "--nvme-tcp",
                           f"127.0.0.1:{port}", "--nqn", self.nqn(name), "--state",
                           f"{self.folder}/{name}.state", "--control",
                           f"{self.folder}/{name}.sock"])

    def add_to_pool(self, name):
        self.run_ok("pool", "add", self.place(name, self.ports[name]), "--box", name,
                    *self.to_arbiter)

    def volume(self, name="vol0", *more):
        return super().volume(name, *more, *self.to_arbiter)

    def open_client(self):
        self.client = self.open_volume("volume:vol0,take-over=yes" + self.client_options)

    def run_rounds(self, kinds):
        self.random = random.Random(SEED)
        self.start_boxes()
        self.run_ok("volume", "create", "vol0", "--size", str(LOAD_SIZE + JOBS * JOB_SIZE),
                    "--replicas", "3", *self.to_arbiter)
        self.open_client()
        self.load = TimedLoad(self.socket, SEED)
        self.fio = Fio(self)
        for each in (self.load, self.fio):
            each.server.set()
            each.start()
            self.addCleanup(setattr, each, "stopped", True)
        rounds = ROUNDS or len(kinds)
        order = [kinds[i % len(kinds)] for i in range(rounds)]
        self.random.shuffle(order)
        done = collections.Counter()
        longest = collections.Counter()
        try:
            self.goes_on()
            for number, together in enumerate(order):
                self.load.longest = 0.0
                begun = time.monotonic()
                self.kill_round(together)
                done.update(together)
                name = " and ".join(together)
                longest[name] = max(longest[name], self.load.longest)
                print(f"round {number} of seed {SEED}: {name}, {time.monotonic() - begun:.1f} s,"
                      f" a request took {self.load.longest:.2f} s at most", flush=True)
            self.check_all()
        except BaseException:
            self.show_logs()
            raise
        finally:
            for kind, count in sorted(done.items()):
                print(f"killed {count} times: {kind}")
            for name, seconds in sorted(longest.items()):
                print(f"a request took {seconds:.2f} s at most: {name}")
            print(f"{self.load.done} requests, {self.fio.passes} passes of fio, {self.fio.checked}"
                  " of its jobs checked after their server was killed", flush=True)

    def check_all(self):
        self.load.stopped = self.fio.stopped = True
        for each in (self.load, self.fio):
            each.join(support.HANGS_S)
            self.assertFalse(each.is_alive(), "it hangs")
        self.expect_no_failure()
        self.load.verify_all()
        self.assertEqual(self.run_ok("drive", "tell", "v", "0", "scrub", "--control",
                                     f"{self.folder}/client.sock").strip(),
                         "0 extents had legs that differed, and were mended")
        self.assertEqual(self.client.stop(), 0)

    def show_logs(self):
        running = {"client": self.client, **self.boxes, **self.arbiters}
        for name, process in running.items():
            print(f"--- {name}: {process.log[-3000:]}", flush=True)
        for each in self.to_arbiter[1:]:
            shown = self.run_cairn("pool", "list", "--arbiter", each)
            print(shown.stdout, shown.stderr)
            print(self.run_cairn("volume", "show", "vol0", "--arbiter", each).stdout, flush=True)

        for log in sorted(self.folder.glob("etcd-*.log")):
            print(f"--- {log.name}: {log.read_text(errors='replace')[-3000:]}", flush=True)

    def expect_no_failure(self):
        self.assertEqual((self.load.failure, self.fio.failure), ("", ""))

    def until(self, holds):
        """As wait_for(), and the load has met no error."""
        def holds_or_failed():
            return self.load.failure or self.fio.failure or holds()
        self.wait_for(holds_or_failed)
        self.expect_no_failure()

    def goes_on(self, requests=100):
        before = self.load.done
        self.until(lambda: self.load.done >= before + requests)

    def is_whole(self):
        return self.volume()["lacking"] == 0

    def kill_round(self, kinds):
        """Kills one process of each kind, at once; then starts them again."""
        time.sleep(self.random.random() * 0.05)  # so that it meets requests at any place
        rounds = []
        for kind in kinds:
            what, _, which = kind.partition(" ")
            rounds.append(getattr(self, f"kill_{what}")(which))
            next(rounds[-1])
        # A flush waits for an arbiter if a leg has failed since the last one.
        begun, told = self.load.done, self.client.log.count("flushes wait")
        self.until(lambda: self.load.done >= begun + 20
                   or self.client.log.count("flushes wait") > told)
        for each in rounds:
            next(each, None)
        self.goes_on()

    # Each kills, yields while it is away, and starts it again.

    def kill_box(self, which):
        """One that keeps what it holds is caught up. What another had goes to others; then it joins
        the pool as a new one does."""
        name = self.random.choice([each for each in sorted(self.boxes) if each.startswith(which)])
        self.boxes[name].kill()
        yield
        self.boxes[name] = self.start_drives(name, self.ports[name])
        if self.KINDS[name] == "mem":
            self.until(lambda: not any(each["extents"] for each in self.drives_of(name)))
        self.until(self.is_whole)
        if self.KINDS[name] == "mem":
            for each in self.drives_of(name):
                self.until(lambda drive=each["id"]: self.removed(drive))
            self.add_to_pool(name)

    def removed(self, drive):
        """While it is a member new extents may be placed on it, which leave it again."""
        result = self.run_cairn("pool", "remove", str(drive), "--lost", "--yes", *self.to_arbiter)
        if result.returncode:
            self.assertIn("are on drive", result.stderr)
        return result.returncode == 0

    def drives_of(self, box):
        return [each for each in self.drives(*self.to_arbiter) if each["box"] == box]

    def kill_client(self, _which):
        """All boxes live, so the next one has all that it acknowledged, flushed or not."""
        self.load.server.clear()
        self.fio.server_goes()
        self.client.kill()
        self.open_client()
        self.load.server.set()
        self.fio.server.set()
        self.until(self.fio.is_recovered.is_set)
        yield


@unittest.skipIf(MISSING, f"not here: {', '.join(MISSING)}")
class WithEtcd(FioKills):
    """Two arbiters over three members of etcd."""

    def test_fio_sees_nothing_when_any_process_is_killed(self):
        self.etcd = Etcd(self)
        self.to_arbiter = ("--arbiter", f"{self.at('a')},{self.at('b')}")
        self.client_options = "".join(f",arbiter={self.at(name)}" for name in ("a", "b"))
        self.arbiters = {"a": self.start_arbiter("a", self.etcd.uri, "it leads", *LEASE),
                         "b": self.start_arbiter("b", self.etcd.uri, "stands by", *LEASE)}
        self.run_rounds([("client",)] * 4 + [
            (f"arbiter {arbiter}", f"etcd {member}", f"box {box}")
            for arbiter in ("leads", "stands by") for member in ("leader", "follower")
            for box in ("file", "memory")] if TOGETHER else [
                ("box file",), ("box memory",), ("arbiter leads",), ("arbiter stands by",),
                ("etcd leader",), ("etcd follower",), ("client",)])

    def state(self, name):
        """Of an arbiter; None if it does not answer."""
        shown = self.run_cairn("arbiter", "status", "--arbiter", self.at(name), "--json").stdout
        return json.loads(shown)["arbiters"][0].get("state") if shown else None

    def one_leads(self):
        return {self.state("a"), self.state("b")} == {"leads", "stands by"}

    def kill_arbiter(self, which):
        self.until(self.one_leads)
        name = next(each for each in ("a", "b") if self.state(each) == which)
        self.arbiters[name].kill()
        yield
        if which == "leads":
            other = "b" if name == "a" else "a"
            self.until(lambda: self.state(other) == "leads")
        self.arbiters[name] = self.start_arbiter(name, self.etcd.uri, "stands by", *LEASE)
        self.until(self.one_leads)

    def kill_etcd(self, which):
        leader = self.etcd.leader()
        name = leader
        if which != "leader":
            name = self.random.choice([each for each in self.etcd.names if each != leader])
        self.etcd.kill(name)
        yield
        self.etcd.start(name)
        self.until(self.etcd.is_whole)
        self.until(self.one_leads)


@unittest.skipIf(MISSING, f"not here: {', '.join(MISSING)}")
class WithRocks(FioKills):
    """One arbiter, over a folder of its own."""

    def test_fio_sees_nothing_when_any_process_is_killed(self):
        self.to_arbiter = ("--arbiter", self.at("a"))
        self.client_options = f",arbiter={self.at('a')}"
        self.arbiters = {}
        self.start_one()
        self.run_rounds([("box file",), ("box memory",), ("arbiter",), ("client",)])

    def start_one(self):
        self.arbiters["a"] = self.start_arbiter("a", "rocks:pool", "it leads", *LEASE)

    def kill_arbiter(self, _which):
        self.arbiters["a"].kill()
        yield  # blocks that are mapped are written on; others wait
        self.start_one()


if __name__ == "__main__":
    support.main()
