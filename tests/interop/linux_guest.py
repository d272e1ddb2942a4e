# SPDX-License-Identifier: Apache-2.0
"""Linux guests under QEMU, in software: boot one, run commands in it, cut its link, kill it.

A guest lives in a folder of its own that any process may attach to:

    out        what the script in the guest prints; lines that start with @@ are the protocol below
    in         a pipe: what the script reads
    console    the kernel's log
    monitor    QEMU's monitor, a socket
    pid        of QEMU
    qemu       the command line and what QEMU said

The script calls `serve` (guest/lib.sh), which prints @@READY and then runs each line `ID COMMAND`,
printing @@DONE ID STATUS after it. Meanwhile the command may print `@@ASK WORDS`: it waits until
the one who sent it has acted on WORDS and answered `STATUS REASON`.
"""

import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time

SCRIPTS = pathlib.Path(__file__).resolve().parent / "guest"
KERNELS = ("6.1", "6.12")
HOST_SEEN_FROM_GUEST = "10.0.2.2"  # QEMU's user network: there the guest finds our loopback
STATUS_CANNOT = 77                 # of a command: the guest's kernel cannot do that

POLL_S = 0.02
BOOT_LIMIT_S = 300  # a boot takes 5 s of a processor
STOP_LIMIT_S = 60
# la57: five-level paging is slow when emulated. cx16: QEMU 7.2 now and then leaves the wrong flags
# behind a cmpxchg16b, and the kernel's allocator, which uses it if it may, ends in a double fault.
CPU = "max,la57=off,cx16=off"
# QEMU 7.2 leaves out a guest's memory barriers when the guest can have one processor only, although
# its devices run beside it: a disk then misses a request now and then, and the guest hangs.
CPUS_MAX = 2
CRASH = re.compile(r"Kernel panic - .*|double fault.*|Oops: .*|BUG: .*|general protection fault.*")


class GuestError(Exception):
    """The guest could not be started or spoken to; says why."""


@dataclasses.dataclass(frozen=True)
class Setup:
    """How to boot a guest. `script` None boots to a shell on the terminal."""
    kernel: str = "6.12"                 # SERIES or SERIES-FLAVOUR
    script: pathlib.Path | None = SCRIPTS / "hold.sh"
    environment: dict = dataclasses.field(default_factory=dict)
    files: tuple = ()                    # to be found in the guest's /test
    network: str | None = "10.0.2"       # first three numbers of its network; None for no card
    forwards: tuple = ()                 # (port of our loopback, guest address, guest port)
    memory_mib: int = 768
    cpus: int = 1
    shared_memory: bool = False          # as vhost-user devices need
    kernel_options: tuple = ()           # also for parts that are modules in another kernel
    limit_s: int = 1800                  # QEMU is ended after that, whatever becomes of us
    ends_with_us: bool = False           # QEMU is ended when we are, even by a signal
    qemu_args: tuple = ()


def default_cache():
    """Where guest-run keeps guests: CAIRN_GUESTS, or below the build folder of this checkout."""
    build_folder = pathlib.Path(__file__).resolve().parents[2] / "build"
    return pathlib.Path(os.environ.get("CAIRN_GUESTS", build_folder / "interop/guests"))


def named_folder(name):
    """The folder of a guest of guest-run; a path stands for itself."""
    return pathlib.Path(name) if "/" in name else default_cache() / "run" / name


def wait_until(condition, limit_s, what):
    """Returns the first true value of condition(); GuestError naming `what` after limit_s."""
    deadline = time.monotonic() + limit_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise GuestError(f"{what}: not within {limit_s} s")
        time.sleep(POLL_S)
    return value


def image_folder(cache, kernel):
    return pathlib.Path(cache).resolve() / (kernel if "-" in kernel else f"{kernel}-cloud")


def build(cache, kernel):
    """Makes sure that the guest's kernel and initramfs are in the cache; returns their folder."""
    image = image_folder(cache, kernel)
    series, _, flavour = image.name.partition("-")
    command = [SCRIPTS / "mkguest", "-k", series, "-f", flavour, "-c", cache]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode:
        raise GuestError(f"mkguest failed: {result.stdout.strip()}")
    return image


