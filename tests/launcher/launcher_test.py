#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./cairn on machines good and bad, none of them real.

Each test copies the launcher into a temporary checkout whose path has a space in it, and gives it a
PATH with nothing but the basic utilities and the fakes below. The fakes note how they were called,
read what they should do from the machine's state folder, and build nothing.
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LAUNCHER = pathlib.Path(__file__).resolve().parents[2] / "cairn"

UTILITIES = ("awk bash cat chmod cp dirname env find flock grep mkdir readlink rm rmdir sed"
             " sha256sum sh sleep sort tail touch tr true").split()

PACKAGES = """# a comment
[build]
clang-19
cmake
ninja-build
[lab]
libopenmpi-dev
[package]
dpkg-dev
[test]
libgtest-dev
[arm64]
qemu-user
"""

PRESETS = """{"buildPresets": [
  {"name": "release", "configurePreset": "release"},
  {"name": "asan", "configurePreset": "asan"},
  {"name": "arm64", "configurePreset": "arm64"}
]}"""

# Every fake starts with these lines. $state is the machine's state folder.
PREAMBLE = """#!/bin/sh
state='{state}' bin='{bin}'
printf '%s\\n' "${{0##*/}} $*" >>"$state/calls"
"""

FAKES = {
    "id": 'cat "$state/uid"',
    "df": 'echo Avail; cat "$state/free_kib"',
    "g++": "exit 1",
    "dpkg-query": """
for name; do
  grep -qx "$name" "$state/installed" && echo "installed $name"
done
exit 1  # as the real one does when one of them is unknown""",
    "apt-get": """
case "$*" in
  *--simulate*) [ -e "$state/lists" ] ;;
  update*) touch "$state/lists" ;;
  *)
    [ ! -e "$state/apt_fails" ] || { echo 'E: no such package' >&2; exit 100; }
    echo 'Setting up packages'
    for word; do echo "$word"; done >>"$state/installed"
    cp -p "$state"/tools/* "$bin" ;;
esac""",
    "sudo": """
[ -e "$state/sudo" ] || { echo 'sudo: a password is required' >&2; exit 1; }
shift
exec "$@" """,
}

# What the packages bring: absent on a bare machine.
TOOLS = {
    "clang++-19": "true",
    "pkg-config": "true",
    "cmake": """
[ "$1" != --version ] || { echo "cmake version $(cat "$state/cmake_version")"; exit 0; }
[ ! -e "$state/cmake_fails" ] || { echo 'CMake Error: no fmt'; exit 1; }
tests=ON
while [ $# -gt 0 ]; do
  case $1 in
    -S) source=$2 ;;
    -B) build=$2 ;;
    -DCAIRN_TESTS=*) tests=${1#*=} ;;
  esac
  shift
done
mkdir -p "$build"
touch "$build/build.ninja"
printf '%s\\n' "CMAKE_HOME_DIRECTORY:INTERNAL=$source" "CAIRN_TESTS:BOOL=$tests" \\
  >"$build/CMakeCache.txt"
echo '-- Configuring done'""",
    "ninja": """
mkdir "$state/building" || { echo 'two builds at once' >&2; exit 1; }
trap 'rmdir "$state/building"' EXIT
trap 'exit 2' INT
[ ! -e "$state/slow" ] || { touch "$state/ninja_started"; sleep "$(cat "$state/slow")"; }
if [ -e "$state/ninja_fails" ]; then
  cat "$state/ninja_fails" >"$state/free_kib"
  echo 'main.cc:1:1: error: expected unqualified-id'
  exit 1
fi
[ ! -e "$state/steps" ] || cat "$state/steps"
echo 'ninja: no work to do.'
mkdir -p "$2/apps"
for name; do
  case $name in cairn*) cp "$state/program" "$2/apps/$name"; chmod +x "$2/apps/$name" ;; esac
done
[ $# != 2 ] || { cp "$state/program" "$2/apps/cairn"; chmod +x "$2/apps/cairn"; }""",
    "ctest": 'echo "100% tests passed"; exit "$(cat "$state/ctest_status")"',
}

PROGRAM = """#!/bin/sh
printf 'cwd=%s' "$PWD"
for word; do printf ' [%s]' "$word"; done
echo
cat
exit 7
"""

GIB = 1024 * 1024


