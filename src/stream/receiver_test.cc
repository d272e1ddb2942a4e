// SPDX-License-Identifier: Apache-2.0
#include "stream/receiver.h"

#include <gtest/gtest.h>

#include <vector>

#include "task/ready.h"

namespace cairn::stream {
namespace {

// Gives what a test has put in, as much as a read has room for.
class ScriptedStream final : public env::Stream {
 public:
  std::vector<std::byte> waiting;

  Result<void> finish() override { return {}; }
  void reset() override {}
  env::Address local() const override { return {}; }
  env::Address peer() const override { return {}; }

 private:
  void start_read(env::ReadOp& op) override {
    size_t got = 0;
    for (const MutableBytes piece : op.pieces()) {
      const size_t count = std::min(piece.size(), waiting.size() - got);
      std::copy_n(waiting.begin() + static_cast<ptrdiff_t>(got), count, piece.begin());
      got += count;
    }
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<ptrdiff_t>(got));
    op.complete(got);
  }
  void cancel_read(env::ReadOp&) override {}
  void start_write(env::WriteOp& op) override { op.complete({}); }
  void cancel_write(env::WriteOp&) override {}
  void start_receive(env::ReceiveOp& op) override { op.complete(env::Chunk()); }
  void cancel_receive(env::ReceiveOp&) override {}
};

class ReceiverTest : public testing::Test {
 protected:
  void send(size_t count) {
    for (size_t i = 0; i < count; ++i) stream_.waiting.push_back(static_cast<std::byte>(sent_++));
  }
  // All that is here is as it was sent, and is taken.
  void take_all(Receiver& receiver) {
    for (const std::byte each : receiver.bytes()) {
      ASSERT_EQ(each, static_cast<std::byte>(taken_++));
    }
    receiver.take(receiver.bytes().size());
  }
  task::ReadyQueue ready_;
  task::ReadyQueue::Scope scope_{ready_};
  ScriptedStream stream_;
  size_t sent_ = 0;
  size_t taken_ = 0;
};

TEST_F(ReceiverTest, GrowsOnceFilledAndGivesBackAtTheEnd) {
  size_t reserve = 1000;
  {
    Receiver receiver(stream_, 64);
    receiver.let_grow(256, reserve);
    send(63);
    EXPECT_TRUE(receiver.more({}).take());
    EXPECT_EQ(reserve, 1000u) << "there was room left";
    take_all(receiver);
    send(500);
    EXPECT_TRUE(receiver.more({}).take());
    EXPECT_EQ(receiver.bytes().size(), 64u);
    EXPECT_EQ(reserve, 1000u - 192u);
    EXPECT_TRUE(receiver.more({}).take());
    EXPECT_EQ(receiver.bytes().size(), 256u) << "what was here stays in front";
    take_all(receiver);
    EXPECT_TRUE(receiver.more({}).take());
    take_all(receiver);
    EXPECT_EQ(taken_, 563u);
  }
  EXPECT_EQ(reserve, 1000u);
}

TEST_F(ReceiverTest, WithoutReserveItStaysAsItIs) {
  size_t reserve = 191;
  Receiver receiver(stream_, 64);
  receiver.let_grow(256, reserve);
  send(500);
  EXPECT_TRUE(receiver.more({}).take());
  take_all(receiver);
  EXPECT_TRUE(receiver.more({}).take());
  EXPECT_EQ(receiver.bytes().size(), 64u);
  EXPECT_EQ(reserve, 191u);
}

}  // namespace
}  // namespace cairn::stream
