#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fio in a Linux guest, on drives that reach it in several ways.

    guest_bench.py --cairn PROGRAM --folder DIR [--cache DIR] [--rounds 3] [--seconds 2]

One guest has one disk per way. `cairn serve --vhost-user` and qemu-storage-daemon, twice,
export the same file; another `cairn serve` has a second file of the same size at its NBD and
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
import signal
import sys

from guest_drives import (MIB, NEEDED, START_LIMIT_S, GuestBench, Problem, add_options,
                          answers_at, run_bench, wait_until)

FILE_MIB = 128
NQN = "nqn.2026-11.io.cairn:guest-bench"
JOB_LIMIT_S = 300  # a guest in software, on a machine that does other things too


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    args: str  # for fio


JOBS = (
    Job("randread4k_qd1", "--rw=randread --bs=4k --iodepth=1"),
    Job("randread4k_qd32", "--rw=randread --bs=4k --iodepth=32"),
    Job("randwrite4k_qd32", "--rw=randwrite --bs=4k --iodepth=32"),
    Job("mixed4k_qd32", "--rw=randrw --rwmixread=70 --bs=4k --iodepth=32"),
    Job("read128k_qd8", "--rw=read --bs=128k --iodepth=8"),
)


def make_file(path):
    """Full of data: a hole would be read without a disk."""
    with open(path, "wb") as file:
        for _ in range(FILE_MIB):
            file.write(os.urandom(MIB))
        file.flush()
        os.fsync(file.fileno())


class Bench(GuestBench):
    def __init__(self, options, stack):
        super().__init__(options, stack, options.server_cpu)

    def start_servers(self):
        first, second = self.folder / "first", self.folder / "second"
        make_file(first)
        make_file(second)
        cairn = [self.options.cairn, "serve"]
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
            f"127.0.0.1:{self.port}", "--nqn", NQN, *place], lambda: answers_at(nbd))
        self.add_emulated("nbd_emulated_nvme", f"driver=nbd,server.type=unix,server.path={nbd},"
                          "export=d0,cache.direct=on", [server])
        self.add_kernel_host("nvme_tcp", NQN, [server])

    def boot(self):
        guest = self.start_guest()
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

    def run(self):
        self.start_servers()
        guest = self.boot()
        rows = {(job.name, way.name): {"job": job.name, "way": way.name, "iops": [],
                                       "io_per_cpu_second": [], "p50_us": [], "p99_us": []}
                for job in JOBS for way in self.ways}
        for number in range(self.options.rounds):
            for job in JOBS:
                for way in self.ways:
                    self.tell(f"round {number + 1} of {self.options.rounds}: {job.name} {way.name}")
                    self.measure(guest, job, way, rows[job.name, way.name])
        return {"accelerator": "tcg", "rows": list(rows.values())}

    def measure(self, guest, job, way, row):
        command = (f"fio --name=j --filename=/dev/{way.disk} --direct=1 --ioengine=libaio"
                   f" {job.args} --time_based --runtime={int(self.options.seconds * 1000)}ms"
                   " --randrepeat=1 --norandommap --percentile_list=50:99 --eta=never"
                   " --output-format=json --output=/tmp/fio")
        before = way.cpu_seconds()
        guest.check(command, JOB_LIMIT_S)
        spent = way.cpu_seconds() - before
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
    add_options(parser, room="512 MiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--server-cpu", type=int, default=0)
    parser.add_argument("--client-cpu", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and whoever was started ends too
    result, status = run_bench(NEEDED, Bench, options)
    print(json.dumps(result))
    return status


if __name__ == "__main__":
    sys.exit(main())
