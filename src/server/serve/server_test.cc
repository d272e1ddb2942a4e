// SPDX-License-Identifier: Apache-2.0
#include "server/serve/server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "env/call.h"
#include "fabric/host/remote_drive.h"
#include "server/open/open.h"
#include "task/deadline.h"
#include "world/sim/cluster.h"

namespace cairn::server {
namespace {

constexpr uint32_t kCores = 3;

// What a server is told, and what it says.
struct Told {
  ServerOptions server;
  DoorOptions doors;
  ServerHooks hooks;

  const std::string& nqn() const { return server.subsystems[0].options.nqn; }
};

Told options_for(const std::vector<std::string>& drives) {
  Told told;
  SubsystemConfig& subsystem = told.server.subsystems.emplace_back();
  subsystem.options.nqn = "nqn.2026-11.io.cairn:drives";
  for (const std::string& text : drives) {
    const Attempt<DriveArgs> args = parse_drive_args(text, LookUp::kWhenOpened);
    nvme::NamespaceOptions& drive = subsystem.namespaces.emplace_back();
    drive.name = args->name;
    if (args->stack == nullptr) {
      drive.drive = args->spec;
    } else {
      drive.stack = args->text;
      told.server.typed[args->text] = without_name(text);
    }
  }
  return told;
}

// Runs `body(env, told)` on a node whose addresses the doors get.
template <class Body>
void run_in_sim(Told& told, Body body) {
  sim::Cluster cluster;
  sim::Node& node = cluster.node("server", {.cores = kCores});
  told.doors.nbd = {node.address(10809)};
  told.server.listeners = {{.address = node.address(4420)}};
  node.start([&told, body](env::Env& env) { return body(env, told); });
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
}

task::Task<std::string> why_not_resized(Server& server, std::string name, uint64_t bytes) {
  const Attempt<void> resized = co_await server.resize_drive(std::move(name), bytes);
  co_return resized ? "" : resized.error().text;
}

uint64_t bytes_of(drive::SharedDrive& shared) { return shared.drive().geometry().bytes(); }

task::Task<void> resize_drives(env::Env& env, Told& told) {
  Server server(env, told.server, {}, told.hooks, told.doors);
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  std::string why = co_await why_not_resized(server, "a", 2 << 20);
  EXPECT_EQ(why, "");
  drive::SharedDrive& shared = server.drives()[0]->stack()->shared();
  const uint64_t bytes =
      co_await env::call_on(env, shared.core(), [&shared](env::Env&) { return bytes_of(shared); });
  EXPECT_EQ(bytes, 2u << 20);
  why = co_await why_not_resized(server, "m", 4 << 20);
  EXPECT_EQ(why, "");
  why = co_await why_not_resized(server, "aa", 2 << 20);
  EXPECT_NE(why.find("no drive 'aa' is served here"), std::string::npos) << why;
  why = co_await why_not_resized(server, "", 2 << 20);
  EXPECT_NE(why.find("3 drives are served here"), std::string::npos) << why;
  why = co_await why_not_resized(server, "a", 1000);
  EXPECT_NE(why.find("drive a keeps its size"), std::string::npos) << why;
  why = co_await why_not_resized(server, "s", 4 << 20);
  EXPECT_NE(why.find("drive s keeps its size"), std::string::npos) << why;
  co_await server.close();
}

TEST(Server, ResizesADriveAtEveryDoor) {
  Told told = options_for({"a=priority(mem:size=1M)", "m=mem:size=1M", "s=slice(mem:size=1M)"});
  run_in_sim(told, &resize_drives);
}

task::Task<void> look_at_homes(env::Env& env, Told& told) {
  Server server(env, told.server, {}, told.hooks, told.doors);
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened);
  uint32_t stacks = 0;
  for (const auto& drive : server.drives()) {
    if (drive->stack() == nullptr) continue;
    EXPECT_EQ(drive->stack()->shared().core(), CoreId(stacks++ % kCores)) << drive->name;
  }
  EXPECT_EQ(stacks, 4u);
  co_await server.close();
}

TEST(Server, SpreadsStacksOverTheCores) {
  Told told = options_for({"priority(mem:size=1M)", "mem:size=1M", "slice(mem:size=1M)",
                           "priority(mem:size=1M)", "mem:size=1M", "priority(mem:size=1M)"});
  run_in_sim(told, &look_at_homes);
}

task::Task<void> fail_to_open(env::Env& env, Told& told) {
  Server server(env, told.server, {}, told.hooks, told.doors);
  const Attempt<void> opened = co_await server.open();
  EXPECT_FALSE(opened);
  if (!opened) {
    EXPECT_NE(opened.error().text.find("drive 'd0' cannot be served:\nslice( mem:size=1M, "),
              std::string::npos)
        << opened.error().text;
  }
  co_await server.close();
}

TEST(Server, DoesNotServeWhenNoDriveOpens) {
  Told told = options_for({"slice( mem:size=1M, offset=2M)", "file:/gone"});
  run_in_sim(told, &fail_to_open);
}

// The drive of that name, opened on this core, can be read.
task::Task<bool> can_be_read(env::Env& env, Server& server, std::string name) {
  const Attempt<ServedDrive*> found = server.find(name);
  Result<std::unique_ptr<drive::Drive>> drive = (*found)->source->open(env);
  if (!drive) co_return false;
  std::vector<std::byte> block(4096);
  const Result<void> read = co_await (*drive)->read(Lba(0), block);
  co_await (*drive)->close();
  co_return read.has_value();
}

task::Task<void> open_late(env::Env& env, Told& told, sim::Node& node) {
  std::string log;
  told.hooks.log = [&log](config::LogLevel level, std::string_view line) {
    log += fmt::format("{}: {}\n", name(level), line);
  };
  Server server(env, told.server, {}, told.hooks, told.doors);
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  const bool sibling = co_await can_be_read(env, server, "b");
  EXPECT_TRUE(sibling);
  const bool early = co_await can_be_read(env, server, "a");
  EXPECT_FALSE(early);
  const ServedDrive& failed = *server.drives()[0];
  EXPECT_EQ(failed.name, "a");
  EXPECT_FALSE(failed.problem.empty());
  EXPECT_EQ(server.health(failed)->now.health, drive::Health::kFailing);
  EXPECT_NE(log.find("drive a is failing: not open: "), std::string::npos) << log;
  EXPECT_NE(log.find("cairn drive retry a"), std::string::npos) << log;
  const Attempt<void> again = co_await server.reopen_drive("a");
  EXPECT_FALSE(again);
  node.disk("/late").create(4 << 20);
  const Result<void> slept = co_await task::sleep_for(env, 6_s);
  EXPECT_TRUE(slept);
  EXPECT_EQ(failed.problem, "");
  EXPECT_NE(failed.stack(), nullptr);
  const bool late = co_await can_be_read(env, server, "a");
  EXPECT_TRUE(late);
  EXPECT_NE(log.find("drive a is ok again: not open is over"), std::string::npos) << log;
  // Both are where they were to be from the start.
  for (uint32_t nsid = 1; nsid <= 2; ++nsid) {
    fabric::Uri uri{.paths = {told.server.listeners[0].address}, .nqn = told.nqn(), .nsid = nsid};
    Result<std::unique_ptr<fabric::RemoteDrive>> host =
        co_await fabric::RemoteDrive::open(env, uri);
    EXPECT_TRUE(host) << host.error().text();
    if (!host) continue;
    EXPECT_EQ((*host)->geometry().bytes(), nsid == 1 ? 4u << 20 : 1u << 20);
    co_await (*host)->close();
  }
  co_await server.close();
}

TEST(Server, ADriveThatDoesNotOpenKeepsNoOtherDownAndComesLater) {
  Told told = options_for({"a=priority(file:/late)", "b=priority(mem:size=1M)"});
  sim::Cluster cluster;
  sim::Node& node = cluster.node("server", {.cores = kCores});
  told.doors.nbd = {node.address(10809)};
  told.server.listeners = {{.address = node.address(4420)}};
  node.start([&](env::Env& env) { return open_late(env, told, node); });
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
}

task::Task<void> open_larger(env::Env& env, Told& told) {
  std::string log;
  told.hooks.log = [&log](config::LogLevel, std::string_view line) {
    log += fmt::format("{}\n", line);
  };
  Server server(env, told.server, {}, told.hooks, told.doors);
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  EXPECT_NE(log.find("drive f has 4M, and its line says size=1M"), std::string::npos) << log;
  EXPECT_NE(log.find("drive t is ok: thin (layer 0): larger than said: "), std::string::npos)
      << log;
  co_await server.close();
}

// A file, and a thin drive, that grew while they were served under the same line.
task::Task<void> grow(env::Env& env, Told& told) {
  Server server(env, told.server, {}, told.hooks, told.doors);
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  std::string why = co_await why_not_resized(server, "f", 4 << 20);
  EXPECT_EQ(why, "");
  why = co_await why_not_resized(server, "t", 2_GiB);
  EXPECT_EQ(why, "");
  co_await server.close();
}

TEST(Server, TheSameLineOpensWhatHasGrown) {
  const std::vector<std::string> line = {"f=file:/f,size=1M",
                                         "t=thin(file:/t,size=4M, virtual=1G)"};
  Told before = options_for(line);
  Told after = options_for(line);
  sim::Cluster cluster;
  sim::Node& node = cluster.node("server", {.cores = kCores});
  for (auto [told, body] : {std::pair(&before, &grow), std::pair(&after, &open_larger)}) {
    told->doors.nbd = {node.address(10809)};
    told->server.listeners = {{.address = node.address(4420)}};
    node.start([told, body](env::Env& env) { return body(env, *told); });
    ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
  }
}

}  // namespace
}  // namespace cairn::server
