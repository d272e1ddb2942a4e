#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn drive replay`: recorded and drawn traces on stacks, and what it says of mistakes."""

import json

import support

HEADING = "cairn-trace,arrival_ns,kind,offset_bytes,bytes,latency_ns,result\n"


class Replay(support.CliTest):
    def test_a_recorded_trace_runs_again(self):
        done = self.run_cairn("drive", "replay", "search",
                              "trace(file:d0,size=64M,direct=off, to=t)", "--speed", "max",
                              "--requests", "500", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        drawn = json.loads(done.stdout)
        self.assertEqual((drawn["requests"], drawn["errors"], drawn["write"]["count"]), (500, 0, 0))
        done = self.run_cairn("drive", "replay", "t", "cache(mem:size=64M, memory=1M)", "--speed",
                              "1000", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        again = json.loads(done.stdout)
        self.assertGreaterEqual(again["requests"], 500)
        self.assertEqual(again["errors"], 0)

    def test_reads_and_writes_are_told_apart(self):
        self.write("t", HEADING + ",5,read,0,4096,1,ok\n,7,write,8192,8192,1,ok\n"
                   ",8,flush,0,0,1,ok\n")
        done = self.run_cairn("drive", "replay", "t", "mem:size=1M")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"reads +1 .*p99")
        self.assertRegex(done.stdout, r"writes +1 .*p99")
        self.assertIn("2 requests, 12288 bytes", done.stdout)

    def test_what_did_not_wait_has_no_latency(self):
        text = self.run_ok("drive", "replay", "search", "mem:size=1M", "--speed", "max",
                           "--requests", "50")
        self.assertRegex(text, r"(?m)^reads +50  p50 +-  p99 ")
        self.assertNotIn(" 0.0us", text)

    def test_mistakes_are_named(self):
        self.write("t", HEADING + ",5,read,0,4096,1,ok\n,5,paint,0,4096,1,ok\n")
        for args, part in ((["t", "mem:size=1M"], "line 3, field kind"),
                            (["none", "mem:size=1M"], "none"),
                            (["search", "mem:size=1M", "--speed", "fast"], "is no speed"),
                            (["search", "trace(mem:size=1M)"], "trace lacks to"),
                            (["search", "cache(mem:size=1M, mode=x, colour=red)"], "no option")):
            done = self.run_cairn("drive", "replay", *args)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(part, done.stderr)


if __name__ == "__main__":
    support.main()
