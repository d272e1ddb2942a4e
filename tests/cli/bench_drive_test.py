#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn bench drive`: runs too short to mean anything, and reports that are complete."""

import json
import pathlib
import shutil
import statistics
import sys

import support


class Drive(support.CliTest):
    def bench(self, *args):
        if support.two_cpus() is None:
            self.skipTest("needs two CPUs")
        rounds = () if "--rounds" in args else ("--rounds", "1")
        return json.loads(self.run_ok("bench", "drive", *rounds, "--requests", "200",
                                      "--cores", support.two_cpus(), "--folder", self.folder,
                                      "--json", *args))

    def expect_every_service(self, report):
        measured = {(result["name"], result["variant"]) for result in report["results"]}
        self.assertEqual(report["skipped"], {})
        for service in ("bare", "concat", "limit", "mirror", "priority", "slice", "stripe"):
            self.assertIn(("read4k", service), measured)
            self.assertIn(("write4k", service), measured)
        for result in report["results"]:
            self.assertGreater(result["value"], 0, result)
            self.assertGreaterEqual(result["cpu_ns"], 0, result)
            self.assertEqual("above_bare_ns" in result, result["variant"] != "bare", result)
        self.assertGreater(report["ratios"]["passthrough_iops_vs_bare"], 0)

    def test_every_service_is_measured(self):
        self.expect_every_service(self.bench("--only", "services"))
        self.assertEqual(list(self.folder.iterdir()), [], "nothing is left behind")
        self.assertFalse(pathlib.Path("requests.trace").exists())

    def test_every_service_is_measured_on_epoll(self):
        self.expect_every_service(self.bench("--only", "services", "--io", "epoll"))

    def test_durable_writes_during_checkpoints(self):
        report = self.bench("--only", "checkpoints", "--rounds", "2")
        if "checkpoints" in report["skipped"]:
            self.assertIn("direct", report["skipped"]["checkpoints"])
            self.skipTest("needs direct access to files")
        sizes = ("small", "medium", "large")
        lines = {result["variant"]: result for result in report["results"]}
        self.assertEqual(set(lines), {size + other for size in sizes for other in ("", "_without")})
        for line in lines.values():
            self.assertEqual((line["name"], line["unit"]), ("checkpoint_pause", "ms"))
            self.assertEqual(len(line["samples"]), 2)
            self.assertGreater(line["value"], 0, line)
            self.assertEqual(line["worst_ms"], max(line["samples"]))
            self.assertGreaterEqual(line["commits_per_round"], 1)
        for size in sizes:
            self.assertEqual(report["ratios"][f"checkpoint_pause_ms_{size}"], lines[size]["value"])
        self.assertEqual(report["ratios"]["checkpoint_pause_ms"], lines["large"]["value"])
        self.assertEqual(list(self.folder.iterdir()), [], "nothing is left behind")

    def test_the_nbd_door_beside_qemu_s(self):
        if self.is_emulated:
            self.skipTest("fio would measure the emulator")
        report = self.bench("--only", "nbd", "--seconds", "0.1")
        if shutil.which("qemu-storage-daemon") is None or shutil.which("fio") is None:
            self.assertIn("qemu-storage-daemon", report["skipped"]["nbd"])
            self.skipTest("needs qemu-storage-daemon and fio")
        jobs = [f"nbd_{kind}4k_qd32{connections}{cache}" for kind in ("randread", "randwrite")
                for connections in ("", "_conn4") for cache in ("", "_cached")]
        self.assertEqual({(result["name"], result["variant"]) for result in report["results"]},
                         {(job, server) for job in jobs
                          for server in ("cairn", "qsd_io_uring", "qsd_threads")})
        for result in report["results"]:
            self.assertGreater(result["value"], 0, result)
            self.assertGreater(result["io_per_cpu_second"], 0, result)
        for name in [f"{job}_per_cpu_vs_qsd" for job in jobs] + ["nbd_iops_per_cpu_vs_qsd"]:
            self.assertGreater(report["ratios"][name], 0)
        self.assertEqual(list(self.folder.iterdir()), [], "nothing is left behind")

    def test_a_guest_s_driver_beside_the_bare_drive(self):
        report = self.bench("--only", "vfio", "--seconds", "0.05")
        jobs = ("vfio_read4k_qd1_iops", "vfio_read4k_qd32_iops", "vfio_read4k_qd128_iops",
                "vfio_mixed4k_qd32_iops")
        self.assertEqual({(result["name"], result["variant"]) for result in report["results"]},
                         {(job, medium + bare) for job in jobs for medium in ("memory", "file")
                          for bare in ("", "_bare", "_bare_crowded")})
        for result in report["results"]:
            self.assertGreater(result["value"], 0, result)
            self.assertGreaterEqual(result["p99_us"], result["p50_us"], result)
        for name in ("vfio_read_iops_vs_bare", "vfio_mixed_iops_vs_bare", "vfio_p99_vs_bare",
                     "vfio_p999_vs_bare", "vfio_read_iops_vs_bare_memory",
                     "vfio_mixed_iops_vs_crowded", "vfio_p999_vs_crowded"):
            self.assertGreater(report["ratios"][name], 0)
        self.assertEqual(list(self.folder.iterdir()), [], "nothing is left behind")

    def test_the_vhost_user_door_beside_qemu_s(self):
        report = self.bench("--only", "vhost", "--seconds", "0.02")
        if shutil.which("qemu-storage-daemon") is None:
            self.assertIn("qemu-storage-daemon", report["skipped"]["vhost"])
            self.skipTest("needs qemu-storage-daemon")
        jobs = [f"vhost_{job}" for job in ("randread4k_qd1", "randread4k_qd32", "randwrite4k_qd32",
                                           "mixed4k_qd32", "read128k_qd8")]
        self.assertEqual({(result["name"], result["variant"]) for result in report["results"]},
                         {(job, server) for job in jobs
                          for server in ("cairn", "qsd_io_uring", "qsd_threads")})
        for result in report["results"]:
            self.assertGreater(result["value"], 0, result)
            self.assertGreater(result["io_per_cpu_second"], 0, result)
        for name in [f"{job}_per_cpu_vs_qsd" for job in jobs]:
            self.assertGreater(report["ratios"][name], 0)
        self.assertGreater(report["ratios"]["vhost_driver_iops_per_cpu_vs_qsd"], 0)
        self.assertEqual(list(self.folder.iterdir()), [], "nothing is left behind")

    def test_copies_between_guests_and_drives_are_counted(self):
        report = self.bench("--only", "copies", "--seconds", "0.02")
        if self.is_emulated or "copies" in report["skipped"]:
            self.assertIn("cairn_copy_count", report["skipped"]["copies"])
            self.skipTest("needs the library that counts")
        copies = {(result["name"], result["variant"]): result["value"]
                  for result in report["results"]}
        self.assertEqual(len(copies), 2 * (4 + 4 + 2))
        for (name, variant), value in copies.items():
            with self.subTest(name=name, variant=variant):
                if variant.endswith("_memory"):
                    self.assertEqual(value, 1, "reading memory is a copy")
                elif variant.endswith("_file") or "write" in name:
                    self.assertEqual(value, 0, "the guest's own memory goes to the kernel")
                else:
                    self.assertLessEqual(value, 1, "what arrives is copied once at most")
        self.assertEqual(report["ratios"]["copies_per_io"], 0)
        self.assertEqual(list(self.folder.iterdir()), [], "nothing is left behind")

    def test_a_drive_that_moves_under_load(self):
        report = self.bench("--only", "move", "--rounds", "2", "--seconds", "0.02")
        lines = {result["variant"]: result for result in report["results"]}
        self.assertEqual(set(lines), {"to_box", "back", "between_moves"})
        for line in lines.values():
            self.assertEqual((line["name"], line["unit"]), ("move_blackout", "ms"))
            self.assertEqual(len(line["samples"]), 2)
            self.assertGreater(line["value"], 0, line)
            self.assertEqual(line["worst_ms"], max(line["samples"]))
        for variant in ("to_box", "back"):
            self.assertGreater(lines[variant]["said_ms"], 0)
        moves = lines["to_box"]["samples"] + lines["back"]["samples"]
        self.assertAlmostEqual(report["ratios"]["move_blackout_ms"], statistics.median(moves), 3)
        self.assertEqual(list(self.folder.iterdir()), [], "nothing is left behind")

    def test_a_machine_without_qemu(self):
        if support.two_cpus() is None:
            self.skipTest("needs two CPUs")
        report = json.loads(self.run_ok("bench", "drive", "--only", "nbd", "--cores",
                                        support.two_cpus(), "--json",
                                        env={"PATH": str(self.folder)}))
        self.assertIn("install fio and qemu-storage-daemon", report["skipped"]["nbd"])

    def test_a_machine_without_guests(self):
        if support.two_cpus() is None:
            self.skipTest("needs two CPUs")
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "python3").symlink_to(sys.executable)
        args = ("bench", "drive", "--only", "guest", "--cores", support.two_cpus(), "--json")
        report = json.loads(self.run_ok(*args, env={"PATH": str(self.folder / "bin")}))
        self.assertIn("apt-get install qemu-system-common qemu-system-x86",
                      report["skipped"]["guest"])
        report = json.loads(self.run_ok(*args, env={"PATH": str(self.folder)}))
        self.assertIn("python3", report["skipped"]["guest"])

    def test_idle_drives_and_several_parts(self):
        report = self.bench("--only", "idle", "--only", "services", "--seconds", "0.02")
        self.assertIn("idle_cores_200_drives", report["ratios"])
        self.assertIn("passthrough_iops_vs_bare", report["ratios"])

    def test_a_folder_that_is_not_there(self):
        if support.two_cpus() is None:
            self.skipTest("needs two CPUs")
        result = self.run_cairn("bench", "drive", "--only", "idle", "--cores", support.two_cpus(),
                                "--folder", self.folder / "missing")
        self.expect_sentence(result, 1, "folder for the files of this run")


if __name__ == "__main__":
    support.main()