def qemu_command(cache, folder, setup):
    image = image_folder(cache, setup.kernel)
    memory = ["-machine", "q35", "-m", str(setup.memory_mib)]
    if setup.shared_memory:
        memory = ["-machine", "q35,memory-backend=memory", "-m", str(setup.memory_mib), "-object",
                  f"memory-backend-memfd,id=memory,size={setup.memory_mib}M,share=on"]
    network = []
    if setup.network:
        forwards = "".join(f",hostfwd=tcp:127.0.0.1:{port}-{address}:{guest_port}"
                           for port, address, guest_port in setup.forwards)
        network = ["-netdev", f"user,id=net,net={setup.network}.0/24,ipv6=off{forwards}",
                   "-device", "virtio-net-pci,netdev=net,id=nic,romfile="]
    # Self tests, audit and mitigations cost seconds of emulation and prove nothing here. On a busy
    # machine the kernel would take a late tick for a broken timer, and panic.
    kernel_options = " ".join((
        "console=ttyS0 panic=-1 no_timer_check tsc=reliable mitigations=off audit=0",
        "cryptomgr.notests=1 random.trust_cpu=on rcupdate.rcu_expedited=1 loglevel=6",
        *setup.kernel_options))
    args = ["qemu-system-x86_64", "-name", folder.name, "-accel", "tcg,thread=multi",
             "-cpu", CPU, "-smp", f"{setup.cpus},maxcpus={max(setup.cpus, CPUS_MAX)}", *memory,
             "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
             "-pidfile", folder / "pid", "-kernel", image / "vmlinuz", "-initrd", folder / "initrd",
             "-append", kernel_options,
             "-monitor", f"unix:{folder}/monitor,server=on,wait=off",
             "-serial", f"file:{folder}/console", "-serial", "stdio", *network, *setup.qemu_args]
    return [str(word) for word in args]


def _write_initrd(image, folder, setup):
    """The image's initramfs followed by one with the folder /test."""
    test = folder / "initrd.d" / "test"
    test.mkdir(parents=True)
    for file in setup.files:
        shutil.copy(file, test)
    if setup.script:
        shutil.copy(setup.script, test / "script")
    environment = dict(setup.environment)
    if setup.network:
        environment |= {"GUEST_IP": f"{setup.network}.15", "GUEST_GATEWAY": f"{setup.network}.2"}
    else:
        environment["GUEST_IP"] = "none"
    (test / "env").write_text("".join(
        f"export {name}={shlex.quote(str(value))}\n" for name, value in environment.items()))
    names = "\0".join(["test", *(f"test/{path.name}" for path in sorted(test.iterdir()))])
    extra = subprocess.run(["cpio", "--null", "-o", "-H", "newc", "-R", "0:0", "--quiet"],
                           cwd=test.parent, input=names.encode(), stdout=subprocess.PIPE,
                           check=True).stdout
    shutil.rmtree(test.parent)
    shutil.copyfile(image / "initrd.cpio", folder / "initrd")
    with (folder / "initrd").open("ab") as initrd:
        initrd.write(extra)


def prepare(cache, folder, setup):
    """Empties the folder of a guest and puts its initramfs there; returns its absolute path."""
    image = build(cache, setup.kernel)
    folder = pathlib.Path(folder).resolve()
    if folder.exists():
        _end_left_over(folder)
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    _write_initrd(image, folder, setup)
    return folder


def _end_left_over(folder):
    """Ends the QEMU of an earlier test that was killed before it could clean up."""
    try:
        pid = int((folder / "pid").read_text())
        args = pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except (OSError, ValueError):
        return
    if str(folder / "pid") in args:
        os.kill(pid, signal.SIGKILL)


