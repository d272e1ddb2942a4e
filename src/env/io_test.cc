// SPDX-License-Identifier: Apache-2.0
#include "env/io.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "env/address.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/task.h"
#include "testing/test_env.h"

namespace cairn::env {
namespace {

using task::CancelSource;
using task::Task;

// Hands out its text in the pieces asked for, then what `then` says; waits when that is nothing.
class ScriptedStream final : public Stream {
 public:
  enum class Then : uint8_t { kEnd, kReset, kWait };
  ScriptedStream(std::vector<std::string> pieces, Then then)
      : pieces_(std::move(pieces)), then_(then) {}

  Result<void> finish() override { return {}; }
  void reset() override {}
  Address local() const override { return {}; }
  Address peer() const override { return {}; }
  size_t reads = 0;

 private:
  void start_read(ReadOp& op) override {
    ++reads;
    if (next_ < pieces_.size()) {
      const std::string& piece = pieces_[next_++];
      const MutableBytes into = op.pieces().front();
      ASSERT_LE(piece.size(), into.size()) << "asked for less than is missing";
      std::memcpy(into.data(), piece.data(), piece.size());
      return op.complete(piece.size());
    }
    if (then_ == Then::kEnd) op.complete(size_t{0});
    if (then_ == Then::kReset) op.complete(fail(Errc::kReset, "script"));
  }
  void cancel_read(ReadOp& op) override { op.complete(op.cancelled()); }
  void start_write(WriteOp& op) override { op.complete({}); }
  void cancel_write(WriteOp&) override {}
  void start_receive(ReceiveOp& op) override { op.complete(Chunk()); }
  void cancel_receive(ReceiveOp&) override {}

  std::vector<std::string> pieces_;
  size_t next_ = 0;
  Then then_;
};

struct ReadExactly : testing::Test {
  Task<Result<void>> start(Stream& stream, MutableBytes into, task::CancelToken token = {}) {
    return cores.on(0, [&] { return read_exactly(stream, into, token); });
  }
  TestCores cores{1};
  std::array<std::byte, 6> memory{};
};

TEST_F(ReadExactly, GathersShortReads) {
  ScriptedStream stream({"c", "ai", "r", "ns"}, ScriptedStream::Then::kWait);
  Task<Result<void>> read = start(stream, memory);
  cores.run();
  ASSERT_TRUE(read.is_done());
  EXPECT_TRUE(read.take().has_value());
  EXPECT_EQ(as_text(memory), "cairns");
  EXPECT_EQ(stream.reads, 4u);
}

TEST_F(ReadExactly, OfNothingReadsNothing) {
  ScriptedStream stream({}, ScriptedStream::Then::kWait);
  Task<Result<void>> read = start(stream, {});
  ASSERT_TRUE(read.is_done());
  EXPECT_TRUE(read.take().has_value());
  EXPECT_EQ(stream.reads, 0u);
}

TEST_F(ReadExactly, SaysHowMuchCameBeforeTheEnd) {
  ScriptedStream stream({"ca", "ir"}, ScriptedStream::Then::kEnd);
  Task<Result<void>> read = start(stream, memory);
  cores.run();
  const Result<void> result = read.take();
  EXPECT_TRUE(result.error() == Errc::kClosed);
  EXPECT_EQ(result.error().detail(), 4);
}

TEST_F(ReadExactly, PassesOnTheStreamsError) {
  ScriptedStream stream({"ca"}, ScriptedStream::Then::kReset);
  Task<Result<void>> read = start(stream, memory);
  cores.run();
  EXPECT_TRUE(read.take().error() == Errc::kReset);
}

TEST_F(ReadExactly, EndsWhenCancelled) {
  ScriptedStream stream({"ca"}, ScriptedStream::Then::kWait);
  CancelSource stop;
  Task<Result<void>> read = start(stream, memory, stop.token());
  cores.run();
  EXPECT_FALSE(read.is_done());
  stop.request();
  cores.run();
  EXPECT_TRUE(read.take().error() == Errc::kCancelled);
}

struct ConnectStream : testing::Test {
  Task<Result<std::unique_ptr<Stream>>> start(task::CancelToken token = {}) {
    return cores.on(0,
                    [&] { return connect_stream(cores[0], Address::loopback(4420), {}, token); });
  }
  TestCores cores{1};
};

TEST_F(ConnectStream, OpensTheConnectionOnThisCore) {
  auto scripted =
      std::make_unique<ScriptedStream>(std::vector<std::string>{}, ScriptedStream::Then::kEnd);
  const Stream* expected = scripted.get();
  cores[0].next_stream = std::move(scripted);
  auto connecting = start();
  cores.run();
  ASSERT_TRUE(connecting.is_done());
  EXPECT_EQ(connecting.take().value().get(), expected);
  EXPECT_EQ(cores[0].connections_closed, 0) << "the stream owns it now";
}

TEST_F(ConnectStream, PassesOnTheError) {
  cores[0].next_error = Error(Errc::kUnreachable, "connect");
  auto connecting = start();
  cores.run();
  EXPECT_TRUE(connecting.take().error() == Errc::kUnreachable);
}

TEST_F(ConnectStream, EndsWhenCancelled) {
  CancelSource stop;
  auto connecting = start(stop.token());
  cores.run();
  EXPECT_FALSE(connecting.is_done());
  stop.request();
  cores.run();
  EXPECT_TRUE(connecting.take().error() == Errc::kCancelled);
}

TEST(Connection, ClosesWhatWasNeverOpened) {
  TestCores cores(1);
  struct Owner final : Connection::Owner {
    void close_connection(int64_t handle) override { closed.push_back(handle); }
    std::vector<int64_t> closed;
  } owner;
  {
    Connection first(&owner, 5);
    Connection moved = std::move(first);
    EXPECT_FALSE(first.is_valid());  // NOLINT(bugprone-use-after-move): moved-from by contract
    moved = Connection(&owner, 6);
    Connection taken(&owner, 7);
    EXPECT_EQ(taken.take(), 7);
  }
  EXPECT_EQ(owner.closed, (std::vector<int64_t>{5, 6}));
}

TEST(Chunk, GoesBackOnce) {
  struct Owner final : Chunk::Owner {
    void take_back(uint64_t id) override { back.push_back(id); }
    std::vector<uint64_t> back;
  } owner;
  {
    Chunk chunk(as_bytes("abc"), &owner, 9);
    Chunk moved = std::move(chunk);
    EXPECT_TRUE(chunk.empty());  // NOLINT(bugprone-use-after-move): moved-from by contract
    EXPECT_EQ(as_text(moved.bytes()), "abc");
    moved.release();
    moved.release();
    EXPECT_TRUE(moved.empty());
  }
  EXPECT_EQ(owner.back, (std::vector<uint64_t>{9}));
}

}  // namespace
}  // namespace cairn::env
