#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Metrics and health over HTTP, and what Prometheus and Grafana make of them (packaging/)."""

import http.client
import json
import pathlib
import re
import shutil
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import prometheus_text
import support
from box_support import NQN, BoxTest
from nbd_support import DriveTest

PACKAGING = pathlib.Path(__file__).resolve().parents[2] / "packaging"
MISSING = [tool for tool in ("prometheus", "promtool") if shutil.which(tool) is None]
MIB = 1 << 20


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


class MonitorTest(DriveTest, BoxTest):
    def http_of(self, running):
        return re.search(r"(?m)^metrics and health at (127\.0\.0\.1:\d+)$", running.said)[1]

    def get(self, at, path):
        """Status and body."""
        try:
            with urllib.request.urlopen(f"http://{at}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metrics(self, at):
        status, text = self.get(at, "/metrics")
        self.assertEqual(status, 200)
        self.assertEqual(prometheus_text.check_with_promtool(text), "")
        return prometheus_text.parse(text)

    def health(self, at):
        status, text = self.get(at, "/healthz")
        return status, json.loads(text)

    def wait_for(self, holds):
        """Asks again and again; what never holds is a failure."""
        end = time.monotonic() + support.HANGS_S
        while not (found := holds()):
            self.assertLess(time.monotonic(), end, "it never held")
        return found

    def start_server(self, *args):
        return self.start_cairn("serve", *args, "--http", "0", "--control",
                                str(self.folder / "ctl"), "--nbd", f"unix:{self.socket}",
                                until="Ctrl-C", env=self.env)

    def start_keys(self, *args):
        return self.start_cairn("kv", "serve", "--memory", "--resp", "127.0.0.1:0", "--http", "0",
                                *args, until="Ctrl-C", env=self.env)

    def start_arbiter(self):
        return self.start_cairn("arbiter", "--meta", "rocks:pool", "--http", "0",
                                until="it leads", env=self.env)


class Processes(MonitorTest):
    def test_a_server_tells_the_same_over_http_and_at_its_socket(self):
        server = self.start_server("safe=mirror(file:a,size=1M, file:b,size=1M)", "mem:size=1M")
        at = self.http_of(server)
        families = self.metrics(at)
        self.assertEqual(families["cairn_health"].samples[("", ())], 0)
        info = dict(next(iter(families["cairn_build_info"].samples))[1])
        self.assertEqual(info["role"], "serve")
        self.assertIn(info["version"], self.run_ok("--version"))
        started = families["cairn_start_time_seconds"].samples[("", ())]
        self.assertLess(abs(time.time() - started), support.HANGS_S)
        text = self.run_ok("drive", "metrics", "--control", str(self.folder / "ctl"))
        told = {name for name in families if not name.startswith("cairn_http_")}
        self.assertEqual(set(prometheus_text.parse(text)), told)
        status, health = self.health(at)
        self.assertEqual((status, health["health"], health["drives"]), (200, "ok", []))
        self.assertEqual(server.stop(), 0)

    def test_a_layer_tells_how_long_requests_took(self):
        server = self.start_server("safe=mirror(file:a,size=8M, file:b,size=8M)")
        at = self.http_of(server)
        self.write("in", b"x" * MIB)
        subprocess.run(["nbdcopy", self.folder / "in", self.uri("safe")], check=True, timeout=120)
        took = self.metrics(at)["cairn_layer_request_duration_seconds"].samples
        labels = (("drive", "safe"), ("path", "0"), ("layer", "mirror"))
        self.assertGreater(took[("_count", labels)], 0)
        self.assertGreater(took[("_sum", labels)], 0)

    def test_a_drive_that_does_not_open_is_told(self):
        server = self.start_server("file:gone", "mem:size=1M")
        at = self.http_of(server)
        status, health = self.health(at)
        self.assertEqual((status, health["health"]), (503, "failing"))
        (drive,) = health["drives"]
        self.assertEqual(drive["name"], "d0")
        self.assertIn("cairn drive retry d0", drive["reasons"][0]["what"])
        families = self.metrics(at)
        self.assertEqual(families["cairn_health"].samples[("", ())], 2)
        self.write("gone", b"\0" * MIB)
        self.run_ok("drive", "retry", "d0", "--control", str(self.folder / "ctl"))
        self.assertEqual(self.health(at)[0], 200)

    def test_keys_and_values_tell_what_their_clients_do(self):
        server = self.start_keys()
        at = self.http_of(server)
        resp = server.said.split("serving keys and values, in memory, at ")[1].split()[0]
        self.run_ok("kv", "put", "k", "v", "--at", resp)
        families = self.metrics(at)
        commands = {dict(labels).get("command"): value for (_, labels), value
                    in families["cairn_kv_commands_total"].samples.items()}
        self.assertEqual(commands["set"], 1)
        took = families["cairn_kv_command_duration_seconds"].samples
        self.assertEqual(took[("_count", ())], sum(commands.values()))
        self.assertEqual(self.health(at)[1], {"schema_version": 1, "role": "kv", "health": "ok"})
        self.assertEqual(server.stop(), 0)

    def test_an_arbiter_tells_of_its_pool_and_volumes(self):
        box = self.start_box("file:d,size=64M", "--state", "state")
        arbiter = self.start_arbiter()
        at = self.http_of(arbiter)
        self.run_ok("pool", "add", f"nvme-tcp://127.0.0.1:{box.port}/{NQN}", "--box", "one")
        self.run_ok("volume", "create", "vol0", "--size", "4M")
        families = self.metrics(at)
        self.assertEqual(families["cairn_arbiter_leading"].samples[("", ())], 1)
        self.assertEqual(families["cairn_volume_size_bytes"].samples[("", (("volume", "vol0"),))],
                         4 * MIB)
        (size,) = families["cairn_pool_drive_size_bytes"].samples.values()
        self.assertGreater(size, 0)
        status, health = self.health(at)
        self.assertEqual((status, health["health"], health["state"]), (200, "ok", "leads"))
        self.assertEqual(arbiter.stop(), 0)

    def test_up_tells_what_its_parts_do(self):
        up = self.start_cairn("up", "--size", "256M", "--nbd", "127.0.0.1:0", "--nvme-tcp",
                              "127.0.0.1:0", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0",
                              until="Ctrl-C or SIGTERM", env=self.env)
        pages = re.findall(r"(?m)^  curl -s http://(127\.0\.0\.1:\d+)(/\S+)$", up.said)
        self.assertEqual([path for _, path in pages],
                         ["/metrics", "/healthz", "/api/v1/status", "/api/v1/events"])
        at = pages[0][0]
        families = self.metrics(at)
        info = dict(next(iter(families["cairn_build_info"].samples))[1])
        self.assertEqual(info["role"], "up")
        self.assertEqual(len(families["cairn_pool_drive_size_bytes"].samples), 4)
        self.assertIn("cairn_kv_commands_total", families)
        self.assertEqual(families["cairn_drive_health"].samples[("", (("drive", "vol0"),))], 0)
        status, health = self.health(at)
        self.assertEqual((status, health["health"], health["reasons"]), (200, "ok", []))
        told = json.loads(self.get(at, "/api/v1/status")[1])
        asked = self.ask("status")
        self.assertEqual(set(told), set(asked))
        self.assertEqual(told["at"], asked["at"])
        self.assertEqual(told["at"]["http"], [at])
        events = json.loads(self.get(at, "/api/v1/events?count=1")[1])
        self.assertEqual((events["schema_version"], events["role"], events["events"][0]["id"]),
                         (1, "up", 1))
        self.assertEqual(up.stop(), 0)

    def test_a_racks_metadata_server_tells_that_it_runs(self):
        rack = self.start_cairn("rack", "serve", "rack", "--listen", "127.0.0.1:0", "--http", "0",
                                until="Ctrl-C", env=self.env)
        at = self.http_of(rack)
        families = self.metrics(at)
        info = dict(next(iter(families["cairn_build_info"].samples))[1])
        self.assertEqual(info["role"], "rack")
        self.assertEqual(self.health(at)[1], {"schema_version": 1, "role": "rack", "health": "ok"})
        (event,) = self.run_ok("events", "--json").splitlines()
        self.assertEqual(json.loads(event)["role"], "rack")
        self.assertEqual(rack.stop(), 0)

    def test_a_token_opens_the_api(self):
        self.write("token", "short\n")
        (self.folder / "token").chmod(0o644)
        refused = ["kv", "serve", "--memory", "--resp", "127.0.0.1:0", "--http", "0",
                   "--http-token", "token"]
        self.refused(refused, "token", "chmod 600")
        (self.folder / "token").chmod(0o600)
        self.refused(refused, "has 5 characters, and could be guessed")
        self.write("token", "a-token-of-many-letters\n")
        (self.folder / "token").chmod(0o600)
        at = self.http_of(self.start_keys("--http-token", "token"))
        status, text = self.get(at, "/api/v1/status")
        self.assertEqual((status, json.loads(text)["schema_version"]), (401, 1))
        request = urllib.request.Request(f"http://{at}/api/v1/status", headers={
            "Authorization": "Bearer a-token-of-many-letters"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.assertEqual(json.load(answer)["health"], "ok")

    def test_what_is_no_page_is_answered_with_why(self):
        at = self.http_of(self.start_keys())
        status, text = self.get(at, "/")
        self.assertEqual(status, 404)
        self.assertIn("/metrics\n", text)
        host, port = at.split(":")
        for method, path, headers, expected in (
                ("POST", "/metrics", {}, 405), ("GET", "/" + "a" * 2000, {}, 414),
                ("GET", "/metrics", {"X": "a" * 9000}, 431),
                ("GET", "/metrics", {"Content-Length": "5"}, 413)):
            connection = http.client.HTTPConnection(host, int(port), timeout=60)
            connection.request(method, path, headers=headers)
            self.assertEqual(connection.getresponse().status, expected, path[:20])
            connection.close()
        answered = self.metrics(at)["cairn_http_requests_total"].samples
        self.assertEqual(answered[("", (("code", "431"),))], 1)

    def test_a_local_socket_and_a_port_at_once(self):
        server = self.start_keys("--http", f"unix:{self.folder}/m.sock")
        self.assertIn(f"curl --unix-socket {self.folder}/m.sock ", server.said)
        with socket.socket(socket.AF_UNIX) as local:
            local.connect(f"{self.folder}/m.sock")
            local.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            self.assertTrue(local.recv(4096).startswith(b"HTTP/1.1 200 OK\r\n"))
        self.assertEqual(server.stop(), 0)
        self.assertFalse((self.folder / "m.sock").exists())

    def test_mistakes_are_told(self):
        at = self.http_of(self.start_keys())
        self.expect_sentence(
            self.run_cairn("kv", "serve", "--memory", "--resp", "127.0.0.1:0", "--http", at), 1,
            at, "choose another port")
        self.expect_usage(["serve", "mem:size=1M", "--http", "here"], "write 9640")

    def test_a_file_says_it_too(self):
        self.write("server.toml", '[server]\nhttp = ["127.0.0.1:0"]\n')
        server = self.start_cairn("serve", "mem:size=1M", "--config", "server.toml", "--nbd",
                                  f"unix:{self.socket}", until="Ctrl-C", env=self.env)
        self.assertEqual(self.get(self.http_of(server), "/healthz")[0], 200)


class Packaging(MonitorTest):
    def names_in(self, expression):
        """The metrics of Cairn that an expression names, as their families."""
        return {re.sub(r"_(bucket|sum|count)\Z", "", name) if "_seconds_" in name else name
                for name in re.findall(r"\bcairn_\w+", expression)}

    def expressions(self):
        dashboard = json.loads((PACKAGING / "grafana/cairn.json").read_text())
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                yield f"panel {panel['title']}", target["expr"]
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                yield f"variable {variable['name']}", variable["definition"]
        rules = (PACKAGING / "prometheus/cairn.rules.yml").read_text()
        blocks = re.findall(r"- alert: (\w+)\n +expr: (.*?)\n +(?:for|labels):", rules, re.S)
        self.assertEqual(len(blocks), rules.count("- alert:"))
        for name, expression in blocks:
            yield f"alarm {name}", expression

    def test_alarms_and_panels_name_metrics_that_exist(self):
        known = set()
        for running in (self.start_server("mem:size=1M"), self.start_keys(), self.start_arbiter()):
            known |= set(self.metrics(self.http_of(running)))
        known.discard("cairn")
        named = set()
        for where, expression in self.expressions():
            names = self.names_in(expression)
            if not re.search(r"\bup\b", expression):
                self.assertNotEqual(names, set(), where)
            self.assertEqual(names - known, set(), where)
            named |= names
        self.assertGreater(len(named), 30)

    def test_panels_do_not_lie_on_each_other(self):
        taken = set()
        for panel in json.loads((PACKAGING / "grafana/cairn.json").read_text())["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24)
            taken |= cells

    @unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
    def test_promtool_finds_nothing_wrong(self):
        for args in (["check", "rules", "cairn.rules.yml"], ["check", "config", "prometheus.yml"],
                     ["test", "rules", "cairn.rules.test.yml"]):
            done = subprocess.run(["promtool", *args], cwd=PACKAGING / "prometheus",
                                  capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alarm_says_what_to_do(self):
        rules = (PACKAGING / "prometheus/cairn.rules.yml").read_text()
        for name, rest in re.findall(r"- alert: (\w+)(.*?)(?=- alert:|\Z)", rules, re.S):
            self.assertIn("remedy:", rest, name)
            self.assertRegex(rest, "severity: (page|ticket)", name)


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class RealPrometheus(MonitorTest):
    def start_prometheus(self, targets):
        """With the files of packaging/, but that it looks every second and at these processes."""
        text = (PACKAGING / "prometheus/prometheus.yml").read_text()
        text = text.replace("interval: 15s", "interval: 1s")
        listed = re.search(r"(?:          - \S+\n)+", text)[0]
        text = text.replace(listed, "".join(f"          - {each}\n" for each in targets))
        self.write("prometheus.yml", text)
        shutil.copy(PACKAGING / "prometheus/cairn.rules.yml", self.folder)
        at = f"127.0.0.1:{free_port()}"
        with open(self.folder / "prometheus.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
                 f"--web.listen-address={at}"], cwd=self.folder, stdout=log,
                stderr=subprocess.STDOUT)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return at

    def ask_prometheus(self, at, path):
        try:
            status, text = self.get(at, path)
        except OSError:
            return None  # not there yet
        return json.loads(text)["data"] if status == 200 else None

    def test_an_alarm_comes_when_a_leg_dies(self):
        box = self.start_box("file:remote,size=8M")
        leg = f"nvme-tcp://127.0.0.1:{box.port}/{NQN}?loss_timeout=100ms&connect_timeout=1s"
        server = self.start_server(f'safe=mirror(file:local,size=8M, "{leg}", retry_ms=200)')
        at = self.start_prometheus([self.http_of(server), self.http_of(self.start_keys())])

        def targets_are_up():
            told = self.ask_prometheus(at, "/api/v1/targets")
            health = [each["health"] for each in told["activeTargets"]] if told else []
            return health == ["up", "up"]

        def alarms():
            told = self.ask_prometheus(at, "/api/v1/alerts")
            return {each["labels"]["alertname"]: each for each in (told or {}).get("alerts", [])
                    if each["state"] == "firing"}

        self.wait_for(targets_are_up)
        self.assertEqual(alarms(), {})
        box.kill()
        self.write("in", b"x" * MIB)
        subprocess.run(["nbdcopy", self.folder / "in", self.uri("safe")], check=True, timeout=120)
        lost = self.wait_for(lambda: alarms().get("CairnLegLost"))
        self.assertEqual(lost["labels"]["drive"], "safe")
        self.assertEqual(lost["labels"]["below"], "0.1")
        self.assertIn("has lost leg 0.1 of mirror", lost["annotations"]["summary"])
        query = urllib.parse.quote('cairn_layer_requests_total{drive="safe",path="0",kind="write"}')

        def writes_are_kept():
            told = self.ask_prometheus(at, f"/api/v1/query?query={query}")
            return told and told["result"] and int(told["result"][0]["value"][1]) > 0

        self.wait_for(writes_are_kept)
        self.start_box("file:remote", listen=(f"127.0.0.1:{box.port}",))
        self.wait_for(lambda: "CairnLegLost" not in alarms())


if __name__ == "__main__":
    support.main()
