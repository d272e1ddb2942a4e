#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fio in a Linux guest, on drives that reach it in several ways.

    guest_bench.py --cairn PROGRAM --folder DIR [--cache DIR] [--rounds 3] [--seconds 2]

One guest has one disk per way. `cairn drive serve --vhost-user` and qemu-storage-daemon, twice,
export the same file; another `cairn drive serve` has a second file of the same size at its NBD and
NVMe/TCP doors, which QEMU's emulated NVMe controller and the guest's own nvme-tcp host use. In each
round every way carries every job once. Prints one JSON object:

    {"accelerator": "tcg", "rows": [{"job": "randread4k_qd1", "way": "vhost_user",
     "iops": [..], "io_per_cpu_second": [..], "p50_us": [..], "p99_us": [..]}, ...]}

with a number for each round; the processor time is that of the serving process. Or, with status 1,
{"problem": "what is wrong, and what to do"}.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "interop"))
from linux_guest import (HOST_SEEN_FROM_GUEST, Guest, GuestError, Setup,  # noqa: E402
                         default_cache, wait_until)

MIB = 1 << 20
FILE_MIB = 128
FIRST_PLACE = 16  # of vhost-user disks on the guest's PCI bus
SERIAL = "emulated"
NQN = "nqn.2026-11.io.cairn:guest-bench"
NEEDED = {"qemu-system-x86_64": "qemu-system-x86", "qemu-storage-daemon": "qemu-system-common",
          "setpriv": "util-linux", "taskset": "util-linux"}
START_LIMIT_S = 60
JOB_LIMIT_S = 300  # a guest in software, on a machine that does other things too


class Problem(Exception):
    """What is wrong, as a sentence for the user."""


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    words: str  # for fio


JOBS = (
    Job("randread4k_qd1", "--rw=randread --bs=4k --iodepth=1"),
    Job("randread4k_qd32", "--rw=randread --bs=4k --iodepth=32"),
    Job("randwrite4k_qd32", "--rw=randwrite --bs=4k --iodepth=32"),
    Job("mixed4k_qd32", "--rw=randrw --rwmixread=70 --bs=4k --iodepth=32"),
    Job("read128k_qd8", "--rw=read --bs=128k --iodepth=8"),
)


@dataclasses.dataclass
class Way:
    """How a drive reaches the guest: who serves it, and the disk the guest has of it."""
    name: str
    server: "Server"
    disk: str = ""


class Server:
    """A process that serves at a local socket until it is stopped, or we are gone."""

    def __init__(self, words, socket_path, cpu, log):
        self._log = log
        with open(log, "w") as output:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "taskset", "-c", str(cpu), *map(str, words)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            wait_until(lambda: self._accepts(socket_path), START_LIMIT_S, f"{words[0]} serves")
        except GuestError as error:
            self.stop()
            raise Problem(str(error)) from error

    def _accepts(self, path):
        if self._process.poll() is not None:
            said = pathlib.Path(self._log).read_text(errors="replace").strip().splitlines()
            raise Problem(f"a server ended with {self._process.returncode}: "
                          f"{said[-1] if said else 'it said nothing'}")
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(path)) == 0

    def cpu_seconds(self):
        """Of all its threads, those that have ended too; as clock_getcpuclockid(3) has it."""
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def stop(self):
        self._process.terminate()
        self._process.wait()


def check_machine():
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if missing:
        packages = " ".join(sorted({NEEDED[program] for program in missing}))
        raise Problem(f"a guest is needed, and {', '.join(missing)} cannot be found: apt-get"
                      f" install {packages}, or all of [interop] in packages.txt")


def make_file(path):
    """Full of data: a hole would be read without a disk."""
    with open(path, "wb") as file:
        for _ in range(FILE_MIB):
            file.write(os.urandom(MIB))
        file.flush()
        os.fsync(file.fileno())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def vhost_device(number, path):
    return ["-chardev", f"socket,id=chardev{number},path={path}", "-device",
            f"vhost-user-blk-pci,chardev=chardev{number},num-queues=1,"
            f"addr={FIRST_PLACE + number:x}"]


