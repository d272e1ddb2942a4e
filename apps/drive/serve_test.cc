// SPDX-License-Identifier: Apache-2.0
#include "apps/drive/serve.h"

#include <gtest/gtest.h>

#include <string>

#include "env/call.h"
#include "sim/cluster.h"

namespace cairn::apps {
namespace {

constexpr uint32_t kCores = 3;

DriveServeOptions options_for(const std::vector<std::string>& drives) {
  DriveServeOptions options;
  for (const std::string& text : drives) options.drives.push_back(*parse_drive_words(text));
  EXPECT_TRUE(name_drives(options.drives));
  return options;
}

// Runs `body(env, options)` on a node whose addresses the doors get.
template <class Body>
void run_in_sim(DriveServeOptions& options, Body body) {
  sim::Cluster cluster;
  sim::Node& node = cluster.node("server", {.cores = kCores});
  options.nbd = {node.address(10809)};
  options.nvme = {node.address(4420)};
  node.start([&options, body](env::Env& env) { return body(env, options); });
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s)) << cluster.report();
}

task::Task<std::string> why_not_resized(DriveServer& server, std::string name, uint64_t bytes) {
  const Attempt<void> resized = co_await server.resize(std::move(name), bytes);
  co_return resized ? "" : resized.error().text;
}

uint64_t bytes_of(drive::SharedDrive& shared) { return shared.drive().geometry().bytes(); }

task::Task<void> resize_drives(env::Env& env, DriveServeOptions& options) {
  DriveServer server(env, options);
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  std::string why = co_await why_not_resized(server, "a", 2 << 20);
  EXPECT_EQ(why, "");
  drive::SharedDrive& shared = server.drives()[0].stack->shared();
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

TEST(DriveServer, ResizesADriveAtEveryDoor) {
  DriveServeOptions options =
      options_for({"a=priority(mem:size=1M)", "m=mem:size=1M", "s=slice(mem:size=1M)"});
  run_in_sim(options, &resize_drives);
}

task::Task<void> look_at_homes(env::Env& env, DriveServeOptions& options) {
  DriveServer server(env, options);
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened);
  uint32_t stacks = 0;
  for (const ServedDrive& drive : server.drives()) {
    if (drive.stack == nullptr) continue;
    EXPECT_EQ(drive.stack->shared().core(), CoreId(stacks++ % kCores)) << drive.name;
  }
  EXPECT_EQ(stacks, 4u);
  co_await server.close();
}

TEST(DriveServer, SpreadsStacksOverTheCores) {
  DriveServeOptions options =
      options_for({"priority(mem:size=1M)", "mem:size=1M", "slice(mem:size=1M)",
                   "priority(mem:size=1M)", "mem:size=1M", "priority(mem:size=1M)"});
  run_in_sim(options, &look_at_homes);
}

task::Task<void> fail_to_open(env::Env& env, DriveServeOptions& options) {
  DriveServer server(env, options);
  const Attempt<void> opened = co_await server.open();
  EXPECT_FALSE(opened);
  if (!opened) {
    EXPECT_NE(opened.error().text.find("drive 'd1' cannot be served:\nslice( mem:size=1M, "),
              std::string::npos)
        << opened.error().text;
  }
  co_await server.close();
}

TEST(DriveServer, ClosesWhatItOpenedWhenAnotherStackDoesNotOpen) {
  DriveServeOptions options =
      options_for({"priority(file:/d0,size=1M)", "slice( mem:size=1M, offset=2M)"});
  run_in_sim(options, &fail_to_open);
}

}  // namespace
}  // namespace cairn::apps
