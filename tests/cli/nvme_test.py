#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn nvme` against `cairn serve`: what a target offers, and what goes wrong."""

import re

import support
from nvme_support import MIB, NQN, Box, NvmeTest

# Field names of nvme-cli, which scripts rely on.
CONTROLLER_FIELDS = """
    vid ssvid sn mn fr rab ieee cmic mdts cntlid ver oaes ctratt cntrltype oacs acl aerl frmw lpa
    elpe npss kas tnvmcap sqes cqes maxcmd nn oncs fuses fna vwc awun awupf acwu sgls subnqn ioccsz
    iorcsz icdoff fcatt msdbd psds anatt anacap anagrpmax nanagrpid""".split()
NAMESPACE_FIELDS = """
    nsze ncap nuse nsfeat nlbaf flbas mc dpc dps nmic rescap fpi dlfeat nawun nawupf nacwu nabsn
    nabo nabspf noiob nvmcap mssrl mcl msrc anagrpid nsattr nvmsetid endgid nguid eui64
    lbafs""".split()
HEALTH_FIELDS = """
    critical_warning temperature avail_spare spare_thresh percent_used data_units_read
    data_units_written host_read_commands host_write_commands controller_busy_time power_cycles
    power_on_hours unsafe_shutdowns media_errors num_err_log_entries warning_temp_time
    critical_comp_time""".split()


class Shows(NvmeTest):
    def expect_fields(self, json, names):
        self.assertEqual([name for name in names if name not in json], [])

    def test_discover_names_each_subsystem_and_its_uri(self):
        log = self.nvme_json("discover", self.place)
        entry = next(each for each in log["records"] if each["subnqn"] == NQN)
        self.assertEqual(entry["trtype"], "tcp")
        self.assertEqual(entry["adrfam"], "ipv4")
        self.assertEqual(entry["subtype"], "nvme subsystem")
        self.assertEqual(entry["traddr"], "127.0.0.1")
        self.assertEqual(entry["trsvcid"], str(self.box.port))
        self.assertEqual(entry["uri"], self.uri())
        self.assertIn(self.uri(), self.nvme("discover", self.place, "--follow"))

    def test_list_has_every_namespace_with_its_format_and_state(self):
        listed = self.nvme_json("list", self.uri())
        self.assertEqual(listed["subnqn"], NQN)
        sizes = [(each["nsid"], each["size"], each["block_size"]) for each in listed["namespaces"]]
        self.assertEqual(sizes, [(1, 64 * MIB, 4096), (2, 16 * MIB, 512)])
        for each in listed["namespaces"]:
            self.assertEqual([path["state"] for path in each["ana"]], ["optimized"])
        self.assertRegex(self.nvme("list", self.uri()), r"(?m)^2 +16 MiB +512 +\S+ +optimized$")

    def test_list_shows_a_path_that_does_not_answer(self):
        closed = Box(self, "mem:size=1M")
        closed.stop()
        uri = self.uri(options=f"&path=127.0.0.1:{closed.port}")
        paths = self.nvme_json("list", uri)["paths"]
        self.assertNotIn("problem", paths[0])
        self.assertIn("nobody answers", paths[1]["problem"])

    def test_id_ctrl(self):
        json = self.nvme_json("id-ctrl", self.uri())
        self.expect_fields(json, CONTROLLER_FIELDS)
        self.assertEqual(json["subnqn"], NQN)
        self.assertIn("MiB in one command", self.nvme("id-ctrl", self.uri()))
        self.assertIn("discovery", self.nvme("id-ctrl", self.place))

    def test_id_ns(self):
        json = self.nvme_json("id-ns", self.uri(2))
        self.expect_fields(json, NAMESPACE_FIELDS)
        self.assertEqual(json["nsze"], 32768)
        self.assertEqual(json["lbafs"][0]["ds"], 9)
        self.assertRegex(self.nvme("id-ns", self.uri(2)), r"(?m)^nsze +32768 +16 MiB$")

    def test_smart_log_counts(self):
        before = self.nvme_json("smart-log", self.uri())
        self.expect_fields(before, HEALTH_FIELDS)
        self.bytes_at(0, "1M")
        after = self.nvme_json("smart-log", self.uri())
        self.assertGreater(after["host_read_commands"], before["host_read_commands"])

    def test_logs(self):
        groups = self.nvme_json("log", self.uri(), "ana")["groups"]
        self.assertEqual([(each["state"], each["nsids"]) for each in groups],
                         [("optimized", [1, 2])])
        self.assertEqual(self.nvme_json("log", self.uri(), "error")["errors"], [])
        self.assertEqual(self.nvme_json("log", self.uri(), "changed-ns"),
                         {"all": False, "nsids": []})
        names = [each["name"] for each in self.nvme_json("log", self.uri(), "effects")["io"]]
        self.assertLess({"read", "write", "flush"}, set(names))
        self.assertIn("frs1", self.nvme_json("log", self.uri(), "firmware"))
        self.assertEqual(self.nvme_json("log", self.uri(), "reservation")["type"], "none")
        self.assertIn("I/O", self.nvme("log", self.uri(), "effects"))
        self.expect_usage(["nvme", "log", self.uri(), "eror"], "did you mean 'error'?")

    def test_features(self):
        self.assertEqual(self.nvme_json("features", self.uri())["volatile_write_cache"], 1)
        self.assertRegex(self.nvme("features", self.uri()), r"(?m)^volatile_write_cache +0x1 +on$")
        self.assertIn("keep_alive", self.nvme_json("features", self.place))


