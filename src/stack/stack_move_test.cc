// SPDX-License-Identifier: Apache-2.0
// Stacks whose layers go elsewhere and come back, under load. "Elsewhere" is another live stack of
// the same process: a disk has one opener, so layers that were open at both would be found out.
#include <gtest/gtest.h>

#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stack/live_stack.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

constexpr const char* kLayers = "limit(stripe(file:/a,size=1M, file:/b,size=1M), iops=1000000)";
constexpr const char* kThere = "there:";

Stack parsed(const std::string& text) { return *Stack::parse(text); }

// Opens sources, and what is elsewhere by a name of its own.
class RemoteLeaves final : public SourceLeaves {
 public:
  explicit RemoteLeaves(env::Env& env) : env_(env) {}

  task::Task<Leaf> open(env::Env& env, std::string text) override {
    if (text != kThere) {
      Leaf leaf = co_await SourceLeaves::open(env, text);
      co_return leaf;
    }
    if (is_out_of_reach || there_.drive == nullptr) co_return std::unexpected("nobody answers");
    co_return std::make_unique<Joint>(env, there_);
  }
  task::Task<std::string> open_there(std::string text) {
    LiveOpened live = co_await open_live_stack(env_, parsed(text), leaves_there_);
    if (!live) co_return live.error().text;
    there_.drive = std::move(*live);
    co_return "";
  }
  task::Task<void> close_there() {
    co_await there_.drive->close();
    there_.drive.reset();
    leaves_there_.close();
  }
  bool is_there() const { return there_.drive != nullptr; }

  bool is_out_of_reach = false;

 private:
  env::Env& env_;
  SourceLeaves leaves_there_;
  OpenLayer there_;
};

class Going final : public Handover {
 public:
  explicit Going(RemoteLeaves& remote, std::string layers = kLayers)
      : remote_(remote), layers_(std::move(layers)) {}
  task::Task<std::expected<Stack, StackError>> give() override {
    const std::string why = co_await remote_.open_there(layers_);
    if (!why.empty()) co_return std::unexpected(StackError{0, why});
    co_return parsed(kThere);
  }
  task::Task<bool> take_back() override {
    if (is_uncertain) co_return false;
    if (remote_.is_there()) co_await remote_.close_there();
    co_return true;
  }

  bool is_uncertain = false;

 private:
  RemoteLeaves& remote_;
  std::string layers_;
};

class Coming final : public Handover {
 public:
  explicit Coming(RemoteLeaves& remote, std::string layers = kLayers)
      : remote_(remote), layers_(std::move(layers)) {}
  task::Task<std::expected<Stack, StackError>> give() override {
    co_await remote_.close_there();
    co_return parsed(layers_);
  }
  task::Task<bool> take_back() override {
    const std::string why = co_await remote_.open_there(kLayers);
    EXPECT_EQ(why, "");
    co_return true;
  }

 private:
  RemoteLeaves& remote_;
  std::string layers_;
};

task::Task<std::string> why_not_moved(LiveStack& live, Handover& handover) {
  const LiveStack::Moved moved = co_await live.move(handover);
  co_return moved ? "" : moved.error().text;
}

struct Load {
  bool is_over = false;
  size_t done = 0;
  size_t wrong = 0;
};

// Writes blocks of its own and reads them back, until it is over.
task::Task<void> keep_writing(Drive& drive, uint8_t worker, Load& load) {
  std::vector<std::byte> read(2 * 4096);
  for (uint8_t round = 0; !load.is_over; ++round) {
    const std::vector<std::byte> data = blocks_of(static_cast<uint8_t>(worker + round), 2);
    const Lba lba(worker * 32U + round % 30);
    const Result<void> written = co_await drive.write(lba, data);
    const Result<void> got = co_await drive.read(lba, read);
    load.wrong += !written || !got || read != data;
    ++load.done;
  }
}

task::Task<void> go_and_come(env::Env& env, LiveStack& live, RemoteLeaves& remote, Load& load) {
  for (int i = 0; i < 20; ++i) {
    Going going(remote);
    std::string why = co_await why_not_moved(live, going);
    EXPECT_EQ(why, "");
    EXPECT_TRUE(remote.is_there());
    EXPECT_EQ(live.stack().text(), kThere);
    const size_t before = load.done;
    while (load.done < before + 10) {
      const Result<void> waited = co_await task::sleep_for(env, 10_us);
      EXPECT_TRUE(waited);
    }
    Coming coming(remote);
    why = co_await why_not_moved(live, coming);
    EXPECT_EQ(why, "");
    EXPECT_FALSE(remote.is_there());
    EXPECT_EQ(live.stack().text(), parsed(kLayers).text());
  }
  load.is_over = true;
}

