// SPDX-License-Identifier: Apache-2.0
// Back-pressure: a writer is held up by a reader that does not read, and by nobody else.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "env/io.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "task/task.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Chunk;
using env::Stream;
using task::CancelSource;
using task::CancelToken;
using task::Task;

STREAM_TEST_SUITE(Flow);

constexpr size_t kLarge = 2 * kInFlightMax;

// How far a reader has come, and how far it was when the writer was done.
struct Progress {
  size_t read = 0;
  size_t read_when_written = 0;
};

Task<Result<void>> write_and_note(Stream& stream, Bytes from, Progress& progress) {
  const Result<void> written = co_await stream.write(from);
  progress.read_when_written = progress.read;
  co_return written;
}
Task<Result<void>> write_vector_and_note(Stream& stream, std::span<const Bytes> from,
                                         Progress& progress) {
  const Result<void> written = co_await stream.write(from);
  progress.read_when_written = progress.read;
  co_return written;
}

Task<bool> read_slowly(env::Env& env, Stream& stream, size_t size, Progress& progress) {
  std::vector<std::byte> piece(50'000);
  while (progress.read < size) {
    const Result<size_t> got = co_await stream.read(piece);
    if (!got || *got == 0) co_return false;
    if (!is_pattern(Bytes(piece).first(*got), 1, progress.read)) co_return false;
    progress.read += *got;
    co_await turn(env);
  }
  co_return true;
}

WORLD_TEST(Flow, WriteEndsOnlyWhenTheReaderHasTakenWhatBuffersDoNotHold) {
  const Pair pair = co_await connected(env, scene, kSmallBuffers);
  const std::vector<std::byte> message = pattern(kLarge, 1);
  Progress progress;
  Task<Result<void>> writing = write_and_note(*pair.a, message, progress);
  for (int i = 0; i < 100; ++i) co_await turn(env);
  EXPECT_FALSE(writing.is_done()) << "nobody has read a byte";
  const bool same = co_await read_slowly(env, *pair.b, kLarge, progress);
  const Result<void> written = co_await writing;
  EXPECT_TRUE(same);
  EXPECT_EQ(outcome(written), "ok");
  EXPECT_GE(progress.read_when_written, kLarge - kInFlightMax);
}

WORLD_TEST(Flow, VectoredWriteWaitsTheSameWay) {
  const Pair pair = co_await connected(env, scene, kSmallBuffers);
  const std::vector<std::byte> message = pattern(kLarge, 1);
  std::vector<Bytes> pieces;
  for (size_t at = 0; at < kLarge; at += 10'007) {
    pieces.push_back(Bytes(message).subspan(at, std::min<size_t>(10'007, kLarge - at)));
  }
  Progress progress;
  Task<Result<void>> writing = write_vector_and_note(*pair.a, pieces, progress);
  const bool same = co_await read_slowly(env, *pair.b, kLarge, progress);
  const Result<void> written = co_await writing;
  EXPECT_TRUE(same);
  EXPECT_EQ(outcome(written), "ok");
  EXPECT_GE(progress.read_when_written, kLarge - kInFlightMax);
}

WORLD_TEST(Flow, AStuckDirectionDoesNotHoldUpTheOther) {
  const Pair pair = co_await connected(env, scene, kSmallBuffers);
  const std::vector<std::byte> message = pattern(kLarge, 1);
  Progress progress;
  Task<Result<void>> stuck = write_and_note(*pair.a, message, progress);
  std::vector<std::byte> answer(4096);
  for (uint64_t i = 0; i < 200; ++i) {
    const std::vector<std::byte> sent = pattern(answer.size(), i);
    const Result<void> written = co_await pair.b->write(sent);
    const Result<void> read = co_await env::read_exactly(*pair.a, answer);
    EXPECT_EQ(outcome(written), "ok");
    EXPECT_EQ(outcome(read), "ok");
    EXPECT_EQ(answer, sent);
  }
  EXPECT_FALSE(stuck.is_done());
  const bool same = co_await read_slowly(env, *pair.b, kLarge, progress);
  const Result<void> written = co_await stuck;
  EXPECT_TRUE(same);
  EXPECT_EQ(outcome(written), "ok");
}

WORLD_TEST(Flow, ReceiveGivesEverythingThenEmptyChunks) {
  const Pair pair = co_await connected(env, scene);
  const std::vector<std::byte> message = pattern(300'001, 2);
  Task<Result<std::vector<std::byte>>> receiving = drain_chunks(*pair.b);
  const Result<void> written = co_await pair.a->write(message);
  EXPECT_EQ(outcome(written), "ok");
  must(pair.a->finish());
  const auto received = co_await receiving;
  EXPECT_EQ(must(received), message);
  for (int i = 0; i < 3; ++i) {
    const Result<Chunk> after = co_await pair.b->receive();
    EXPECT_TRUE(after.has_value() && after->empty());
  }
}

Task<bool> receive_slowly(env::Env& env, Stream& stream, size_t size, Progress& progress) {
  while (progress.read < size) {
    const Result<Chunk> chunk = co_await stream.receive();
    if (!chunk || chunk->empty()) co_return false;
    if (!is_pattern(chunk->bytes(), 1, progress.read)) co_return false;
    progress.read += chunk->bytes().size();
    co_await turn(env);
  }
  co_return true;
}

WORLD_TEST(Flow, WriteIsHeldUpByAReaderThatDoesNotReceive) {
  const Pair pair = co_await connected(env, scene, kSmallBuffers);
  const std::vector<std::byte> message = pattern(kLarge, 1);
  Progress progress;
  Task<Result<void>> writing = write_and_note(*pair.a, message, progress);
  // One receive, so that whatever runs ahead of the reader has started.
  Result<Chunk> first = co_await pair.b->receive();
  EXPECT_EQ(outcome(first), "ok");
  EXPECT_TRUE(is_pattern(first->bytes(), 1));
  progress.read = first->bytes().size();
  first->release();
  for (int i = 0; i < 100; ++i) co_await turn(env);
  EXPECT_FALSE(writing.is_done());
  const bool same = co_await receive_slowly(env, *pair.b, kLarge, progress);
  const Result<void> written = co_await writing;
  EXPECT_TRUE(same);
  EXPECT_EQ(outcome(written), "ok");
  EXPECT_GE(progress.read_when_written, kLarge - kInFlightMax);
}

// Chunks kept by a reader, with the position of each in the stream.
struct Held {
  struct Entry {
    Chunk chunk;
    size_t at = 0;
  };
  std::deque<Entry> chunks;
  size_t received = 0;
  bool all_intact = true;

  // Looks at the bytes only now: they must not have changed while they were held.
  void give_back_oldest() {
    if (chunks.empty()) return;
    all_intact &= is_pattern(chunks.front().chunk.bytes(), 1, chunks.front().at);
    chunks.pop_front();
  }
};

// Receives until the end or `token`, and keeps every chunk.
Task<Result<void>> hoard(Stream& stream, Held& held, CancelToken token) {
  while (true) {
    Result<Chunk> chunk = co_await stream.receive(token);
    if (!chunk) co_return fail(chunk.error());
    if (chunk->empty()) co_return Result<void>{};
    const size_t size = chunk->bytes().size();
    held.chunks.push_back({std::move(*chunk), held.received});
    held.received += size;
  }
}

// Gives one chunk back now and then, until asked to stop; then all that are left.
Task<void> give_back(env::Env& env, Held& held, CancelToken stop) {
  while (!stop.requested()) {
    held.give_back_oldest();
    [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, 20_us, stop);
  }
  while (!held.chunks.empty()) held.give_back_oldest();
}

WORLD_TEST(Flow, HeldChunksStayIntactAndNothingIsLost) {
  const Pair pair = co_await connected(env, scene, kSmallBuffers);
  const std::vector<std::byte> message = pattern(kLarge, 1);
  Progress progress;
  Held held;
  CancelSource enough;
  Task<Result<void>> writing = write_and_note(*pair.a, message, progress);
  Task<Result<void>> hoarding = hoard(*pair.b, held, {});
  Task<void> giving = give_back(env, held, enough.token());
  const Result<void> written = co_await writing;
  EXPECT_EQ(outcome(written), "ok");
  must(pair.a->finish());
  const Result<void> hoarded = co_await hoarding;
  enough.request();
  co_await giving;
  EXPECT_EQ(outcome(hoarded), "ok");
  EXPECT_EQ(held.received, kLarge);
  EXPECT_TRUE(held.all_intact);
}

WORLD_TEST(Flow, HeldChunksSlowOnlyTheirOwnStream) {
  const Pair hoarded = co_await connected(env, scene, kSmallBuffers);
  const Pair other = co_await connected(env, scene, kSmallBuffers);
  const std::vector<std::byte> message = pattern(kLarge, 1);
  Held held;
  CancelSource stop;
  Progress unread;
  Progress progress;
  Task<Result<void>> stuck = write_and_note(*hoarded.a, message, unread);
  Task<Result<void>> hoarding = hoard(*hoarded.b, held, stop.token());
  Task<Result<void>> writing = write_and_note(*other.a, message, progress);
  const bool same = co_await receive_slowly(env, *other.b, kLarge, progress);
  const Result<void> written = co_await writing;
  EXPECT_TRUE(same);
  EXPECT_EQ(outcome(written), "ok");
  EXPECT_FALSE(stuck.is_done()) << "all its chunks are held";
  stop.request();
  const Result<void> ended = co_await hoarding;
  EXPECT_EQ(outcome(ended), "cancelled");
  while (!held.chunks.empty()) held.give_back_oldest();
  EXPECT_TRUE(held.all_intact);
  unread.read = held.received;
  const bool rest = co_await receive_slowly(env, *hoarded.b, kLarge, unread);
  const Result<void> unstuck = co_await stuck;
  EXPECT_TRUE(rest);
  EXPECT_EQ(outcome(unstuck), "ok");
}

}  // namespace
}  // namespace cairn::conformance
