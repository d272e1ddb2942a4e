# SPDX-License-Identifier: Apache-2.0
"""What the cases connect to: an NVMe/TCP target that can be started, changed, killed and restarted.

KernelTarget is Linux's own in a guest, CairnBox is `cairn serve` as one. Both listen on a port
of our loopback and keep what was written over kill() and start(). Sizes are in bytes.
"""

import abc
import pathlib
import signal
import socket
import subprocess

import keys_for_tests
from linux_guest import HOST_SEEN_FROM_GUEST, SCRIPTS, Guest, Setup, wait_until

NQN = "nqn.2026-11.io.cairn:interop"
MIB = 1024 * 1024
CONTROL = "box.sock"  # in the folder of its box: others may serve the same name meanwhile
# Namespaces at the start. The first is large enough for mkfs.xfs, which wants 300 MiB.
NAMESPACES = {1: 512 * MIB, 2: 64 * MIB}
# Those that cases add and remove.
SPARE_NAMESPACES = {3: 64 * MIB, 4: 64 * MIB}

START_LIMIT_S = 60
STOP_LIMIT_S = 60


class TargetError(Exception):
    """The target did not do what it was told; says why."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Target(abc.ABC):
    """An NVMe/TCP target with one subsystem; GuestError or TargetError when an act fails."""

    name: str           # in the words of the report
    nqn = NQN
    address = "127.0.0.1"
    address_for_guests = HOST_SEEN_FROM_GUEST  # what the discovery log must report to guests

    def __init__(self):
        self.port = free_port()

    @abc.abstractmethod
    def start(self):
        """Returns when hosts can connect. After stop() or kill(): with all that was stored."""

    @abc.abstractmethod
    def stop(self):
        """Ends it in order; returns when it has ended."""

    @abc.abstractmethod
    def kill(self):
        """Ends it at once, with no chance to do anything about it."""

    def restart(self):
        self.stop()
        self.start()

    @abc.abstractmethod
    def add_namespace(self, nsid, size, service=None):
        """While hosts are connected, as are the next two; with a service of a stack above it."""

    @abc.abstractmethod
    def remove_namespace(self, nsid):
        pass

    @abc.abstractmethod
    def resize_namespace(self, nsid, size):
        pass

    @abc.abstractmethod
    def trouble(self):
        """What went wrong on its side although nobody was told (a crash, a warning), or None."""

    def why_not_case(self, case):
        """Why this target cannot take part in a case, or None."""
        return None


class KernelTarget(Target):
    """The kernel's nvmet in a guest. Namespaces are disks of the guest, files on our side.

    The guest's network is another one than that of the hosts' guests: so it can call 10.0.2.2 its
    own, the address under which they find our loopback, and report it in its discovery log.
    """

    ADVERTISED = (HOST_SEEN_FROM_GUEST,)

    def __init__(self, cache, folder, kernel):
        super().__init__()
        self.name = f"kernel {kernel} target"
        self._cache, self._folder, self._kernel = cache, pathlib.Path(folder), kernel
        self._guest = None

    def start(self):
        self._folder.mkdir(parents=True, exist_ok=True)
        disks = []
        for nsid, size in (NAMESPACES | SPARE_NAMESPACES).items():
            if not self._disk(nsid).exists():
                self._disk(nsid).touch()
                self._truncate(nsid, size)
            disks += ["-drive", f"file={self._disk(nsid)},format=raw,if=none,id=ns{nsid},"
                      "cache=writeback,discard=unmap",
                      "-device", f"virtio-blk-pci,drive=ns{nsid},serial=ns{nsid},romfile="]
        setup = Setup(kernel=self._kernel, script=SCRIPTS / "nvmet.sh", network="10.0.3",
                      memory_mib=512, forwards=self._forwards(), qemu_args=tuple(disks))
        self._guest = Guest.boot(self._cache, self._folder / "target", setup)
        self._configure()

    def _forwards(self):
        return ((self.port, HOST_SEEN_FROM_GUEST, self.port),)

    def _configure(self):
        self._do("up", HOST_SEEN_FROM_GUEST)
        self._do("subsystem", self.nqn)
        for nsid in NAMESPACES:
            self._do("namespace", self.nqn, nsid, f"ns{nsid}")
        self._do("port", 1, HOST_SEEN_FROM_GUEST, self.port, 16384, self.nqn)

    def _do(self, verb, *args):
        self._guest.check(" ".join(map(str, (f"nvmet_{verb}", *args))))

    def _disk(self, nsid):
        return self._folder / f"ns{nsid}.raw"

    def _truncate(self, nsid, size):
        with self._disk(nsid).open("r+b") as disk:
            disk.truncate(size)

    def stop(self):
        self._guest.stop()

    def kill(self):
        if self._guest:
            self._guest.kill()

    def add_namespace(self, nsid, size, service=None):
        if service:
            raise TargetError(f"the kernel's target has no {service} drives")
        self._resize_disk(nsid, size)
        self._do("namespace", self.nqn, nsid, f"ns{nsid}")

    def remove_namespace(self, nsid):
        self._do("namespace_remove", self.nqn, nsid)

    def resize_namespace(self, nsid, size):
        self._resize_disk(nsid, size)
        self._do("namespace_resized", self.nqn, nsid, f"ns{nsid}", size)

    def _resize_disk(self, nsid, size):
        said = self._guest.monitor(f"block_resize ns{nsid} {size}B")
        if said:
            raise TargetError(f"QEMU cannot resize the disk: {said}")

    def trouble(self):
        return self._guest.crash()


class AnaTarget(KernelTarget):
    """The kernel's target as our host meets it, at two ports of our loopback.

    Namespaces 1 and 2 are in ANA group 1, namespace 3 is in group 2. Each port is the better way to
    one of the groups: the first to group 1, the second to group 2.
    """

    def __init__(self, cache, folder, kernel, in_capsule_bytes=16384):
        super().__init__(cache, folder, kernel)
        self.second_port = free_port()
        self._in_capsule_bytes = in_capsule_bytes

    def _forwards(self):
        return tuple((port, self.address, port) for port in (self.port, self.second_port))

    def _configure(self):
        self._do("up")
        self._do("subsystem", self.nqn)
        for nsid, group in {1: 1, 2: 1, 3: 2}.items():
            self._do("namespace", self.nqn, nsid, f"ns{nsid}", group)
        if self._kernel != "6.1":
            for hash_name, group in keys_for_tests.MEANS:
                self._do("subsystem", f"{self.nqn}-{hash_name}-{group}")
                self._do("namespace", f"{self.nqn}-{hash_name}-{group}", 1, "ns1")
        for number, port in enumerate((self.port, self.second_port), 1):
            self._do("port", number, self.address, port, self._in_capsule_bytes, self.nqn)
            for group in (1, 2):
                state = "optimized" if group == number else "non-optimized"
                self.set_ana_state(number, group, state)

    def demand_keys(self, hash_name, group, mutual):
        """Serves a subsystem, whose name is returned, to the host that has the key."""
        nqn = f"{self.nqn}-{hash_name}-{group}"
        controller_key = keys_for_tests.CONTROLLER if mutual else "none"
        self._do("host", nqn, keys_for_tests.HOST_NQN, hash_name, group, keys_for_tests.HOST,
                 controller_key)
        return nqn

    def set_ana_state(self, port_number, group, state):
        """The hosts are told. `state` is a word of nvmet: optimized, inaccessible, ..."""
        self._do("ana", port_number, group, state)


class CairnBox(Target):
    """`cairn serve`: its first namespace on a file, the others in memory and in small blocks."""

    name = "cairn serve"

    def __init__(self, program, folder):
        super().__init__()
        self._program, self._folder = pathlib.Path(program), pathlib.Path(folder)
        self._process = None

    @staticmethod
    def why_not(program):
        """Why this program cannot serve yet, or None."""
        return why_no_command(program, "serve")

    def why_not_case(self, case):
        return (why_no_command(self._program, "drive", "add")
                if case.startswith("namespace_") else None)

    def command(self):
        folder = self._folder.resolve()
        drives = [self._drive(folder, nsid, size) for nsid, size in NAMESPACES.items()]
        config = folder / "box.toml"
        config.write_text(keys_for_tests.box_config(self.nqn, folder))
        args = [self._program, "serve", "--config", config, "--nqn", self.nqn,
                 "--control", CONTROL, "--nvme-tcp", f"{self.address}:{self.port}",
                 "--advertise", f"{self.address_for_guests}:{self.port}"]
        for drive in drives:
            args += [drive]
        return [str(word) for word in args]

    @staticmethod
    def _drive(folder, nsid, size):
        return f"file:{folder}/ns1.raw,size={size}" if nsid == 1 else f"mem:size={size},block=512"

    def start(self):
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "box.log").open("a") as log:
            self._process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=log, cwd=self._folder)
        wait_until(self._listens, START_LIMIT_S, f"cairn serve listening on port {self.port}")

    def _listens(self):
        if self._process.poll() is not None:
            raise TargetError(f"cairn serve ended with {self._process.returncode}: {self._last()}")
        with socket.socket() as probe:
            return probe.connect_ex((self.address, self.port)) == 0

    def _last(self):
        lines = (self._folder / "box.log").read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"

    def stop(self):
        self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TargetError(f"cairn serve did not end within {STOP_LIMIT_S} s of SIGTERM")
        if status:
            raise TargetError(f"cairn serve ended with {status} on SIGTERM: {self._last()}")

    def kill(self):
        if self._process and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def add_namespace(self, nsid, size, service=None):
        drive = f"mem:size={size}"
        self._drive_verb("add", "--nsid", nsid, f"{service}({drive})" if service else drive)

    def remove_namespace(self, nsid):
        self._drive_verb("remove", f"d{nsid - 1}", "--yes")

    def resize_namespace(self, nsid, size):
        self._drive_verb("resize", f"d{nsid - 1}", size, "--yes")

    def _drive_verb(self, verb, *args):
        command = [self._program, "drive", verb, "--control", CONTROL, "--nqn", self.nqn,
                   *args]
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                                cwd=self._folder, timeout=START_LIMIT_S)
        if result.returncode:
            raise TargetError(f"cairn drive {verb} ended with {result.returncode}:"
                              f" {result.stderr.strip()}")

    def trouble(self):
        if self._process.poll() is not None:
            return f"cairn serve ended with {self._process.returncode}: {self._last()}"
        return None


def why_no_command(program, *args):
    """Why `program args` does not exist yet, or None when it does."""
    try:
        result = subprocess.run([program, *args, "--help"], capture_output=True, timeout=20)
    except OSError as error:
        return f"{program} cannot run: {error.strerror}"
    return f"{program} knows no command '{' '.join(args)}' yet" if result.returncode else None
