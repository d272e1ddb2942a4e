// SPDX-License-Identifier: Apache-2.0
// Cancellation that races with completion: either may win, and nothing is lost whichever does.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/env.h"
#include "env/io.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/task.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Chunk;
using env::Connection;
using env::Env;
using env::Listener;
using env::Stream;
using task::CancelSource;
using task::CancelToken;
using task::Task;

STREAM_TEST_SUITE(Racing);

constexpr int kRounds = 300;

// Requests `stop` at a random moment.
Task<void> request_soon(Env& env, CancelSource& stop) {
  co_await hesitate(env);
  stop.request();
}

// What came of `kRounds` races, and how far the sequence of bytes got.
struct Tally {
  int completed = 0;
  int cancelled = 0;
  uint64_t position = 0;
  bool in_order = true;

  template <class T>
  void count(const Result<T>& result) {
    if (result) {
      ++completed;
    } else {
      ++cancelled;
      EXPECT_EQ(outcome(result), "cancelled");
    }
  }
  void take(Bytes bytes) {
    in_order &= is_pattern(bytes, 1, position);
    position += bytes.size();
  }
};

Task<void> send_next(Stream& stream, uint64_t position, size_t size) {
  std::vector<std::byte> bytes(size);
  fill_pattern(bytes, 1, position);
  const Result<void> written = co_await stream.write(bytes);
  EXPECT_EQ(outcome(written), "ok");
}

WORLD_TEST(Racing, ReadLosesNoBytes) {
  const Pair pair = co_await connected(env, scene);
  Tally tally;
  std::array<std::byte, 64> into{};
  uint64_t sent = 0;
  for (int i = 0; i < kRounds; ++i) {
    CancelSource stop;
    Task<Result<size_t>> reading = read_some(*pair.b, into, stop.token());
    Task<void> requesting = request_soon(env, stop);
    co_await send_next(*pair.a, sent, 10);
    sent += 10;
    const Result<size_t> read = co_await reading;
    co_await requesting;
    tally.count(read);
    if (read) tally.take(Bytes(into).first(*read));
  }
  while (tally.position < sent) {
    const Result<size_t> read = co_await pair.b->read(into);
    tally.take(Bytes(into).first(must(read)));
  }
  EXPECT_EQ(tally.position, sent);
  EXPECT_TRUE(tally.in_order);
  EXPECT_EQ(tally.completed + tally.cancelled, kRounds);
}

WORLD_TEST(Racing, ReceiveLosesNoBytes) {
  const Pair pair = co_await connected(env, scene);
  Tally tally;
  uint64_t sent = 0;
  for (int i = 0; i < kRounds; ++i) {
    CancelSource stop;
    Task<Result<Chunk>> receiving = receive_one(*pair.b, stop.token());
    Task<void> requesting = request_soon(env, stop);
    co_await send_next(*pair.a, sent, 10);
    sent += 10;
    const Result<Chunk> chunk = co_await receiving;
    co_await requesting;
    tally.count(chunk);
    if (chunk) tally.take(chunk->bytes());
  }
  while (tally.position < sent) {
    const Result<Chunk> chunk = co_await pair.b->receive();
    EXPECT_TRUE(chunk.has_value() && !chunk->empty());
    if (!chunk || chunk->empty()) co_return;
    tally.take(chunk->bytes());
  }
  EXPECT_EQ(tally.position, sent);
  EXPECT_TRUE(tally.in_order);
  EXPECT_EQ(tally.completed + tally.cancelled, kRounds);
}

WORLD_TEST(Racing, AcceptLosesNoConnection) {
  const std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  Tally tally;
  for (int i = 0; i < kRounds; ++i) {
    CancelSource stop;
    Task<Result<Connection>> accepting = accept_one(*listener, stop.token());
    Task<void> requesting = request_soon(env, stop);
    Result<Connection> made = co_await env.connect(listener->local());
    Result<Connection> accepted = co_await accepting;
    co_await requesting;
    tally.count(accepted);
    if (!accepted) accepted = co_await listener->accept();
    // Byte i goes through, so it is this connection and not one from before.
    const std::unique_ptr<Stream> a = env.open(must(std::move(made)));
    const std::unique_ptr<Stream> b = env.open(must(std::move(accepted)));
    co_await send_next(*a, static_cast<uint64_t>(i), 1);
    std::array<std::byte, 1> byte{};
    const Result<void> read = co_await env::read_exactly(*b, byte);
    EXPECT_EQ(outcome(read), "ok");
    EXPECT_EQ(byte[0], byte_at(1, static_cast<uint64_t>(i)));
  }
  EXPECT_EQ(tally.completed + tally.cancelled, kRounds);
}