class Machine:
    """A checkout, the programs on PATH and what they do."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.checkout = self.folder / "a checkout"
        self.build = self.checkout / "build"
        self.bin = self.folder / "bin"
        self.state = self.folder / "state"
        for folder in (self.bin, self.checkout / "src", self.checkout / "tools",
                       self.state / "tools"):
            folder.mkdir(parents=True)
        shutil.copy(LAUNCHER, self.checkout / "cairn")
        (self.checkout / "packages.txt").write_text(PACKAGES)
        (self.checkout / "CMakePresets.json").write_text(PRESETS)
        for utility in UTILITIES:
            (self.bin / utility).symlink_to(shutil.which(utility))
        for name, body in FAKES.items():
            self._script(self.bin / name, body)
        for name, body in TOOLS.items():
            self._script(self.state / "tools" / name, body)
        self._script(self.checkout / "tools" / "arm64_sysroot", "true")
        self._script(self.checkout / "tools" / "package", 'echo "packages in $4" "$5"')
        self._script(self.checkout / "tools" / "fio_source", '[ ! -e "$state/no_fio" ]')
        (self.state / "program").write_text(PROGRAM)
        self.set(uid="0", free_kib=str(90 * GIB), cmake_version="3.25.1", ctest_status="0",
                 installed="", calls="")

    def _script(self, path, body):
        path.write_text(PREAMBLE.format(state=self.state, bin=self.bin) + body + "\n")
        path.chmod(0o755)

    def set(self, **values):
        for name, value in values.items():
            (self.state / name).write_text(value)

    def without(self, *programs):
        for program in programs:
            (self.bin / program).unlink()
        return self

    def with_tools(self):
        for tool in (self.state / "tools").iterdir():
            shutil.copy(tool, self.bin)
        return self

    def with_packages(self, *names):
        self.set(installed="\n".join(names) + "\n")
        return self.with_tools()

    def complete(self):
        return self.with_packages("clang-19", "cmake", "ninja-build", "libopenmpi-dev",
                                  "dpkg-dev", "libgtest-dev", "qemu-user")

    def start(self, *args, **options):
        environment = {"PATH": str(self.bin), "TMPDIR": str(self.folder)}
        environment.update(options.pop("env", {}))
        return subprocess.Popen([self.checkout / "cairn", *args], env=environment, text=True,
                                stdin=options.pop("stdin", subprocess.DEVNULL),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                cwd=options.pop("cwd", self.folder), **options)

    def run(self, *args, **options):
        self.set(calls="")
        process = self.start(*args, **options)
        out, err = process.communicate(timeout=20)
        return subprocess.CompletedProcess(args, process.returncode, out, err)

    def calls(self, program):
        lines = (self.state / "calls").read_text().splitlines()
        return [line.partition(" ")[2] for line in lines if line.split()[0] == program]


class LauncherTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cairn-launcher-")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.machine = Machine(folder.name)

    def assert_ran(self, result, args=""):
        self.assertEqual((result.stdout, result.returncode),
                         (f"cwd={self.machine.folder}{args}\n", 7), result.stderr)

    def assert_refused(self, result, *phrases):
        """It stopped, ran nothing, and its last line is one sentence with these phrases."""
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        sentence = result.stderr.splitlines()[-1]
        self.assertRegex(sentence, r"^cairn: .*\.$")
        for phrase in phrases:
            self.assertIn(phrase, sentence)


class RunTest(LauncherTest):
    def test_a_bare_machine_is_installed_built_and_runs(self):
        result = self.machine.run("hello", "a b", "")
        self.assert_ran(result, " [hello] [a b] []")
        self.assertIn("Setting up packages", result.stderr)
        self.assertEqual(self.machine.calls("apt-get")[-1], "install -y --no-install-recommends"
                         " clang-19 cmake ninja-build -o DPkg::Lock::Timeout=600")
        self.assertEqual(self.machine.calls("ninja"), [f"-C {self.machine.build} cairn"])

    def test_a_second_call_asks_only_ninja_and_says_nothing(self):
        self.machine.run()
        begun = time.monotonic()
        result = self.machine.run("x")
        self.assertLess(time.monotonic() - begun, 2)
        self.assert_ran(result, " [x]")
        self.assertEqual(result.stderr, "")
        for program in ("dpkg-query", "apt-get", "cmake"):
            self.assertEqual(self.machine.calls(program), [])
        self.assertEqual(self.machine.calls("ninja"), [f"-C {self.machine.build} cairn --quiet"])

    def test_a_changed_source_shows_the_build(self):
        self.machine.run()
        os.utime(self.machine.checkout / "src", (time.time() + 9, time.time() + 9))
        self.assertIn("ninja", self.machine.run().stderr)

    def test_on_a_terminal_the_build_is_one_line(self):
        self.machine.complete().set(steps="[1/4] CXX a.o\n[2/4] CXX b.o\na.cc:1: warning: x\n"
                                          "[4/4] Linking\n")
        master, terminal = os.openpty()
        environment = {"PATH": str(self.machine.bin), "TMPDIR": str(self.machine.folder)}
        process = subprocess.run([self.machine.checkout / "cairn"], env=environment,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=terminal, timeout=20)
        os.close(terminal)
        shown = b""
        try:
            while chunk := os.read(master, 65536):
                shown += chunk
        except OSError:  # how a terminal without users ends
            pass
        os.close(master)
        self.assertEqual(process.returncode, 7, shown)
        text = shown.decode()
        self.assertIn("\r\x1b[Kcairn: building, 50%: 2 of 4 files, about 0:00 left", text)
        self.assertIn("\r\x1b[Ka.cc:1: warning: x\r\n", text)
        self.assertNotIn("CXX b.o", text)

    def test_standard_input_is_the_programs(self):
        self.machine.complete()
        read_end, write_end = os.pipe()
        os.write(write_end, b"typed\n")
        os.close(write_end)
        result = self.machine.run(stdin=read_end)
        os.close(read_end)
        self.assertEqual(result.stdout, f"cwd={self.machine.folder}\ntyped\n")

    def test_a_link_to_the_launcher_finds_the_checkout(self):
        link = self.machine.folder / "link"
        link.symlink_to(self.machine.checkout / "cairn")
        self.machine.complete()
        result = subprocess.run([link], env={"PATH": str(self.machine.bin)}, text=True,
                                capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 7, result.stderr)
        self.assertTrue((self.machine.build / "apps/cairn").exists())

    def test_the_build_folder_can_be_elsewhere(self):
        self.machine.complete()
        self.assert_ran(self.machine.run(env={"CAIRN_BUILD_DIR": "else where"}))
        self.assertTrue((self.machine.folder / "else where/apps/cairn").exists())
        self.assertFalse(self.machine.build.exists())

    def test_a_moved_checkout_is_configured_afresh(self):
        self.machine.complete().run()
        self.machine.checkout = self.machine.checkout.rename(self.machine.folder / "moved")
        self.assert_ran(self.machine.run())
        self.assertIn("--fresh", self.machine.calls("cmake")[-1])

    def test_new_presets_are_configured_again(self):
        self.machine.complete().run()
        os.utime(self.machine.checkout / "CMakePresets.json", (time.time() + 9, time.time() + 9))
        self.machine.run()
        self.assertNotIn("--fresh", self.machine.calls("cmake")[-1])

    def test_two_callers_take_turns(self):
        self.machine.complete().set(slow="0.5")
        first, second = self.machine.start("1"), self.machine.start("2")
        errors = [process.communicate(timeout=20)[1] for process in (first, second)]
        self.assertEqual((first.returncode, second.returncode), (7, 7), errors)
        self.assertIn("waiting for another ./cairn", "".join(errors))

    def test_an_interrupted_build_stops_and_the_next_call_builds(self):
        self.machine.complete().set(slow="5")
        process = self.machine.start(start_new_session=True)
        started = self.machine.state / "ninja_started"
        deadline = time.monotonic() + 10
        while not started.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=10)
        self.assertEqual((process.returncode, out), (130, ""), err)
        (self.machine.state / "slow").unlink()
        self.assert_ran(self.machine.run())


class LabTest(LauncherTest):
    """What measures and plans is built, with what it takes, when it is first asked for."""

    def test_it_is_not_built_for_other_commands(self):
        self.machine.run("up")
        self.assertNotIn("libopenmpi-dev", self.machine.calls("apt-get")[-1])
        self.assertFalse((self.machine.build / "apps/cairn-lab").exists())

    def test_its_packages_are_installed_and_both_programs_are_built(self):
        for word in ("bench", "plan", "sim", "help"):
            with self.subTest(word):
                self.assert_ran(self.machine.run(word, "x"), f" [{word}] [x]")
                self.assertIn(f"-C {self.machine.build} cairn cairn-lab",
                              self.machine.calls("ninja")[-1])
        self.assertIn("libopenmpi-dev", (self.machine.state / "installed").read_text())

    def test_a_folder_that_was_configured_without_its_packages_is_configured_again(self):
        self.machine.run("up")
        self.machine.run("sim")
        self.assertNotIn("--fresh", self.machine.calls("cmake")[-1])
        self.machine.run("sim")
        self.assertEqual(self.machine.calls("cmake"), [])

    def test_a_second_call_says_nothing(self):
        self.machine.run("bench")
        self.assertEqual(self.machine.run("bench").stderr, "")


class DebTest(LauncherTest):
    """./cairn package"""

    def test_what_packages_hold_is_built_and_packed(self):
        result = self.machine.run("package")
        self.assertEqual((result.returncode, result.stdout),
                         (0, f"packages in {self.machine.build}/packages --fio-source\n"),
                         result.stderr)
        self.assertEqual(self.machine.calls("ninja"),
                         [f"-C {self.machine.build} cairn cairn-lab libcairn"])
        self.assertIn("dpkg-dev", (self.machine.state / "installed").read_text())

    def test_they_go_where_the_caller_says(self):
        self.assertEqual(self.machine.run("package", "some where").stdout,
                         "packages in some where --fio-source\n")

    def test_without_the_source_of_fio_the_others_are_made(self):
        self.machine.set(no_fio="")
        result = self.machine.run("package")
        self.assertEqual(result.stdout, f"packages in {self.machine.build}/packages \n")
        self.assertIn("no package cairn-fio", result.stderr)

    def test_two_folders_are_refused(self):
        self.assert_refused(self.machine.run("package", "a", "b"), "./cairn package DIR")
        self.assert_refused(self.machine.run("package", "--help"), "./cairn package DIR")


class PackagesTest(LauncherTest):
    def test_only_what_is_missing_is_installed(self):
        self.machine.with_packages("clang-19", "cmake").run()
        self.assertIn("recommends ninja-build -o", self.machine.calls("apt-get")[-1])

    def test_absent_lists_are_fetched_first_and_present_ones_are_not(self):
        self.machine.run()
        self.assertIn("update", self.machine.calls("apt-get"))
        (self.machine.checkout / "packages.txt").write_text(PACKAGES.replace("cmake", "cmake\ngit"))
        self.machine.run()
        self.assertNotIn("update", self.machine.calls("apt-get"))
        self.assertIn("recommends git -o", self.machine.calls("apt-get")[-1])

    def test_a_compiler_that_went_away_is_noticed(self):
        self.machine.run()
        self.machine.without("clang++-19").set(installed="cmake\nninja-build\n")
        self.assert_ran(self.machine.run())
        self.assertIn("recommends clang-19 -o", self.machine.calls("apt-get")[-1])

    def test_a_tool_that_is_missing_although_installed_is_named(self):
        self.machine.complete().without("clang++-19")
        self.assert_refused(self.machine.run(), "clang++-19 cannot be found", "PATH", "--reinstall")

    def test_sudo_without_a_password_is_used(self):
        self.machine.set(uid="1000", sudo="")
        self.assert_ran(self.machine.run())
        self.assertIn("-n env DEBIAN_FRONTEND=noninteractive apt-get install",
                      self.machine.calls("sudo")[-1])

    def test_without_rights_the_exact_line_is_printed(self):
        install = "sudo apt-get install -y --no-install-recommends clang-19 cmake ninja-build"
        self.machine.set(uid="1000")
        self.assert_advised(self.machine.run(), "sudo apt-get update && " + install)
        self.machine.set(lists="")
        self.assert_advised(self.machine.run(), install)
        self.assert_advised(self.machine.without("sudo").run(), install)

    def assert_advised(self, result, advice):
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        sentence, line = result.stderr.splitlines()
        self.assertIn("install them with this line", sentence)
        self.assertEqual(line.strip(), advice)
        for call in self.machine.calls("apt-get"):
            self.assertIn("--simulate", call)

    def test_a_failing_apt_is_told_from_ours(self):
        self.machine.set(apt_fails="", lists="")
        result = self.machine.run()
        self.assert_refused(result, "apt-get could not install", "Debian 12")
        self.assertIn("E: no such package", result.stderr)

    def test_no_debian_goes_on_when_the_tools_are_there(self):
        self.assert_ran(self.machine.without("apt-get", "dpkg-query").with_tools().run())

    def test_no_debian_and_no_tools_names_the_tools(self):
        self.machine.without("apt-get", "dpkg-query", "g++")
        self.assert_refused(self.machine.run(), "not a Debian system",
                            "clang++-19 cmake ninja pkg-config", "packages.txt")

    def test_gcc_alone_is_not_enough(self):
        self.machine.without("apt-get", "dpkg-query").with_tools().without("clang++-19")
        self.assert_refused(self.machine.run(), "g++ is here but", "install")


class BuildTest(LauncherTest):
    def test_an_old_cmake_is_refused(self):
        for version in ("3.18.4", "2.8", "3.9"):
            with self.subTest(version):
                self.machine.complete().set(cmake_version=version)
                self.assert_refused(self.machine.run(), f"version {version}", "3.25 or newer")

    def test_a_new_cmake_is_taken(self):
        self.machine.complete().set(cmake_version="4.0.2")
        self.assert_ran(self.machine.run())

    def test_cmakes_own_message_is_shown(self):
        self.machine.complete().set(cmake_fails="")
        result = self.machine.run()
        self.assert_refused(result, "cmake could not configure")
        self.assertIn("CMake Error: no fmt", result.stderr)

    def test_a_disk_too_small_for_a_first_build_is_refused_before_it(self):
        self.machine.set(free_kib=str(GIB))
        self.assert_refused(self.machine.run(), "1024 MiB free", "2048", "CAIRN_BUILD_DIR")
        self.assertEqual(self.machine.calls("apt-get"), [])

    def test_a_small_disk_does_for_later_builds(self):
        self.machine.run()
        self.machine.set(free_kib=str(GIB))
        self.assert_ran(self.machine.run())

    def test_a_disk_that_filled_up_is_named_as_the_cause(self):
        self.machine.complete().set(ninja_fails="1000")
        self.assert_refused(self.machine.run(), "is full", "free some space")

    def test_a_compile_error_is_not_blamed_on_the_disk(self):
        self.machine.complete().set(ninja_fails=str(90 * GIB))
        result = self.machine.run()
        self.assert_refused(result, "the build failed: see the first error above")
        self.assertIn("expected unqualified-id", result.stderr)

    def test_a_read_only_checkout_is_refused_unless_it_builds_elsewhere(self):
        self.machine.complete()
        os.chmod(self.machine.checkout, 0o555)
        self.addCleanup(os.chmod, self.machine.checkout, 0o755)
        scratch = self.machine.folder / "scratch"
        scratch.mkdir()
        os.chmod(scratch, 0o777)
        # Root writes everywhere, so it becomes somebody else who may note the fakes' calls.
        options = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
        for folder in (self.machine.state, *self.machine.state.iterdir()):
            os.chmod(folder, 0o777)
        self.assert_refused(self.machine.run(**options), "cannot write to", "CAIRN_BUILD_DIR")
        self.assert_ran(self.machine.run(env={"CAIRN_BUILD_DIR": str(scratch)}, **options))


class TestTest(LauncherTest):
    def test_everything_is_installed_built_and_handed_to_ctest(self):
        self.machine.set(ctest_status="3")
        result = self.machine.run("test", "-R", "a b")
        self.assertEqual((result.returncode, result.stdout), (3, "100% tests passed\n"))
        self.assertIn("libgtest-dev qemu-user", self.machine.calls("apt-get")[-1])
        self.assertEqual(self.machine.calls("ninja"), [f"-C {self.machine.build}"])
        self.assertEqual(self.machine.calls("ctest"), [
            f"--test-dir {self.machine.build} --output-on-failure --no-tests=error -j2 -R a b"])

    def test_a_build_without_tests_gets_them(self):
        self.machine.run()
        self.assertIn("-DCAIRN_TESTS=OFF", self.machine.calls("cmake")[-1])
        self.machine.run("test")
        self.assertIn("-DCAIRN_TESTS=ON", self.machine.calls("cmake")[-1])
        self.machine.run("test")
        self.assertEqual(self.machine.calls("cmake"), [])

    def test_a_failed_build_runs_no_tests(self):
        self.machine.complete().set(ninja_fails=str(90 * GIB))
        self.assert_refused(self.machine.run("test"), "the build failed")
        self.assertEqual(self.machine.calls("ctest"), [])

    def test_a_preset_has_its_own_folder(self):
        for args in (("--preset", "asan"), ("--preset=asan",)):
            with self.subTest(args):
                self.machine.complete().run("test", *args, "-L", "lint")
                folder = self.machine.build / "asan"
                self.assertTrue((folder / "build.ninja").exists())
                self.assertEqual(self.machine.calls("ctest"), [
                    f"--test-dir {folder} --output-on-failure --no-tests=error -j2 -L lint"])

    def test_arm64_gets_its_sysroot(self):
        self.machine.complete().run("test", "--preset", "arm64")
        self.assertEqual(self.machine.calls("arm64_sysroot"),
                         [f"{self.machine.build}/arm64/sysroot"])

    def test_an_unknown_preset_is_refused(self):
        for args in (("--preset", "asam"), ("--preset",), ("--preset=",), ("--preset", "a.*")):
            with self.subTest(args):
                self.assert_refused(self.machine.complete().run("test", *args),
                                    "there is no preset", "--list-presets")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launcher", type=pathlib.Path, default=LAUNCHER, help="the one to test")
    known, rest = parser.parse_known_args()
    LAUNCHER = known.launcher.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
