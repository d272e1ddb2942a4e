#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn plan`: modelled drives and networks, profiles of measured drives, references."""

import json
import os
import pty
import shutil
import subprocess
import tempfile

import support


class PlanSsd(support.CliTest):
    def test_the_report_is_one_page_beside_the_numbers(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            text = self.run_ok("plan", "ssd", "--synthetic", "mix", "--requests", "2000", "--json",
                               "--html", path)
            self.assertEqual(json.loads(text)["requests"], 2000)
            with open(path, encoding="utf-8") as page:
                html = page.read()
        self.assertIn("A modelled drive: laptop-tlc", html)
        self.assertIn("2000 requests of 4096 bytes (mix), 32 in flight", html)
        self.assertGreaterEqual(html.count("<svg"), 6)

    def on_terminal(self, *args):
        """What `cairn` shows on a terminal's stderr."""
        terminal, side = pty.openpty()
        with os.fdopen(terminal, "rb", buffering=0) as shown:
            process = subprocess.Popen(self.command(args), stderr=side, cwd=self.folder,
                                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            os.close(side)
            text = b""
            try:
                while part := shown.read(4096):
                    text += part
            except OSError:  # how Linux says that nobody has the terminal's other side any more
                pass
            self.assertEqual(process.wait(timeout=60), 0)
        return text.decode()

    LONG = ("plan", "ssd", "--synthetic", "write", "--requests", "1000000")

    def test_a_terminal_is_told_how_long_it_will_take(self):
        text = self.on_terminal(*self.LONG)
        self.assertRegex(text, r"\[=* *\] +\d+%  [\d.]+ s simulated, \d+ s to go")
        self.assertTrue(text.endswith("\r\x1b[K"), text[-80:])

    def test_with_json_a_terminal_is_told_nothing_and_so_is_a_pipe(self):
        self.assertEqual(self.on_terminal(*self.LONG, "--json"), "")
        self.run_ok(*self.LONG[:-1], "20000")

    def test_a_trace_of_any_format_is_replayed(self):
        self.write("t.log", "fio version 3 iolog\n5 /d/a add\n9 /d/a read 4096 8192\n"
                            "29 /d/a write 0 512\n")
        text = self.run_ok("plan", "ssd", "--trace", "t.log", "--time-scale", "2", "--json",
                           "--csv", "times.csv")
        self.assertEqual(json.loads(text)["requests"], 2)
        rows = (self.folder / "times.csv").read_text(encoding="utf-8").splitlines()
        self.assertEqual(sorted(row.rsplit(",", 2)[0] for row in rows[1:]),
                         ["0,8,16,R", "40000,0,1,W"])
        result = self.run_cairn("plan", "ssd", "--trace", "t.log", "--format", "mqsim")
        self.expect_sentence(result, 1, "'t.log', line 2, field sectors")

    def test_a_report_that_cannot_be_written_is_told(self):
        result = self.run_cairn("plan", "ssd", "--synthetic", "read", "--requests", "10", "--html",
                                "/proc/no/report.html")
        self.expect_sentence(result, 1, "/proc/no/report.html")


class PlanFit(support.CliTest):
    """Every mistake in what fio wrote is a unit test; here are the ways in and out."""

    def write_fio(self, name="fio.json", **options):
        side = {"iops": 12000.0, "clat_ns": {"mean": 80000.0, "percentile": {"99.000000": 95000}}}
        job = {"jobname": "a", "groupid": 0, "error": 0, "read": side, "write": side,
               "job options": {"rw": "randread", "bs": "4k", "direct": "1", **options}}
        (self.folder / name).write_text(json.dumps({"jobs": [job]}), encoding="utf-8")

    SHORT = ("--trials", "20", "--requests", "500")

    def test_the_profile_it_writes_is_one(self):
        self.write_fio()
        text = self.run_ok("plan", "fit", "--from", "fio.json", "--out", "x.toml", *self.SHORT)
        self.assertIn("randread 4 KiB x 1", text)
        self.assertIn("no point tells it", text)
        self.assertIn("fio --name=program ", text)
        profile = (self.folder / "x.toml").read_text(encoding="utf-8")
        self.assertIn("# Made by cairn plan fit.", profile)
        told = self.run_ok("plan", "ssd", "--profile", "./x.toml", "--synthetic", "read",
                           "--requests", "2000", "--json")
        self.assertEqual(json.loads(told)["requests"], 2000)

    def test_json_has_every_number_and_knob(self):
        self.write_fio()
        self.write_fio("more.json", rw="randwrite", iodepth="4", ioengine="libaio")
        report = json.loads(self.run_ok("plan", "fit", "--from", "fio.json", "--from", "more.json",
                                        "--json", *self.SHORT))
        self.assertEqual(report["points"], 2)
        self.assertEqual([one["measure"] for one in report["numbers"]],
                         ["iops", "mean_ns", "p99_ns"] * 2)
        self.assertIn("channels", [one["key"] for one in report["parameters"]])

    def test_mistakes(self):
        self.expect_sentence(self.run_cairn("plan", "fit"), 1, "--from FILE")
        self.expect_sentence(self.run_cairn("plan", "fit", "--from", "no.json"), 1, "no.json")
        self.write_fio(rw="randtrim")
        self.expect_sentence(self.run_cairn("plan", "fit", "--from", "fio.json"), 1,
                             "'fio.json' job 'a': rw is 'randtrim'")
        (self.folder / "bad.json").write_text("{", encoding="utf-8")
        self.expect_sentence(self.run_cairn("plan", "fit", "--from", "bad.json"), 1,
                             "'bad.json' is not JSON")
        self.write_fio()
        self.expect_sentence(
            self.run_cairn("plan", "fit", "--from", "fio.json", "--profile", "snis"), 1,
            "profile 'snis' reproduces the MQSim reference")
        self.expect_sentence(
            self.run_cairn("plan", "fit", "--from", "fio.json", "--profile", "nope"), 1,
            "there is no profile 'nope'")
        self.expect_sentence(
            self.run_cairn("plan", "fit", "--from", "fio.json", "--out", "/proc/no/x.toml",
                           *self.SHORT), 1, "/proc/no/x.toml")

    def test_what_fio_itself_writes_is_read(self):
        if not shutil.which("fio"):
            self.skipTest("fio is not installed")
        common = ["--filename=data", "--size=1m", "--runtime=1", "--ioengine=psync", "--iodepth=4",
                  "--stonewall"]
        jobs = ["--name=first", "--rw=randread", "--bs=4k", *common,
                "--name=second", "--rw=randrw", "--bs=8k", "--numjobs=2", *common]
        for form in ("json", "json+"):
            result = subprocess.run(["fio", f"--output-format={form}", *jobs], cwd=self.folder,
                                    capture_output=True, text=True, timeout=60, check=True)
            (self.folder / "real.json").write_text(result.stdout, encoding="utf-8")
            report = json.loads(self.run_ok("plan", "fit", "--from", "real.json", "--json",
                                            "--trials", "10", "--requests", "500"))
            self.assertEqual(report["points"], 2)
            self.assertEqual({one["load"] for one in report["numbers"]},
                             {"randread 4 KiB x 1", "randrw 8 KiB x 2, 50% reads"})
            self.assertEqual(len(report["doubts"]), 2)  # without direct=1 the page cache answers


class PlanNet(support.CliTest):
    def net(self, *args):
        return json.loads(self.run_ok("plan", "net", "--json", *args))

    def test_the_same_seed_gives_the_same_network(self):
        args = ("--topology", "leaf-spine:2x4x2", "--load", "permutation", "--bytes", "100000")
        self.assertEqual(self.net(*args, "--seed", "3"), self.net(*args, "--seed", "3"))

    def test_pause_loses_nothing_and_drop_tail_repairs(self):
        paused = self.net("--control", "none", "--buffer", "1024")
        self.assertEqual((paused["flows"], paused["drops"]), (10, 0))
        self.assertGreater(paused["pauses_at_hosts"], 0)
        dropped = self.net("--control", "cubic")
        self.assertEqual(dropped["payload_bytes"], 10_000_000)
        self.assertGreater(dropped["drops"], 0)

    def test_a_topology_comes_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rack.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write('hosts = ["a", "b"]\n[[link]]\nbetween = ["a", "b"]\n'
                           'rate = "1 Gb/s"\ndelay = "10 us"\n')
            self.assertEqual(self.net("--topology", path)["flows"], 1)
            with open(path, "w", encoding="utf-8") as file:
                file.write("hosts = 3\n")
            self.expect_usage(["plan", "net", "--topology", path],
                              "line 1, column 9: hosts is a list of names")

    def test_mistakes(self):
        self.expect_usage(["plan", "net", "--topology", "ring:3"], "there is no topology")
        self.expect_usage(["plan", "net", "--control", "tcp"], "none, dcqcn, dctcp or cubic")


class PlanValidate(support.CliTest):
    def test_a_reference_of_networks_is_a_folder(self):
        folder = os.path.join(os.path.dirname(__file__), "..", "data", "net")
        result = json.loads(self.run_ok("plan", "validate", folder, "--json"))
        self.assertTrue(result["ok"])
        self.assertGreater(result["numbers"], 80)
        flows = os.path.join(folder, "fct_per_flow.json")
        self.assertEqual(json.loads(self.run_ok("plan", "validate", flows, "--json"))["numbers"],
                         result["numbers"])

    def test_what_belongs_to_a_reference_is_not_one(self):
        folder = os.path.join(os.path.dirname(__file__), "..", "data", "mqsim")
        result = self.run_cairn("plan", "validate", os.path.join(folder, "configs.json"))
        self.expect_sentence(result, 1, "read together with the tables of its folder")
        self.expect_sentence(self.run_cairn("plan", "validate", str(self.folder)), 1,
                             "there is no table of a reference in the folder")


if __name__ == "__main__":
    support.main()