WORLD_TEST(Racing, ConnectIsMadeOrNot) {
  const std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  Tally tally;
  for (int i = 0; i < kRounds; ++i) {
    CancelSource stop;
    Task<Result<Connection>> connecting = connect_to(env, listener->local(), stop.token());
    co_await request_soon(env, stop);
    Result<Connection> made = co_await connecting;
    tally.count(made);
    if (!made) continue;
    // Those that were cancelled may be in the backlog too; this one's byte comes sooner or later.
    const std::unique_ptr<Stream> a = env.open(must(std::move(made)));
    co_await send_next(*a, static_cast<uint64_t>(i), 1);
    must(a->finish());
    bool found = false;
    while (!found) {
      Result<Connection> accepted = co_await listener->accept();
      const std::unique_ptr<Stream> b = env.open(must(std::move(accepted)));
      const auto arrived = co_await drain(*b);
      found = arrived && arrived->size() == 1 &&
              arrived->front() == byte_at(1, static_cast<uint64_t>(i));
    }
  }
  EXPECT_EQ(tally.completed + tally.cancelled, kRounds);
}

// Reads and compares until the end or a reset; returns how much came.
Task<uint64_t> read_prefix(Stream& stream) {
  Tally tally;
  std::vector<std::byte> into(20'000);
  while (true) {
    const Result<size_t> got = co_await stream.read(into);
    if (!got || *got == 0) break;
    tally.take(Bytes(into).first(*got));
  }
  EXPECT_TRUE(tally.in_order);
  co_return tally.position;
}

WORLD_TEST(Racing, WriteSendsAllOrAPrefix) {
  const std::vector<std::byte> message = pattern(300'000, 1);
  Tally tally;
  for (int i = 0; i < 40; ++i) {
    const Pair pair = co_await connected(env, scene, kSmallBuffers);
    CancelSource stop;
    Task<uint64_t> reading = read_prefix(*pair.b);
    Task<Result<void>> writing = write_all(*pair.a, message, stop.token());
    co_await request_soon(env, stop);
    const Result<void> written = co_await writing;
    tally.count(written);
    if (written) {
      must(pair.a->finish());
    } else {
      pair.a->reset();
    }
    const uint64_t arrived = co_await reading;
    if (written) EXPECT_EQ(arrived, message.size());
    EXPECT_LE(arrived, message.size());
  }
  EXPECT_EQ(tally.completed + tally.cancelled, 40);
}

WORLD_TEST(Racing, SleepEndsOnce) {
  Tally tally;
  for (int i = 0; i < kRounds; ++i) {
    CancelSource stop;
    Task<Result<void>> sleeping = doze(env, Duration{static_cast<int64_t>(i) * 10}, stop.token());
    co_await request_soon(env, stop);
    const Result<void> slept = co_await sleeping;
    tally.count(slept);
  }
  EXPECT_EQ(tally.completed + tally.cancelled, kRounds);
}

// The stream is destroyed in the very turn in which its cancelled read has completed.
WORLD_TEST(Racing, StreamMayGoRightAfterItsCancelledOperations) {
  for (int i = 0; i < 100; ++i) {
    Pair pair = co_await connected(env, scene);
    CancelSource stop;
    std::array<std::byte, 16> into{};
    Task<Result<size_t>> reading = read_some(*pair.b, into, stop.token());
    Task<Result<Chunk>> receiving = receive_one(*pair.a, stop.token());
    Task<void> requesting = request_soon(env, stop);
    co_await send_next(*pair.a, 0, 1);
    const Result<size_t> read = co_await reading;
    pair.b.reset();
    const Result<Chunk> chunk = co_await receiving;
    EXPECT_TRUE(outcome(chunk) == "cancelled" || (chunk && chunk->empty()) ||
                outcome(chunk) == "reset")
        << outcome(chunk);
    pair.a.reset();
    co_await requesting;
    EXPECT_TRUE(read || outcome(read) == "cancelled");
  }
}

}  // namespace
}  // namespace cairn::conformance