class Reservations(NvmeTest):
    def reservations(self, *args, host="a"):
        uri = self.uri(options=f"&hostnqn=nqn.2026-11.io.cairn:{host}")
        return self.nvme_json("reservations", uri, *args)

    def test_register_acquire_release(self):
        self.assertEqual(self.reservations()["regctlext"], [])
        self.reservations("--register", "0x12")
        held = self.reservations("--key", "0x12", "--acquire", "write-exclusive")
        self.assertEqual((held["type"], held["regctlext"][0]["rkey"]), ("write-exclusive", 0x12))
        self.assertEqual(held["regctlext"][0]["rcsts"], 1)
        # Another host may read and not write.
        other = self.uri(options="&hostnqn=nqn.2026-11.io.cairn:b")
        self.nvme("read", other, "--length", "4K", "--output", "x")
        self.nvme_fails(["write", other, "--input", "x"], "not permitted", "reservation")
        # Unless it takes the reservation over.
        self.reservations("--register", "7", host="b")
        taken = self.reservations("--key", "7", "--acquire", "exclusive-access", "--preempt",
                                  "0x12", host="b")
        self.assertEqual([each["rkey"] for each in taken["regctlext"]], [7])
        self.assertEqual(self.reservations("--key", "7", "--release", "exclusive-access",
                                           host="b")["type"], "none")
        self.assertEqual(self.reservations("--key", "7", "--unregister", host="b")["regctl"], 0)

    def test_mistakes(self):
        self.nvme_fails(["reservations", self.uri(), "--acquire", "write-exclusive"], "--key KEY")
        self.nvme_fails(["reservations", self.uri(), "--key", "1", "--clear", "--unregister"],
                        "one at a time")
        self.nvme_fails(["reservations", self.uri(), "--key", "1", "--acquire", "write-exclusive"],
                        "reservations forbid it")
        self.expect_usage(["nvme", "reservations", self.uri(), "--acquire", "write-exlusive"],
                          "did you mean 'write-exclusive'?")
        self.expect_usage(["nvme", "reservations", self.uri(), "--key", "0"], "takes a key")


class Mistakes(NvmeTest):
    VERBS = ("list", "id-ctrl", "id-ns", "smart-log", "features", "read", "write", "copy", "flush",
             "reservations", "verify", "perf")

    def test_each_verb_explains_itself(self):
        commands = self.run_ok("nvme", "--help").partition("Commands:\n")[2].partition("\n\n")[0]
        verbs = [line.split()[0] for line in commands.splitlines()]
        self.assertLess(set(self.VERBS), set(verbs))
        for verb in verbs:
            self.assertIn(f"\n\nExamples:\n  cairn nvme {verb}", self.nvme(verb, "--help"))
        self.assertIn("OVERWRITE", self.nvme("verify", "--help"))

    def test_nobody_listens(self):
        self.box.stop()
        hint = f"'cairn serve --nvme-tcp 127.0.0.1:{self.box.port}"
        for verb in (*self.VERBS, "discover"):
            args = [verb, self.uri()]
            if verb == "read":
                args += ["--output", "x"]
            if verb == "write":
                args += ["--input", self.write("in", b"\0" * 4096)]
            self.nvme_fails(args, "nobody answers", hint)
        self.assertFalse((self.folder / "x").exists())

    def test_no_such_subsystem(self):
        for verb in ("list", "id-ctrl", "perf"):
            self.nvme_fails([verb, f"{self.place}/nqn.x"], "no subsystem 'nqn.x'",
                            f"cairn nvme discover {self.place}")

    def test_no_such_namespace(self):
        for verb in ("id-ns", "perf", "verify", "flush", "reservations"):
            self.nvme_fails([verb, self.uri(7)], "no namespace 7; it has 1, 2: write ?nsid=1")

    def test_a_discovery_uri_where_a_namespace_is_needed(self):
        self.expect_usage(["nvme", "id-ns", self.place], "discovery service",
                          f"cairn nvme discover {self.place}")

    def test_uris_of_the_wrong_form(self):
        self.expect_usage(["nvme", "list"], "needs URI")
        self.expect_usage(["nvme", "list", "/dev/nvme0n1"], "nvme-tcp://HOST:PORT/NQN?nsid=1")
        self.expect_usage(["nvme", "list", self.uri(options="&nsdi=1")], "'nsdi' is not an option")
        self.expect_usage(["nvme", "lst", self.uri()], "did you mean 'list'?")

    def test_a_host_name_nobody_knows(self):
        self.nvme_fails(["list", "nvme-tcp://no-such-host.invalid/nqn.x"],
                        "'no-such-host.invalid' cannot be looked up")

    def test_localhost_is_a_name(self):
        uri = self.uri().replace("127.0.0.1", "localhost")
        self.assertEqual(self.nvme_json("list", uri)["subnqn"], NQN)


class Guarded(NvmeTest):
    box_options = ("--host", "nqn.2026-11.io.cairn:friend")

    def test_a_host_that_is_not_allowed_is_told_its_name(self):
        result = self.run_cairn("nvme", "id-ctrl", self.uri(), env=self.env)
        self.expect_sentence(result, 1, "does not let this host in", "hostnqn=")
        own = re.search(r"which is (\S+):", result.stderr).group(1)
        self.assertTrue(own.startswith("nqn."))
        # The name stays the same, so that it can be allowed.
        self.box.stop()
        self.box = Box(self, *self.drives, options=("--host", own))
        self.assertEqual(self.nvme_json("id-ctrl", self.uri())["subnqn"], NQN)

    def test_the_uri_can_say_who_we_are(self):
        uri = self.uri(options="&hostnqn=nqn.2026-11.io.cairn:friend")
        self.assertEqual(self.nvme_json("id-ctrl", uri)["subnqn"], NQN)


if __name__ == "__main__":
    support.main()