class Guest:
    """A guest that serves. Not for several threads; one process at a time sends commands."""

    def __init__(self, folder, process=None):
        """Attaches to the guest in `folder`; Guest.boot() starts one."""
        self.folder = pathlib.Path(folder)
        self._process = process
        self._read_to = (self.folder / "out").stat().st_size
        self._commands = 0

    @classmethod
    def start(cls, cache, folder, setup):
        """Starts a guest in `folder`, which is emptied."""
        folder = prepare(cache, folder, setup)
        os.mkfifo(folder / "in")
        (folder / "out").touch()
        # `timeout` outlives us: no guest stays behind for good when we are killed.
        command = ["timeout", "-k", "5", str(setup.limit_s), *qemu_command(cache, folder, setup)]
        if setup.ends_with_us:
            command = ["setpriv", "--pdeathsig", "TERM", *command]  # which `timeout` passes on
        with open(folder / "qemu", "w") as log, open(folder / "out", "a") as out, \
                open(folder / "in", "r+b", buffering=0) as pipe:
            print(shlex.join(command), file=log, flush=True)
            process = subprocess.Popen(command, stdin=pipe, stdout=out, stderr=log,
                                       start_new_session=True)
        return cls(folder, process)

    @classmethod
    def boot(cls, cache, folder, setup):
        """Starts a guest and returns it once its script serves."""
        guest = cls.start(cache, folder, setup)
        guest.wait_ready()
        return guest

    def wait_ready(self):
        """Returns once the script of a guest that was started serves."""
        wait_until(lambda: "@@READY" in self.new_lines() or self._ended("booting"),
                   BOOT_LIMIT_S, f"guest {self.folder.name} ready")
        (self.folder / "initrd").unlink()

    # --- the protocol

    def run(self, command, limit_s=60, answer=None):
        """Runs a line of shell in the guest; returns (status, output).

        `answer(args)` acts on what the command asks for; it returns None, or the reason why it
        could not.
        """
        self.new_lines()
        self._commands += 1
        request = f"c{os.getpid()}_{self._commands}"
        self._send(f"{request} {command}")
        output, deadline = [], time.monotonic() + limit_s
        while True:
            alive = self.alive()
            for line in self.new_lines():
                if line.startswith(f"@@DONE {request} "):
                    return int(line.split()[2]), "\n".join(output)
                if line.startswith("@@ASK "):
                    reason = answer(line.split()[1:]) if answer else "nobody answers"
                    self._send(f"1 {reason}" if reason else "0")
                elif not line.startswith("@@"):
                    output.append(line)
            if not alive:
                self._ended(f"running '{command}'")
            if time.monotonic() > deadline:
                raise GuestError(f"no end of '{command}' within {limit_s} s; it printed:\n"
                                 + "\n".join(output[-20:]))
            time.sleep(POLL_S)

    def check(self, command, limit_s=60):
        """Runs a command that must succeed; returns its output."""
        status, output = self.run(command, limit_s)
        if status:
            raise GuestError(f"'{command}' ended with {status}: {output}")
        return output

    def monitor(self, command):
        """Runs a command of QEMU's monitor and returns what it printed."""
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(10)
            stream.connect(str(self.folder / "monitor"))
            self._monitor_answer(stream)
            stream.sendall(command.encode() + b"\n")
            return "\n".join(self._monitor_answer(stream).splitlines()[1:-1])

    @staticmethod
    def _monitor_answer(stream):
        text = b""
        while not text.endswith(b"(qemu) "):
            piece = stream.recv(4096)
            if not piece:
                break
            text += piece
        return text.decode(errors="replace").replace("\r", "")

    def set_link(self, up):
        """Plugs or unplugs the guest's network cable."""
        self.monitor(f"set_link nic {'on' if up else 'off'}")

    def _send(self, line):
        with open(self.folder / "in", "r+b", buffering=0) as pipe:
            pipe.write(line.encode() + b"\n")

    def new_lines(self):
        """The complete lines printed since the last call."""
        with (self.folder / "out").open("rb") as out:
            out.seek(self._read_to)
            text = out.read()
        text = text[:text.rfind(b"\n") + 1]
        self._read_to += len(text)
        return text.decode(errors="replace").replace("\r", "").splitlines()

    # --- its life

    def alive(self):
        if self._process:
            return self._process.poll() is None
        try:
            pid = int((self.folder / "pid").read_text())
            return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
        except (OSError, ValueError):
            return False

    def crash(self):
        """The line with which the guest's kernel crashed, or None."""
        console = self.folder / "console"
        found = CRASH.search(console.read_text(errors="replace")) if console.exists() else None
        return found.group() if found else None

    def _ended(self, when):
        if self.alive():
            return False
        raise GuestError(f"guest {self.folder.name} ended while {when}: {self._why_ended()};"
                         f" see {self.folder}/console")

    def _why_ended(self):
        crash = self.crash()
        if crash:
            return f"its KERNEL crashed ({crash})"
        said = (self.folder / "qemu").read_text(errors="replace").splitlines()[1:]
        return said[-1] if said else f"its script ended with {self.exit_status()}"

    def exit_status(self):
        """Of the script, after its end; 125 when it did not end by itself."""
        found = re.findall(r"^@@EXIT (\d+)", (self.folder / "out").read_text(), re.MULTILINE)
        return int(found[-1]) if found else 125

    def stop(self):
        """Lets the script end and waits for the guest to power off; kills it when it does not."""
        if self.alive():
            self._send("stop")
        try:
            wait_until(lambda: not self.alive(), STOP_LIMIT_S, "power off")
        except GuestError:
            self.kill()

    def kill(self):
        """Ends the guest at once, as a power failure would."""
        if not self.alive():
            return
        try:
            os.kill(int((self.folder / "pid").read_text()), signal.SIGKILL)
        except (OSError, ValueError):
            if self._process:
                self._process.terminate()  # `timeout`, which ends a QEMU that wrote no pid yet
        wait_until(lambda: not self.alive(), STOP_LIMIT_S, "end of QEMU")
