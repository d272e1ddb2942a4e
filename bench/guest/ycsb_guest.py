#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn bench ycsb` in a Linux guest, on ext4, on drives that reach it in several ways.

    ycsb_guest.py --cairn PROGRAM --folder DIR --output FILE [--way NAME]... [--keys 20000]

    fv             QEMU's own emulated NVMe controller on a file
    vh             vhost-user-blk, served by qemu-storage-daemon from that file
    cairn          vhost-user-blk, served by `cairn serve` from that file
    remote_kernel  the guest's own NVMe/TCP host and `cairn serve`, with a file of its own
    remote_cairn   vhost-user-blk, served by `cairn serve` from that box

One guest has a disk for each. The database is loaded once; before each way has its turn, its file
gets the bytes that were there after loading. Writes one JSON object:

    {"accelerator": "tcg", "keys": 20000, "rows": [{"way": "cairn", "workload": "c", "threads": 4,
     "per_second": [..], "read_p50_us": [..], "read_p99_us": [..], "server_cpu_us": [..]}, ...]}

with a number for each round. The processor time is that of the serving processes for each
operation, the opening of the database included; fv has none, because there QEMU itself serves. Or,
with status 1, {"problem": "what is wrong, and what to do"}.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import guest_drives
from guest_drives import (MIB, START_LIMIT_S, SYSTEM_PROGRAMS, GuestBench, add_options, answers_on,
                          run_bench)

WAYS = ("fv", "vh", "cairn", "remote_kernel", "remote_cairn")
LOADS_FIRST = ("cairn", "vh", "fv", "remote_cairn", "remote_kernel")  # the first there is, loads
SIZE_MIB_MIN = 256  # of each file: four times its records, for ext4 and compactions
PROGRAMS = "programs"  # serial number of the disk with our program
NQN = "nqn.2026-11.io.cairn:ycsb-guest"
NEEDED = guest_drives.NEEDED | {"mke2fs": "e2fsprogs", "strip": "binutils", "ldd": "libc-bin"}
RUN_LIMIT_S = 900  # a guest in software, on a machine that does other things too
PERCENTILES = ("p50", "p99", "p999")


def make_programs_disk(program, folder):
    """A small file system with the program and its libraries; returns its path."""
    content = folder / "content"
    content.mkdir()
    subprocess.run(["strip", "-o", content / "cairn", program], check=True)
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    for library in re.findall(r"=> (/\S+)", listed):
        shutil.copy(library, content)
    size = sum(file.stat().st_size for file in content.iterdir())
    disk = folder / "programs"
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", content, disk,
                    f"{size * 5 // 4 // MIB + 8}M"], check=True,
                   env=os.environ | {"PATH": os.environ["PATH"] + SYSTEM_PROGRAMS})
    shutil.rmtree(content)
    return disk


def copy_over(source, target):
    """The bytes of a file into another that is open elsewhere, on the drive and not only cached."""
    with open(source, "rb") as old, open(target, "r+b") as new:
        shutil.copyfileobj(old, new, MIB)
        new.flush()
        os.fsync(new.fileno())


