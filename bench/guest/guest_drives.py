# SPDX-License-Identifier: Apache-2.0
"""Drives that reach one Linux guest in several ways, for benchmarks that run in it.

A benchmark is a subclass of GuestBench: it starts servers, adds a way for each disk, boots the
guest, and measures. run_bench() makes one JSON object of it, or {"problem": "what is wrong, and
what to do"}.
"""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "interop"))
from linux_guest import (HOST_SEEN_FROM_GUEST, Guest, GuestError, Setup,  # noqa: E402
                         default_cache, wait_until)

MIB = 1 << 20
FIRST_PLACE = 16  # of vhost-user disks on the guest's PCI bus
SYSTEM_PROGRAMS = ":/usr/sbin"  # where a user's PATH does not look
NEEDED = {"qemu-system-x86_64": "qemu-system-x86", "qemu-storage-daemon": "qemu-system-common",
          "setpriv": "util-linux", "taskset": "util-linux"}
START_LIMIT_S = 120  # a guest in software, on a machine that does other things too


class Problem(Exception):
    """What is wrong, as a sentence for the user."""


class Server:
    """A process that serves until it is stopped, or we are gone; `accepts` says when it does."""

    def __init__(self, args, log, accepts, cpu=None):
        self._log = log
        pinned = [] if cpu is None else ["taskset", "-c", str(cpu)]
        with open(log, "w") as output:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *pinned, *map(str, args)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            wait_until(lambda: self._lives() and accepts(), START_LIMIT_S, f"{args[0]} serves")
        except (GuestError, Problem) as error:
            self.stop()
            raise Problem(str(error)) from error

    def _lives(self):
        if self._process.poll() is None:
            return True
        said = pathlib.Path(self._log).read_text(errors="replace").strip().splitlines()
        raise Problem(f"a server ended with {self._process.returncode}: "
                      f"{said[-1] if said else 'it said nothing'}")

    def cpu_seconds(self):
        """Of all its threads, those that have ended too; as clock_getcpuclockid(3) has it."""
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def stop(self):
        self._process.terminate()
        self._process.wait()


@dataclasses.dataclass
class Way:
    """How a drive reaches the guest: who serves it, and the disk the guest has of it."""
    name: str
    servers: list
    found_at: str                     # the folder in the guest that names the disk
    file: pathlib.Path | None = None  # with its bytes
    nqn: str | None = None            # by the guest's own NVMe/TCP host, from this subsystem
    disk: str = ""

    def cpu_seconds(self):
        return sum(server.cpu_seconds() for server in self.servers)


def answers_at(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def answers_on(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def controller_with(attribute, line):
    """The folder of the NVMe controller whose attribute has that line."""
    return f"/sys/class/nvme/$(basename $(dirname $(grep -lx '{line}'" \
           f" /sys/class/nvme/nvme*/{attribute})))"


def check_machine(needed):
    missing = [program for program in needed
               if shutil.which(program, path=os.environ.get("PATH", "") + SYSTEM_PROGRAMS) is None]
    if missing:
        packages = " ".join(sorted({needed[program] for program in missing}))
        raise Problem(f"a guest is needed, and {', '.join(missing)} cannot be found: apt-get"
                      f" install {packages}, or all of [interop] in packages.txt")


class GuestBench:
    """Ways to one guest; the stack of contexts ends what it starts."""

    def __init__(self, options, stack, server_cpu=None):
        self.options = options
        self.folder = pathlib.Path(options.folder).resolve()
        self.stack = stack
        self.server_cpu = server_cpu
        self.ways = []
        self.qemu_args = []
        self.port = free_port()  # of the NVMe/TCP server
        self._chardevs = 0

    def serve(self, name, args, accepts):
        server = Server(args, self.folder / f"{name}.log", accepts, self.server_cpu)
        self.stack.callback(server.stop)
        return server

    def add_vhost(self, name, args, file=None, more_servers=()):
        """A vhost-user disk; SOCKET in the arguments is where it is served."""
        path = self.folder / f"{name}.sock"
        server = self.serve(name, [str(word).replace("SOCKET", str(path)) for word in args],
                            lambda: answers_at(path))
        place = FIRST_PLACE + self._chardevs
        self._chardevs += 1
        self.qemu_args += ["-chardev", f"socket,id=chardev{place},path={path}", "-device",
                           f"vhost-user-blk-pci,chardev=chardev{place},num-queues=1,"
                           f"addr={place:x}"]
        where = f"/sys/bus/pci/devices/0000:00:{place:02x}.0/virtio*/block"
        self.ways.append(Way(name, [server, *more_servers], where, file))

    def add_emulated(self, name, blockdev, servers, file=None):
        """QEMU's own NVMe controller on a block device of QEMU's."""
        self.qemu_args += ["-blockdev", f"{blockdev},node-name={name}", "-device",
                           f"nvme,drive={name},serial={name}"]
        self.ways.append(Way(name, servers, controller_with("serial", f"{name} *"), file))

    def add_kernel_host(self, name, nqn, servers, file=None):
        """The guest's own NVMe/TCP host, to what listens at our port."""
        self.ways.append(Way(name, servers, controller_with("subsysnqn", nqn), file, nqn))

    def start_guest(self, **setup):
        guest = Guest.start(self.options.cache, self.folder / "guest", Setup(
            kernel=self.options.kernel, shared_memory=True, cpus=1,
            qemu_args=tuple(self.qemu_args), **setup))
        self.stack.callback(guest.kill)
        return guest

    def find_disks(self, guest):
        """Devices come up in any order: a disk is known by its place or by who has it."""
        for way in self.ways:
            if way.nqn is not None:
                guest.check(f"nvme connect -t tcp -a {HOST_SEEN_FROM_GUEST} -s {self.port}"
                            f" -n {way.nqn} >/dev/null", START_LIMIT_S)
            way.disk = wait_until(lambda where=way.found_at: self._disk_at(guest, where),
                                  START_LIMIT_S, f"a disk at {way.found_at}")

    @staticmethod
    def _disk_at(guest, where):
        """With multipath the folder of a controller has nvme0c1n1 for what is used as nvme0n1."""
        found = guest.run(f"ls {where} | grep -E '^(vd[a-z]|nvme[0-9]+(c[0-9]+)?n1)$'")[1]
        return re.sub(r"c\d+n", "n", found.strip())

    @staticmethod
    def tell(what):
        print(f"guest: {what}", file=sys.stderr, flush=True)


def add_options(parser, room):
    parser.add_argument("--cairn", required=True, help="the program")
    parser.add_argument("--folder", required=True, help=f"an empty folder with room for {room}")
    parser.add_argument("--cache", default=default_cache(), help="where guests are kept")
    parser.add_argument("--kernel", default="6.12")


def run_bench(needed, bench, options):
    """What `bench(options, stack).run()` returns, or what the problem is; and an exit status."""
    try:
        check_machine(needed)
        with contextlib.ExitStack() as stack:
            return bench(options, stack).run(), 0
    except (Problem, GuestError, OSError, subprocess.CalledProcessError, ValueError) as error:
        return {"problem": str(error)}, 1
