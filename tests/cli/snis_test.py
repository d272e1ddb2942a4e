#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn plan snis` and `cairn plan capacity`: stops, truth, resumption, threads, MPI, reports."""

import json
import os
import shutil
import subprocess

import support

SMALL = ("--synthetic", "F_t_h", "--requests", "200", "--network", "star:11")
FOUR = ("--synthetic", "F_t_h", "--requests", "300", "--network", "star:14", "--targets", "4",
        "--place", "stripe", "--until", "count", "--iterations", "3")


class PlanSnis(support.CliTest):
    def snis(self, *args):
        return json.loads(self.run_ok("plan", "snis", "--json", *args))

    def test_every_iteration_is_told(self):
        found = self.snis(*SMALL, "--until", "count", "--iterations", "4", "--csv", "i.csv",
                          "--html", "i.html", "--times", "t.csv")
        self.assertEqual([step["iteration"] for step in found["iterations"]], [0, 1, 2, 3])
        self.assertNotIn("distance", found["iterations"][0])
        self.assertIn("criterion", found["iterations"][1]["distance"])
        self.assertEqual((self.folder / "i.csv").read_text().count("\n"), 5)
        self.assertEqual((self.folder / "t.csv").read_text().count("\n"), 201)
        page = (self.folder / "i.html").read_text(encoding="utf-8")
        self.assertEqual(page.count("<svg"), 4)
        for stranger in ("src=", "href=", "<script"):
            self.assertNotIn(stranger, page)

    def test_targets_without_work_are_told(self):
        args = ("plan", "snis", *SMALL[:-2], "--network", "star:14", "--targets", "4",
                 "--iterations", "1")
        self.assertIn("no request is for 3 of the 4 targets", self.run_cairn(*args).stderr)
        self.assertEqual(self.run_cairn(*args, "--place", "stripe").stderr, "")

    def test_what_moves_nothing_is_what_one_loop_gives(self):
        found = self.snis(*SMALL, "--until", "unchanged", "--coupled")
        self.assertTrue(found["unchanged"])
        self.assertEqual(found["against_coupled"]["requests_that_differ"], 0)
        for metric in found["against_coupled"]["metrics"].values():
            self.assertEqual(metric["error"], 0)

    def test_the_loop_alone(self):
        found = self.snis(*SMALL, "--iterations", "0", "--coupled")
        self.assertEqual(found["iterations"], [])
        self.assertGreater(found["coupled"]["throughput_gbps"]["mean"], 0)

    def test_an_interrupted_run_goes_on_to_the_same_result(self):
        whole = self.snis(*SMALL, "--until", "count", "--iterations", "5")
        self.snis(*SMALL, "--until", "count", "--iterations", "2", "--resume", "state")
        self.assertEqual(len(os.listdir(self.folder / "state")), 2)
        went_on = self.snis(*SMALL, "--until", "count", "--iterations", "5", "--resume", "state")
        self.assertEqual(went_on, whole)

    def test_state_of_another_run_or_damaged_is_refused(self):
        self.snis(*SMALL, "--until", "count", "--iterations", "2", "--resume", "state")
        other = self.run_cairn("plan", "snis", *SMALL, "--seed", "2", "--resume", "state")
        self.expect_sentence(other, 1, "iteration-0000.snis", "name an empty folder")
        path = self.folder / "state" / "iteration-0001.snis"
        path.write_bytes(path.read_bytes()[:-1])
        damaged = self.run_cairn("plan", "snis", *SMALL, "--until", "count", "--resume", "state")
        self.expect_sentence(damaged, 1, "iteration-0001.snis", "Remove it")

    def test_threads_change_nothing(self):
        self.assertEqual(self.snis(*FOUR, "--threads", "1"), self.snis(*FOUR, "--threads", "5"))

    def test_processes_change_nothing(self):
        mpirun = shutil.which("mpirun")
        if mpirun is None or self.is_emulated:
            self.skipTest("needs mpirun")
        alone = self.run_cairn("plan", "snis", "--mpi", *FOUR, "--json")
        if "built without MPI" in alone.stderr:
            self.skipTest("built without MPI")
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        result = subprocess.run(
            [mpirun, "--oversubscribe", "--mca", "btl", "self,vader,tcp", "-n", "2",
             *self.command(("plan", "snis", "--mpi", *FOUR, "--json"))],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            timeout=100, check=False, cwd=self.folder, env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout), self.snis(*FOUR))

    def test_a_trace_says_file_line_and_field(self):
        self.write("t.csv", "1,0,8,0,7\n2,0,x,0,7\n")
        result = self.run_cairn("plan", "snis", "--trace", "t.csv")
        self.expect_sentence(result, 1, "'t.csv', line 2, field Size: 'x' is not a whole number")
        self.write("u.csv", "1,0,8,0,7\n2,0,8,1,7\n3,8,8,1,7\n")
        found = self.snis("--trace", "u.csv", "--network", "star:11")
        self.assertEqual(found["requests"], 3)

    def test_mistakes(self):
        self.expect_sentence(self.run_cairn("plan", "snis"), 1, "--trace FILE or --synthetic NAME")
        self.expect_usage(["plan", "snis", "--synthetic", "F_t_x"], "did you mean")
        self.expect_usage(["plan", "snis", "--weights", "1,1,1"], "whose sum is 1")
        self.expect_usage(["plan", "snis", "--until", "never"], "count, stable, unchanged")
        self.expect_usage(["plan", "snis", "--read-gap", "5,0.5,0.2"], "SCV above 1")
        result = self.run_cairn("plan", "snis", *SMALL, "--network", "ring")
        self.expect_sentence(result, 1, "--network")
        result = self.run_cairn("plan", "snis", *SMALL, "--iterations", "0")
        self.expect_sentence(result, 1, "add --coupled")