SIM_TEST(StackMove, NobodyAboveSeesAnError) {
  RemoteLeaves remote(env);
  LiveOpened opened = co_await open_live_stack(env, parsed(kLayers), remote);
  CO_ASSERT_TRUE(opened.has_value());
  LiveStack& live = **opened;
  Load load;
  std::vector<task::Task<void>> tasks;
  for (uint8_t worker = 0; worker < 8; ++worker) tasks.push_back(keep_writing(live, worker, load));
  tasks.push_back(go_and_come(env, live, remote, load));
  co_await task::when_all(std::move(tasks));
  EXPECT_EQ(load.wrong, 0U);
  EXPECT_GE(load.done, 200U);
  co_await live.close();
}

SIM_TEST(StackMove, WhatDoesNotSucceedLeavesItWhereItIs) {
  RemoteLeaves remote(env);
  LiveOpened opened = co_await open_live_stack(env, parsed(kLayers), remote);
  CO_ASSERT_TRUE(opened.has_value());
  LiveStack& live = **opened;
  const std::vector<std::byte> data = blocks_of(7, 4);
  Result<void> done = co_await live.write(Lba(3), data);
  EXPECT_TRUE(done);

  Going to_nothing(remote, "limit(file:/a,size=64M, iops=5)");
  std::string why = co_await why_not_moved(live, to_nothing);
  EXPECT_NE(why, "") << "a file of another size";
  Going to_other(remote, "stripe(file:/b, file:/a)");
  why = co_await why_not_moved(live, to_other);
  EXPECT_NE(why.find("holds something else"), std::string::npos) << why;
  EXPECT_FALSE(remote.is_there()) << "it was taken back";
  remote.is_out_of_reach = true;
  Going to_silence(remote);
  why = co_await why_not_moved(live, to_silence);
  EXPECT_NE(why.find("nobody answers"), std::string::npos) << why;
  EXPECT_FALSE(remote.is_there());
  remote.is_out_of_reach = false;

  EXPECT_EQ(live.stack().text(), parsed(kLayers).text());
  std::vector<std::byte> read(4 * 4096);
  done = co_await live.read(Lba(3), read);
  EXPECT_TRUE(done && read == data) << "the old stack goes on";

  Going going(remote);
  why = co_await why_not_moved(live, going);
  EXPECT_EQ(why, "");
  Coming wrong(remote, "stripe(file:/b, file:/a)");
  why = co_await why_not_moved(live, wrong);
  EXPECT_NE(why.find("holds something else"), std::string::npos) << why;
  EXPECT_TRUE(remote.is_there()) << "it stays where it was";
  done = co_await live.read(Lba(3), read);
  EXPECT_TRUE(done && read == data);
  co_await live.close();
  co_await remote.close_there();
}

SIM_TEST(StackMove, LayersThatMayBeOpenElsewhereAreNotOpenedHere) {
  RemoteLeaves remote(env);
  LiveOpened opened = co_await open_live_stack(env, parsed(kLayers), remote);
  CO_ASSERT_TRUE(opened.has_value());
  LiveStack& live = **opened;
  remote.is_out_of_reach = true;
  Going going(remote);
  going.is_uncertain = true;
  const std::string why = co_await why_not_moved(live, going);
  EXPECT_NE(why.find("nobody answers"), std::string::npos) << why;
  EXPECT_TRUE(remote.is_there()) << "so that its files could not be opened here";
  std::vector<std::byte> read(4096);
  Result<void> done = co_await live.read(Lba(0), read);
  EXPECT_FALSE(done);

  co_await remote.close_there();
  const LiveStack::Edited edited = co_await live.edit(std::string(kLayers));
  EXPECT_TRUE(edited) << edited.error().text;
  done = co_await live.read(Lba(0), read);
  EXPECT_TRUE(done);
  co_await live.close();
}

}  // namespace
}  // namespace cairn::drive