class Bench(GuestBench):
    # --- servers

    def wants(self, *names):
        return any(name in self.options.way for name in names)

    def make_file(self, name):
        path = self.folder / name
        with open(path, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, self.options.size_mib * MIB)
        return path

    def start_servers(self):
        serve = [self.options.cairn, "serve"]
        if self.wants("fv", "vh", "cairn"):
            self.start_local(serve, self.make_file("local"))
        if self.wants("remote_kernel", "remote_cairn"):
            self.start_remote(serve, self.make_file("remote"))

    def start_local(self, serve, file):
        by_qemu = f"driver=file,filename={file},aio=io_uring,cache.direct=on,locking=off"
        if self.wants("fv"):
            self.add_emulated("fv", by_qemu, [], file)
        if self.wants("vh"):
            self.add_vhost("vh", [
                "qemu-storage-daemon", "--blockdev", f"{by_qemu},node-name=file0", "--export",
                "type=vhost-user-blk,id=export0,node-name=file0,writable=on,addr.type=unix,"
                "addr.path=SOCKET"], file)
        if self.wants("cairn"):
            self.add_vhost("cairn", [*serve, f"d0=file:{file}", "--vhost-user", "SOCKET",
                                     "--control", "off"], file)

    def start_remote(self, serve, file):
        box = self.serve("box", [
            self.options.cairn, "serve", "--nvme-tcp", f"127.0.0.1:{self.port}", "--nqn", NQN,
            f"file:{file}", "--control", "off"], lambda: answers_on(self.port))
        if self.wants("remote_kernel"):
            self.add_kernel_host("remote_kernel", NQN, [box], file)
        if self.wants("remote_cairn"):
            self.add_vhost("remote_cairn", [
                *serve, f"d0=nvme-tcp://127.0.0.1:{self.port}/{NQN}", "--vhost-user", "SOCKET",
                "--control", "off"], file, [box])

    # --- the guest

    def boot(self):
        disk = make_programs_disk(self.options.cairn, self.folder)
        self.qemu_args += ["-blockdev", f"driver=file,node-name=programs0,filename={disk},"
                           "read-only=on", "-device",
                           f"virtio-blk-pci,drive=programs0,serial={PROGRAMS}"]
        guest = self.start_guest(limit_s=self.options.limit_s, ends_with_us=True)
        guest.wait_ready()
        guest.check("modprobe -a nvme nvme-tcp ext4", START_LIMIT_S)
        guest.check("mkdir -p /programs; mount -o ro /dev/$(basename $(dirname"
                    f" $(grep -lx {PROGRAMS} /sys/block/vd*/serial))) /programs", START_LIMIT_S)
        self.find_disks(guest)
        return guest

    def ycsb(self, guest, args):
        """Runs our program on what is mounted; returns its results."""
        guest.check("LD_LIBRARY_PATH=/programs /programs/cairn bench ycsb --folder /mnt --json"
                    f" {args} >/tmp/report", RUN_LIMIT_S)
        return json.loads(guest.check("cat /tmp/report"))["results"]

    def mounted(self, guest, way, action):
        guest.check(f"mount -t ext4 -o noatime /dev/{way.disk} /mnt", START_LIMIT_S)
        result = action()
        guest.check(f"umount /mnt; blockdev --flushbufs /dev/{way.disk}", START_LIMIT_S)
        return result

    def load(self, guest):
        """Makes the database by one way, and keeps a copy of all its bytes."""
        way = next(way for name in LOADS_FIRST for way in self.ways if way.name == name)
        self.tell(f"loading {self.options.keys} records by {way.name}")
        guest.check(f"mkfs.ext4 -q -F -b 4096 /dev/{way.disk}", START_LIMIT_S)
        self.mounted(guest, way, lambda: self.ycsb(
            guest, f"--keys {self.options.keys} --workload c --threads 1 --operations 1"))
        loaded = self.folder / "loaded"
        shutil.copyfile(way.file, loaded)
        return loaded

    # --- measurements

    def run(self):
        self.start_servers()
        guest = self.boot()
        loaded = self.load(guest)
        rows = {}
        for number in range(self.options.rounds):
            for way in self.ways:
                copy_over(loaded, way.file)
                guest.check(f"blockdev --flushbufs /dev/{way.disk}")
                self.mounted(guest, way, lambda: self.turn(guest, way, number, rows))
        return {"accelerator": "tcg", "keys": self.options.keys, "seconds": self.options.seconds,
                "rows": list(rows.values())}

    def turn(self, guest, way, number, rows):
        for workload in self.options.workload:
            for threads in self.options.threads:
                self.tell(f"round {number + 1} of {self.options.rounds}: {way.name}, workload"
                          f" {workload}, {threads} threads")
                before = way.cpu_seconds()
                line = self.ycsb(guest, f"--keep --workload {workload} --threads {threads}"
                                        f" --seconds {self.options.seconds} --cache 1M")[0]
                spent = way.cpu_seconds() - before
                row = rows.setdefault((way.name, workload, threads), {
                    "way": way.name, "workload": workload, "threads": threads})
                self.add(row, "per_second", line["value"])
                for side in ("read", "update"):
                    for percentile in PERCENTILES:
                        if (name := f"{side}_{percentile}_us") in line:
                            self.add(row, name, line[name])
                if way.servers:
                    self.add(row, "server_cpu_us", spent * 1e6 / max(line["operations"], 1))

    @staticmethod
    def add(row, name, value):
        row.setdefault(name, []).append(value)


def parse():
    parser = argparse.ArgumentParser(description="RocksDB in a Linux guest, on drives of cairn")
    add_options(parser, room="1 to 2 GiB")
    parser.add_argument("--output", required=True, help="the file to write")
    parser.add_argument("--way", action="append", choices=WAYS, default=[])
    parser.add_argument("--workload", action="append", choices=("a", "b", "c"), default=[])
    parser.add_argument("--threads", action="append", type=int, default=[])
    parser.add_argument("--keys", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3, help="of one run")
    parser.add_argument("--limit-s", type=int, default=3600, help="when QEMU is ended at last")
    options = parser.parse_args()
    options.way = options.way or list(WAYS)
    options.workload = options.workload or ["c", "a"]
    options.threads = options.threads or [1, 4, 16]
    options.size_mib = max(SIZE_MIB_MIN, 4 * options.keys * 1000 // MIB)
    return options


def main():
    options = parse()
    result, status = run_bench(NEEDED, Bench, options)
    pathlib.Path(options.output).write_text(json.dumps(result) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