class PlanCapacity(support.CliTest):
    ARGS = ("plan", "capacity", "--synthetic", "F_t_h", "--requests", "400", "--iops", "400k",
             "--drives-max", "16", "--json")

    def test_the_least_that_is_enough(self):
        found = json.loads(self.run_ok(*self.ARGS, "--p99", "2ms", "--html", "p.html"))
        self.assertTrue(found["enough"])
        chosen = [trial for trial in found["trials"]
                  if all(trial[what] == found[what]
                         for what in ("drives", "boxes", "links_per_box"))]
        self.assertTrue(chosen[0]["enough"])
        self.assertEqual((self.folder / "p.html").read_text(encoding="utf-8").count("<svg"), 3)
        again = json.loads(self.run_ok(*self.ARGS, "--p99", "2ms"))
        self.assertEqual(again, found)

    def plan_trace(self, count, *args, tail=""):
        """MQSim's format: time in ns, device, sector, sectors, 1 for a read."""
        lines = [f"{30000 * i} 0 {8 * (i % 512)} 8 1\n" for i in range(count)]
        (self.folder / "t.trace").write_text("".join(lines) + tail)
        return self.run_ok("plan", "capacity", "--trace", "t.trace", "--p99", "20ms",
                           "--drives-max", "2", *args)

    def test_says_how_much_of_a_trace_was_taken(self):
        whole = json.loads(self.plan_trace(300, "--json"))
        self.assertEqual((whole["requests"], whole["requests_in_trace"], whole["cut"]),
                         (300, 300, False))
        self.assertIn("all 300 requests", self.plan_trace(300))
        part = json.loads(self.plan_trace(300, "--requests", "200", "--json"))
        self.assertEqual((part["requests"], part["requests_in_trace"], part["cut"]),
                         (200, 300, True))
        told = self.plan_trace(300, "--requests", "200", "--html", "cut.html")
        self.assertIn("the first 200 of the trace's 300 requests", told)
        page = (self.folder / "cut.html").read_text(encoding="utf-8")
        self.assertIn("200 of the trace", page)

    def test_takes_the_first_20000_of_a_trace_unless_told_otherwise(self):
        found = json.loads(self.plan_trace(20010, "--json"))
        self.assertEqual((found["requests"], found["requests_in_trace"], found["cut"]),
                         (20000, 20010, True))
        self.assertIn("20000 of a trace", self.run_ok("plan", "capacity", "--help"))

    def test_a_trace_with_a_bad_rest_is_planned_for_what_was_taken(self):
        # The reader looks 65536 requests ahead, for those that are out of order.
        args = (66000, "--requests", "200")
        told = self.plan_trace(*args, tail="nonsense\n")
        self.assertIn("the first 200 requests of a trace that cannot be read to its end", told)
        found = json.loads(self.plan_trace(*args, "--json", tail="nonsense\n"))
        self.assertIsNone(found["requests_in_trace"])
        self.assertTrue(found["cut"])

    def test_a_promise_that_nothing_keeps(self):
        result = self.run_cairn(*self.ARGS, "--p99", "1us")
        self.assertEqual(result.returncode, 1)
        self.assertFalse(json.loads(result.stdout)["enough"])

    def test_mistakes(self):
        self.expect_usage(["plan", "capacity", "--synthetic", "F_t_h"], "needs --p99")
        self.expect_usage(["plan", "capacity", "--p99", "1ms", "--iops", "many"],
                          "requests per second")
        result = self.run_cairn(*self.ARGS, "--p99", "2ms", "--profile", "snis")
        self.expect_sentence(result, 1, "loses requests")


if __name__ == "__main__":
    support.main()
