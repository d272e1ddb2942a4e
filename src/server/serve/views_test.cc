// SPDX-License-Identifier: Apache-2.0
#include "server/serve/views.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/open/open.h"
#include "world/sim/cluster.h"

namespace cairn::server {
namespace {

task::Task<std::string> told(ServedDrive& drive, std::vector<std::string> args) {
  const auto answer = co_await drive.stack()->shared().drive().tell(std::move(args));
  co_return answer ? *answer : answer.error();
}

// Whether a view is there, and can be written; "" when it is not.
task::Task<std::string> look(env::Env& env, DriveViews& views, std::string name) {
  Result<door::ExportOptions> found = co_await views.find(name);
  if (!found) {
    EXPECT_EQ(found.error().code(), Errc::kNotFound);
    co_return "";
  }
  EXPECT_EQ(found->name, name);
  Result<std::unique_ptr<drive::Drive>> drive = found->source->open(env);
  std::vector<std::byte> block(4096);
  const Result<void> read = co_await (*drive)->read(Lba(0), block);
  EXPECT_TRUE(read.has_value());
  co_await (*drive)->close();
  drive->reset();
  const std::string mode = found->read_only ? "read-only" : "writable";
  co_await views.give_back(*found->source);
  co_return mode;
}

task::Task<void> use_views(env::Env& env, std::vector<DriveArgs>& args) {
  ServedDrives drives;
  for (DriveArgs& one : args) {
    Attempt<std::unique_ptr<drive::Source>> source = co_await open_drive(env, one, CoreId(0));
    EXPECT_TRUE(source.has_value());
    drives.push_back(std::make_unique<ServedDrive>());
    drives.back()->name = one.name;
    drives.back()->text = one.text;
    drives.back()->source = std::make_unique<ServedSource>(env.core_count());
    co_await drives.back()->source->fill(env, std::move(*source));
  }
  EXPECT_EQ(co_await told(*drives[0], {"take", "good"}), "version 1");
  EXPECT_EQ(co_await told(*drives[0], {"clone", "1", "c"}), "clone:c of version 1");
  DriveViews views(env, drives);
  EXPECT_EQ(co_await look(env, views, "s@1"), "read-only");
  EXPECT_EQ(co_await look(env, views, "s@good"), "read-only");
  EXPECT_EQ(co_await look(env, views, "s@clone:c"), "writable");
  for (const char* none : {"s@2", "s@", "s", "t@1", "plain@1", "@1", "s@clone:d"}) {
    EXPECT_EQ(co_await look(env, views, none), "") << none;
  }
  for (const auto& drive : drives) drive->space.read_only = true;
  DriveViews guarded(env, drives);
  EXPECT_EQ(co_await look(env, guarded, "s@clone:c"), "read-only");
  EXPECT_EQ(co_await told(*drives[0], {"remove", "clone:c"}), "removed clone:c");
  for (const auto& drive : drives) co_await drive->source->close(env);
}

TEST(DriveViews, AreFoundByNameAndGivenBack) {
  std::vector<DriveArgs> args;
  for (const char* text : {"s=snapshot(mem:size=4M)", "plain=mem:size=1M"}) {
    Attempt<DriveArgs> one = parse_drive_args(text, LookUp::kWhenOpened);
    ASSERT_TRUE(one.has_value());
    args.push_back(std::move(*one));
  }
  sim::Cluster cluster;
  sim::Node& node = cluster.node("host");
  node.start([&](env::Env& env) { return use_views(env, args); });
  EXPECT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s));
}

}  // namespace
}  // namespace cairn::server
