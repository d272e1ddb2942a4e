#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn doctor` on machines that lack something."""

import json
import os
import resource
import socket

import support

NAMES = ["kernel", "distribution", "processor", "instructions", "memory", "io_uring",
         "io_uring features", "epoll", "open files", "locked memory", "direct I/O", "disk space",
         "NVMe drives", "/dev/kvm", "network namespaces", "port 4420", "port 8009", "port 8080"]


class DoctorTest(support.CliTest):
    def doctor(self, status=0, **options):
        """The diagnosis as data; its checks by name."""
        result = self.run_cairn("doctor", "--json", **options)
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.returncode, status)
        diagnosis = json.loads(result.stdout)
        diagnosis["checks"] = {check["name"]: check for check in diagnosis["checks"]}
        return diagnosis

    def expect(self, check, status, found, next_step):
        self.assertEqual(check["status"], status, check)
        self.assertIn(found, check["found"])
        self.assertIn(next_step, check["next"])


class AnyMachine(DoctorTest):
    def test_json_has_every_check_and_advice_for_each_complaint(self):
        diagnosis = self.doctor()
        self.assertEqual(diagnosis["schema_version"], 1)
        self.assertEqual(list(diagnosis["checks"]), NAMES)
        self.assertIn(diagnosis["io"]["chosen"], ("uring", "epoll"))
        self.assertTrue(diagnosis["can_run"])
        for check in diagnosis["checks"].values():
            self.assertIn(check["status"], ("ok", "warn", "missing"))
            self.assertEqual(check["status"] == "ok", check["next"] == "", check)

    def test_facts_are_data(self):
        facts = self.doctor()["facts"]
        self.assertEqual(facts["kernel"]["release"], os.uname().release)
        self.assertEqual(facts["cpu"]["allowed"], sorted(os.sched_getaffinity(0)))
        self.assertEqual(facts["folder"]["path"], str(self.folder.resolve()))
        self.assertGreater(facts["memory"]["total_bytes"], 1 << 20)

    def test_table_has_every_check_in_aligned_columns(self):
        lines = self.run_ok("doctor").splitlines()
        rows = [line for line in lines if line.startswith(("ok ", "warn ", "missing "))]
        self.assertEqual([line[9:].split("  ")[0] for line in rows], NAMES)
        column = rows[0].index(os.uname().release)
        for row in rows:
            self.assertEqual(row[column - 2:column], "  ", row)
            self.assertNotEqual(row[column], " ", row)
        self.assertRegex(lines[-1], r"^--io auto takes (uring|epoll): .+\.$")

    def test_nothing_is_left_behind(self):
        self.doctor()
        self.assertEqual(list(self.folder.iterdir()), [])


class WithoutUring(DoctorTest):
    def test_forbidden_by_a_seccomp_filter(self):
        diagnosis = self.doctor(denied=("EPERM", "io_uring_setup"))
        self.expect(diagnosis["checks"]["io_uring"], "missing", "seccomp filter",
                    "docker run --security-opt seccomp=")
        self.assertEqual(diagnosis["io"]["chosen"], "epoll")
        self.assertIn("seccomp", diagnosis["io"]["why"])

    def test_the_table_says_what_to_do_next(self):
        text = self.run_ok("doctor", denied=("EPERM", "io_uring_setup"))
        self.assertRegex(text, r"(?m)^missing +io_uring +forbidden by a seccomp filter$")
        self.assertRegex(text, r"(?m)^ +next: start the container with a seccomp profile")
        self.assertIn("until then the epoll back end is used", text)
        self.assertIn("--io auto takes epoll: io_uring is forbidden by a seccomp filter.", text)

    def test_hidden_by_a_seccomp_filter(self):
        diagnosis = self.doctor(denied=("ENOSYS", "io_uring_setup"))
        self.expect(diagnosis["checks"]["io_uring"], "missing", "seccomp filter, or not in this",
                    "io_uring_setup")

    def test_demanding_it_is_refused_with_a_way_out(self):
        result = self.run_cairn("up", "--data", "d", "--io", "uring",
                                denied=("EPERM", "io_uring_setup"))
        self.expect_sentence(result, 1, "--io uring cannot be used here", "seccomp",
                             "or use --io epoll")

    def test_auto_and_epoll_still_work(self):
        for io in ("auto", "epoll"):
            up = self.start_cairn("up", "--data", io, "--io", io, until="Ctrl-C or SIGTERM",
                                  denied=("EPERM", "io_uring_setup"),
                                  env={**os.environ, "XDG_RUNTIME_DIR": str(self.folder)})
            self.assertIn("This machine: epoll (", up.said)
            self.assertEqual(up.stop(), 0)

    def test_without_epoll_too_nothing_runs(self):
        diagnosis = self.doctor(status=1, denied=("EPERM", "io_uring_setup,epoll_create1"))
        self.assertFalse(diagnosis["can_run"])
        self.expect(diagnosis["checks"]["epoll"], "missing", "Operation not permitted", "allow")


class Limits(DoctorTest):
    def test_few_open_files(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        check = self.doctor(preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (256, hard)))["checks"]["open files"]
        self.expect(check, "warn", "256", "ulimit -n" if hard >= 4096 else "hard limit")

    def test_few_open_files_for_good(self):
        check = self.doctor(preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (256, 256)))["checks"]["open files"]
        self.expect(check, "warn", "256 (hard limit 256)", "as root, raise the hard limit")

    def test_one_cpu(self):
        cpu = min(os.sched_getaffinity(0))
        check = self.doctor(preexec_fn=lambda: os.sched_setaffinity(
            0, {cpu}))["checks"]["processor"]
        self.expect(check, "warn", f"usable: {cpu}", "two CPUs or more")


class Places(DoctorTest):
    def test_a_folder_in_which_no_file_can_be_made(self):
        check = self.doctor(cwd="/proc")["checks"]["direct I/O"]
        self.expect(check, "missing", "/proc on ", "go to a folder you may write to")

    def test_a_folder_whose_name_is_not_utf8(self):
        odd = os.fsencode(self.folder) + b"/\xff"
        os.mkdir(odd)
        self.assertIn("\ufffd", self.doctor(cwd=odd)["facts"]["folder"]["path"])

    def test_a_taken_port(self):
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                holder.bind(("127.0.0.1", 8009))
                holder.listen()
            except OSError:
                pass  # somebody else has it: as good
            check = self.doctor()["checks"]["port 8009"]
        self.expect(check, "warn", "taken (NVMe discovery)", "ss -ltnp sport = :8009")

    def test_no_right_to_network_namespaces(self):
        check = self.doctor(denied=("EPERM", "unshare"))["checks"]["network namespaces"]
        self.expect(check, "missing", "not permitted", "run as root or allow user namespaces")


if __name__ == "__main__":
    support.main()