class Bench:
    def __init__(self, options, stack):
        self.options = options
        self.folder = pathlib.Path(options.folder).resolve()
        self.stack = stack
        self.ways = []
        self.qemu_args = []
        self.port = free_port()

    def serve(self, name, words, path):
        server = Server(words, path, self.options.server_cpu, self.folder / f"{name}.log")
        self.stack.callback(server.stop)
        return server

    def add_vhost(self, name, words):
        path = self.folder / f"{name}.sock"
        server = self.serve(name, [word.replace("SOCKET", str(path)) for word in words], path)
        self.qemu_args += vhost_device(len(self.ways), path)
        self.ways.append(Way(name, server))

    def start_servers(self):
        first, second = self.folder / "first", self.folder / "second"
        make_file(first)
        make_file(second)
        cairn = [self.options.cairn, "drive", "serve"]
        place = ["--control", "off", "--cores", str(self.options.server_cpu)]
        self.add_vhost("vhost_user", [*cairn, f"d0=file:{first}", "--vhost-user", "SOCKET", *place])
        for aio in ("io_uring", "threads"):
            self.add_vhost(f"vhost_user_qsd_{aio}", [
                "qemu-storage-daemon", "--blockdev",
                f"driver=file,node-name=file0,filename={first},aio={aio},cache.direct=on,"
                "locking=off",
                "--export", "type=vhost-user-blk,id=export0,node-name=file0,writable=on,"
                "addr.type=unix,addr.path=SOCKET"])
        nbd = self.folder / "nbd.sock"
        server = self.serve("nbd", [
            *cairn, f"d0=file:{second}", "--nbd", f"unix:{nbd}", "--nvme-tcp",
            f"127.0.0.1:{self.port}", "--nqn", NQN, *place], nbd)
        self.qemu_args += ["-blockdev", f"driver=nbd,node-name=nbd0,server.type=unix,"
                           f"server.path={nbd},export=d0,cache.direct=on", "-device",
                           f"nvme,drive=nbd0,serial={SERIAL}"]
        self.ways.append(Way("nbd_emulated_nvme", server))
        self.ways.append(Way("nvme_tcp", server))

    def boot(self):
        setup = Setup(kernel=self.options.kernel, shared_memory=True, cpus=1,
                      qemu_args=tuple(self.qemu_args))
        guest = Guest.start(self.options.cache, self.folder / "guest", setup)
        self.stack.callback(guest.kill)
        os.sched_setaffinity(self.qemu_pid(guest), {self.options.client_cpu})
        guest.wait_ready()
        guest.check("modprobe -a nvme nvme-tcp")
        self.find_disks(guest)
        return guest

    def qemu_pid(self, guest):
        def pid():
            with contextlib.suppress(OSError, ValueError):
                return int((guest.folder / "pid").read_text())
            if not guest.alive():
                raise Problem("QEMU did not start: "
                              + (guest.folder / "qemu").read_text(errors="replace")[-300:])
            return 0
        return wait_until(pid, START_LIMIT_S, "QEMU starts")

    def find_disks(self, guest):
        """Devices come up in any order: a disk is known by its place or by who has it."""
        controller = ("/sys/class/nvme/$(basename $(dirname "
                      "$(grep -lx {} /sys/class/nvme/nvme*/{})))")
        for number, way in enumerate(self.ways):
            if way.name == "nbd_emulated_nvme":
                where = controller.format(SERIAL + "\\ *", "serial")
            elif way.name == "nvme_tcp":
                guest.check(f"nvme connect -t tcp -a {HOST_SEEN_FROM_GUEST} -s {self.port} -n {NQN}"
                            " >/dev/null", JOB_LIMIT_S)
                where = controller.format(NQN, "subsysnqn")
            else:
                where = f"/sys/bus/pci/devices/0000:00:{FIRST_PLACE + number:02x}.0/virtio*/block"
            way.disk = self.wait_for_disk(guest, where)

    @staticmethod
    def wait_for_disk(guest, where):
        """With multipath the folder of a controller has nvme0c1n1 for what is used as nvme0n1."""
        def disk():
            found = guest.run(f"ls {where} | grep -E '^(vd[a-z]|nvme[0-9]+(c[0-9]+)?n1)$'")[1]
            return re.sub(r"c\d+n", "n", found.strip())
        return wait_until(disk, START_LIMIT_S, f"a disk at {where}")

    def run(self):
        self.start_servers()
        guest = self.boot()
        rows = {(job.name, way.name): {"job": job.name, "way": way.name, "iops": [],
                                       "io_per_cpu_second": [], "p50_us": [], "p99_us": []}
                for job in JOBS for way in self.ways}
        for number in range(self.options.rounds):
            for job in JOBS:
                for way in self.ways:
                    print(f"guest: round {number + 1} of {self.options.rounds}: {job.name}"
                          f" {way.name}", file=sys.stderr)
                    self.measure(guest, job, way, rows[job.name, way.name])
        return {"accelerator": "tcg", "rows": list(rows.values())}

    def measure(self, guest, job, way, row):
        command = (f"fio --name=j --filename=/dev/{way.disk} --direct=1 --ioengine=libaio"
                   f" {job.words} --time_based --runtime={int(self.options.seconds * 1000)}ms"
                   " --randrepeat=1 --norandommap --percentile_list=50:99 --eta=never"
                   " --output-format=json --output=/tmp/fio")
        before = way.server.cpu_seconds()
        guest.check(command, JOB_LIMIT_S)
        spent = way.server.cpu_seconds() - before
        report = json.loads(guest.check("sed -n '/^{/,$p' /tmp/fio"))["jobs"][0]
        sides = [report[side] for side in ("read", "write") if report[side]["total_ios"] > 0]
        requests = sum(side["total_ios"] for side in sides)
        if requests == 0:
            raise Problem(f"fio did no request in {job.name} on {way.name}: give it more seconds")
        busiest = max(sides, key=lambda side: side["total_ios"])
        percentiles = busiest["clat_ns"]["percentile"]
        row["iops"].append(sum(side["iops"] for side in sides))
        row["io_per_cpu_second"].append(requests / max(spent, 1e-6))
        row["p50_us"].append(percentiles["50.000000"] / 1000)
        row["p99_us"].append(percentiles["99.000000"] / 1000)


def main():
    parser = argparse.ArgumentParser(description="fio in a Linux guest, on drives of cairn")
    parser.add_argument("--cairn", required=True, help="the program")
    parser.add_argument("--folder", required=True, help="an empty folder with room for 512 MiB")
    parser.add_argument("--cache", default=default_cache(), help="where guests are kept")
    parser.add_argument("--kernel", default="6.12")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--server-cpu", type=int, default=0)
    parser.add_argument("--client-cpu", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and whoever was started ends too
    try:
        check_machine()
        with contextlib.ExitStack() as stack:
            result = Bench(options, stack).run()
    except (Problem, GuestError, OSError) as error:
        print(json.dumps({"problem": str(error)}))
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
