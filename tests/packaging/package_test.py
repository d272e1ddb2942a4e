#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages as their users meet them: made, installed, used, removed.

Installing happens on a copy of this machine: an overlay over its root folder, with namespaces of
its own for mounts, processes and the network. This program starts itself there (--inside). Nothing
of this machine changes, and no port of it is taken.
"""

import argparse
import ctypes
import functools
import os
import pathlib
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("cairn", "cairn-lab", "libcairn0", "libcairn-dev")
HANGS_S = 300

_options = argparse.Namespace()


def run(*command, **options):
    options.setdefault("check", True)
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, timeout=HANGS_S,
                          **{**options, "check": False})
    if options["check"] and done.returncode != 0:
        raise AssertionError(f"'{shlex.join(map(str, command))}' ended with {done.returncode}:\n"
                             f"{done.stdout}")
    return done.stdout


@functools.cache
def packages():
    """Of this build, by name; made once."""
    names, more = NAMES, ()
    if pathlib.Path(_options.fio_source, "config-host.h").exists():
        names, more = (*NAMES, "cairn-fio"), ("--fio-source", _options.fio_source)
    run(ROOT / "tools/package", "--build", _options.build, "--out", _options.out, *more)
    return {name: next(_options.out.glob(f"{name}_*.deb")) for name in names}


class Contents(unittest.TestCase):
    """What can be said of a package without installing it."""

    def setUp(self):
        self.made = packages()

    def field(self, name, field):
        return run("dpkg-deb", "--field", self.made[name], field).strip()

    def test_each_says_what_it_is_and_what_it_needs(self):
        versions = {self.field(name, "Version") for name in NAMES}
        self.assertEqual(len(versions), 1)
        self.assertRegex(versions.pop(), r"^0\.\d+\.\d+")
        self.assertIn("liburing2", self.field("cairn", "Depends"))
        self.assertIn("libc6 (>=", self.field("cairn", "Depends"))
        self.assertNotIn("openmpi", self.field("cairn", "Depends"))
        self.assertIn("libcairn0 (=", self.field("libcairn-dev", "Depends"))

    def test_programs_have_no_debug_information_and_no_path_of_the_build(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("cairn", "libcairn0"):
                run("dpkg-deb", "--extract", self.made[name], f"{folder}/{name}")
            program = pathlib.Path(folder, "cairn/usr/bin/cairn")
            self.assertNotIn(".debug_info", run("readelf", "-S", program))
            self.assertNotIn(str(ROOT).encode(), program.read_bytes())

    def test_every_command_has_a_page(self):
        files = run("dpkg-deb", "--contents", self.made["cairn"])
        for page in ("cairn", "cairn-serve", "cairn-arbiter", "cairn-kv-serve",
                     "cairn-volume-create"):
            self.assertIn(f"/usr/share/man/man1/{page}.1.gz", files)
        for line in files.splitlines():
            self.assertIn("root/root", line)

    def test_units_name_files_of_the_package(self):
        files = run("dpkg-deb", "--contents", self.made["cairn"])
        for unit in (ROOT / "packaging/systemd").glob("*.service"):
            text = unit.read_text()
            for program in re.findall(r"^ExecStart(?:Pre)?=(\S+)", text, re.MULTILINE):
                self.assertIn(f".{program}\n", files.replace(" -> ", "\n") + "\n")
            for page in re.findall(r"man:([\w-]+)\(1\)", text):
                self.assertIn(f"/{page}.1.gz", files)
            for document in re.findall(r"file://(\S+)", text):
                self.assertIn(f".{document}\n", files + "\n")


class OnACopyOfThisMachine(unittest.TestCase):
    def test_installed_used_and_removed(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make a copy of this machine's root folder")
        result = subprocess.run(
            ["unshare", "--mount", "--net", "--pid", "--ipc", "--fork", "--kill-child",
             sys.executable, "-B", __file__, "--build", _options.build,
             "--deny-calls", _options.deny_calls, "--fio-source", _options.fio_source,
             "--inside", *map(str, packages().values())],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
            timeout=HANGS_S * 2, check=False)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("\nOK", result.stdout)


class Inside(unittest.TestCase):
    """Runs on the copy, in the order of names; one machine, as an operator has it."""

    def as_service(self, unit, **options):
        """Runs what a unit says as whom it says, confined as far as that needs no systemd."""
        text = pathlib.Path("/lib/systemd/system", unit).read_text()
        instance = options.pop("instance", "")
        command = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)[1].replace("%i", instance)
        defaults = re.search(r"^EnvironmentFile=-?(.*)$", text, re.MULTILINE)[1]
        defaults = pathlib.Path(defaults.replace("%i", instance))
        args = ""
        if defaults.exists():
            args = re.search(r"^ARGS=(.*)$", defaults.read_text(), re.MULTILINE)[1]
        for folder in re.search(r"^StateDirectory=(.*)$", text, re.MULTILINE)[1].split():
            path = pathlib.Path("/var/lib", folder.replace("%i", instance))
            path.mkdir(mode=0o750, exist_ok=True)
            user = pwd.getpwnam("cairn")
            os.chown(path, user.pw_uid, user.pw_gid)
        words = shlex.split(command.replace("$ARGS", args))
        service = subprocess.Popen(
            ["setpriv", "--reuid", "cairn", "--regid", "cairn", "--clear-groups",
             "--no-new-privs", "--bounding-set", "-all", *options.pop("before", ()), *words],
            env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": "/run"}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, cwd="/", umask=0o077)
        self.addCleanup(self.end, service)
        return service

    def end(self, service):
        if service.poll() is None:
            service.send_signal(signal.SIGTERM)
            service.wait(HANGS_S)
        service.stdout.close()

    def until(self, service, text):
        said = ""
        while text not in said:
            line = service.stdout.readline()
            self.assertTrue(line, said)
            said += line
        return said

    def test_1_it_installs(self):
        run("dpkg", "-i", *_options.packages)
        self.assertEqual(pwd.getpwnam("cairn").pw_dir, "/var/lib/cairn")
        self.assertEqual(os.stat("/run/cairn").st_mode & 0o777, 0o700)
        self.assertEqual(os.stat("/etc/cairn").st_mode & 0o777, 0o750)
        self.assertIn("cairn", run("/usr/bin/cairn", "version"))
        self.assertIn("NAME", run("sh", "-c", "zcat /usr/share/man/man1/cairn.1.gz | "
                                  "groff -man -Tascii | col -b"))
        self.assertIn("complete ", pathlib.Path(
            "/usr/share/bash-completion/completions/cairn").read_text())

    def test_2_units_are_sound_and_confined(self):
        units = ("cairn-serve@box.service", "cairn-arbiter.service", "cairn-kv.service")
        self.assertEqual(run("systemd-analyze", "verify", "--man=no", *units).strip(), "")
        for unit in units:  # tenths of systemd's measure of exposure; 92 is a unit without any
            run("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager",
                unit)

    def test_3_the_examples_serve(self):
        examples = pathlib.Path("/usr/share/doc/cairn/examples")
        shutil.copy(examples / "box.toml", "/etc/cairn/box.toml")
        os.chmod("/etc/cairn/box.toml", 0o644)
        for name in ("cairn-arbiter", "cairn-kv"):
            shutil.copy(examples / name, "/etc/default")
        run("cairn", "config", "check", "/etc/cairn/box.toml")
        box = self.as_service("cairn-serve@.service", instance="box")
        self.until(box, "nqn.2026-11.io.cairn:box at 127.0.0.1:4420")
        arbiter = self.as_service("cairn-arbiter.service")
        self.until(arbiter, "it leads")
        kv = self.as_service("cairn-kv.service")
        self.until(kv, "127.0.0.1:6390")
        # Root's commands find the services without being told where.
        self.assertRegex(run("cairn", "drive", "list"), r"(?s)d0 .*d1 ")
        run("cairn", "pool", "add", "nvme-tcp://127.0.0.1:4420/nqn.2026-11.io.cairn:box",
            "--box", "box")
        run("cairn", "volume", "create", "v", "--size", "64M", "--replicas", "2")
        self.assertIn("v ", run("cairn", "volume", "list"))
        self.assertEqual(run("cairn", "kv", "put", "hello", "world"), "")
        self.assertIn("world", run("cairn", "kv", "get", "hello"))
        for service in (kv, arbiter, box):
            self.end(service)
            self.assertEqual(service.returncode, 0)

    def test_4_it_serves_where_io_uring_is_forbidden(self):
        """As in most containers: no capabilities, no io_uring."""
        box = self.as_service("cairn-serve@.service", instance="box",
                              before=[_options.deny_calls, "EPERM", "io_uring_setup"])
        self.until(box, "nqn.2026-11.io.cairn:box at 127.0.0.1:4420")
        self.assertRegex(run("cairn", "drive", "list"), r"(?s)d0 .*d1 ")

    def test_5_a_c_program_links(self):
        source = pathlib.Path("/tmp/plain.c")
        source.write_text("#include <cairn.h>\nint main(void) { return cairn_version() == 0; }\n")
        flags = run("pkg-config", "--cflags", "--libs", "cairn").split()
        self.assertNotIn("//", " ".join(flags))
        run("clang-19", "-o", "/tmp/plain", source, *flags)
        run("/tmp/plain", env={"PATH": "/usr/bin:/bin"})

    def test_6_fio_uses_the_engine(self):
        if not any("cairn-fio" in str(path) for path in _options.packages):
            self.skipTest("the source of fio is not there: tools/fio_source says why")
        engine = next(pathlib.Path("/usr/lib").glob("*/fio/cairn.so"))
        run("fio", "--name=job", f"--ioengine=external:{engine}", "--uri=mem:size=8M",
            "--rw=randwrite", "--bs=16k", "--size=4M", "--verify=crc32c", "--verify_fatal=1",
            cwd="/tmp")

    def test_7_installing_again_changes_no_data(self):
        before = sorted(pathlib.Path("/var/lib/cairn").rglob("*"))
        run("dpkg", "-i", *_options.packages)
        self.assertEqual(sorted(pathlib.Path("/var/lib/cairn").rglob("*")), before)

    def test_8_removed_and_purged_it_leaves_data(self):
        run("dpkg", "--purge", "cairn-fio", "libcairn-dev", "libcairn0", "cairn-lab")
        said = run("dpkg", "--purge", "cairn")
        self.assertIn("data and keys stay", said)
        self.assertFalse(pathlib.Path("/usr/bin/cairn").exists())
        self.assertFalse(pathlib.Path("/usr/share/man/man1/cairn.1.gz").exists())
        self.assertTrue(pathlib.Path("/var/lib/cairn/d0").exists())
        self.assertTrue(pathlib.Path("/etc/cairn/box.toml").exists())


def mount(source, target, kind, flags=0, data=""):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), str(target).encode(), kind.encode(), flags, data.encode()) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"mount {kind} at {target}: {os.strerror(error)}")


def enter_a_copy():
    """Makes "/" an overlay over this machine's root folder; in mount and net namespaces of ours."""
    bind, recursive, private = 4096, 16384, 1 << 18
    mount("none", "/", "none", recursive | private)
    packages = [pathlib.Path(path).read_bytes() for path in _options.packages]
    deny_calls = pathlib.Path(_options.deny_calls).read_bytes()
    holder = pathlib.Path(tempfile.mkdtemp(prefix="cairn-root-"))
    mount("tmpfs", holder, "tmpfs")
    for name in ("upper", "work", "root"):
        (holder / name).mkdir()
    root = holder / "root"
    mount("overlay", root, "overlay", 0,
          f"lowerdir=/,upperdir={holder}/upper,workdir={holder}/work")
    mount("/dev", root / "dev", "none", bind | recursive)
    mount("proc", root / "proc", "proc")
    for name in ("tmp", "run"):
        mount("tmpfs", root / name, "tmpfs", 0, "mode=1777" if name == "tmp" else "mode=755")
    os.chroot(root)
    os.chdir("/")
    run("ip", "link", "set", "lo", "up")
    names = [pathlib.Path("/tmp") / pathlib.Path(path).name for path in _options.packages]
    for path, data in zip(names, packages):
        path.write_bytes(data)
    _options.packages = names
    _options.deny_calls = "/tmp/deny_calls"
    pathlib.Path(_options.deny_calls).write_bytes(deny_calls)
    os.chmod(_options.deny_calls, 0o755)
    os.environ.pop("XDG_RUNTIME_DIR", None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("--deny-calls", required=True, type=os.path.abspath)
    parser.add_argument("--fio-source", default="", help="a configured source tree of fio")
    parser.add_argument("--inside", nargs="+", dest="packages")
    rest = parser.parse_known_args(namespace=_options)[1]
    args = [sys.argv[0], *rest]
    if _options.packages:
        enter_a_copy()
        unittest.main(argv=[*args, "Inside"], failfast=True)
    with tempfile.TemporaryDirectory(prefix="cairn-packages-") as folder:
        _options.out = pathlib.Path(folder)
        suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(each)
                                   for each in (Contents, OnACopyOfThisMachine))
        result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
