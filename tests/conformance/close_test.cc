// SPDX-License-Identifier: Apache-2.0
// How a connection ends: half closed, closed, or reset, and who sees what.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "env/io.h"
#include "env/stream.h"
#include "task/task.h"
#include "task/when_all.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Chunk;
using env::Stream;
using task::Task;

STREAM_TEST_SUITE(Closing);

// `from` writes and finishes; `to` reads it all and then the end, over and over.
Task<void> finish_one_way(Stream& from, Stream& to, uint64_t seed) {
  const std::vector<std::byte> message = pattern(100'000, seed);
  Task<Result<std::vector<std::byte>>> reading = drain(to);
  const Result<void> written = co_await from.write(message);
  EXPECT_EQ(outcome(written), "ok");
  EXPECT_EQ(outcome(from.finish()), "ok");
  const auto arrived = co_await reading;
  EXPECT_EQ(must(arrived), message);
  std::array<std::byte, 8> more{};
  for (int i = 0; i < 3; ++i) {
    const Result<size_t> end = co_await to.read(more);
    EXPECT_EQ(must(end), 0u) << "the end stays the end";
  }
}

WORLD_TEST(Closing, HalfCloseLetsTheOtherDirectionGoOn) {
  const Pair pair = co_await connected(env, scene);
  co_await finish_one_way(*pair.a, *pair.b, 1);
  const std::vector<std::byte> answer = pattern(50'000, 2);
  std::vector<std::byte> arrived(answer.size());
  for (int i = 0; i < 3; ++i) {
    auto [written, read] =
        co_await task::when_all(write_all(*pair.b, answer), env::read_exactly(*pair.a, arrived));
    EXPECT_EQ(outcome(written), "ok");
    EXPECT_EQ(outcome(read), "ok");
    EXPECT_EQ(arrived, answer);
  }
  co_await finish_one_way(*pair.b, *pair.a, 3);
}

WORLD_TEST(Closing, BothMayFinishAtOnce) {
  const Pair pair = co_await connected(env, scene);
  co_await task::when_all(finish_one_way(*pair.a, *pair.b, 4), finish_one_way(*pair.b, *pair.a, 5));
}

WORLD_TEST(Closing, FinishWithoutAByteIsJustTheEnd) {
  const Pair pair = co_await connected(env, scene);
  must(pair.a->finish());
  const auto nothing = co_await drain(*pair.b);
  EXPECT_TRUE(must(nothing).empty());
  must(pair.b->finish());
  const auto chunks = co_await drain_chunks(*pair.a);
  EXPECT_TRUE(must(chunks).empty());
}

WORLD_TEST(Closing, WriteAfterFinishIsClosed) {
  const Pair pair = co_await connected(env, scene);
  must(pair.a->finish());
  const std::vector<std::byte> message = pattern(10, 1);
  for (int i = 0; i < 2; ++i) {
    const Result<void> written = co_await pair.a->write(message);
    EXPECT_EQ(outcome(written), "closed");
  }
}

WORLD_TEST(Closing, DestroyedStreamStillDeliversWhatWasWritten) {
  for (const size_t size : {size_t{1}, size_t{5000}, size_t{1} << 20}) {
    Pair pair = co_await connected(env, scene);
    const std::vector<std::byte> message = pattern(size, size);
    Task<Result<std::vector<std::byte>>> reading = drain(*pair.b);
    const Result<void> written = co_await pair.a->write(message);
    EXPECT_EQ(outcome(written), "ok");
    pair.a.reset();
    const auto arrived = co_await reading;
    EXPECT_EQ(outcome(arrived), "ok");
    if (arrived) EXPECT_EQ(*arrived, message) << size;
  }
}

WORLD_TEST(Closing, DestroyedStreamDeliversEvenToALateReader) {
  Pair pair = co_await connected(env, scene);
  const std::vector<std::byte> message = pattern(20'000, 1);
  const Result<void> written = co_await pair.a->write(message);
  EXPECT_EQ(outcome(written), "ok");
  pair.a.reset();
  for (int i = 0; i < 20; ++i) co_await turn(env);
  const auto arrived = co_await drain_chunks(*pair.b);
  EXPECT_EQ(outcome(arrived), "ok");
  if (arrived) EXPECT_EQ(*arrived, message);
}

// Every call on a stream whose connection is known to be gone.
Task<void> expect_gone(Stream& stream) {
  std::vector<std::byte> bytes(100);
  const Result<size_t> read = co_await stream.read(bytes);
  EXPECT_EQ(outcome(read), "reset");
  const Result<void> written = co_await stream.write(bytes);
  EXPECT_EQ(outcome(written), "reset");
  EXPECT_EQ(outcome(stream.finish()), "reset");
}

WORLD_TEST(Closing, ResetEndsOwnReadAndWriteInFlight) {
  const Pair pair = co_await connected(env, scene, kSmallBuffers);
  const std::vector<std::byte> message = pattern(2 * kInFlightMax, 1);
  std::vector<std::byte> into(100);
  Task<Result<size_t>> reading = read_some(*pair.a, into);
  Task<Result<void>> writing = write_all(*pair.a, message);
  co_await turn(env);
  EXPECT_FALSE(reading.is_done());
  EXPECT_FALSE(writing.is_done());
  pair.a->reset();
  const Result<size_t> read = co_await reading;
  const Result<void> written = co_await writing;
  EXPECT_EQ(outcome(read), "reset");
  EXPECT_EQ(outcome(written), "reset");
  co_await expect_gone(*pair.a);
}

WORLD_TEST(Closing, ResetEndsOwnReceiveInFlight) {
  const Pair pair = co_await connected(env, scene);
  Task<Result<Chunk>> receiving = receive_one(*pair.a);
  co_await turn(env);
  pair.a->reset();
  const Result<Chunk> received = co_await receiving;
  EXPECT_EQ(outcome(received), "reset");
  const Result<Chunk> again = co_await pair.a->receive();
  EXPECT_EQ(outcome(again), "reset");
}

WORLD_TEST(Closing, PeersResetIsSeenByAWaitingRead) {
  const Pair pair = co_await connected(env, scene);
  std::vector<std::byte> into(100);
  Task<Result<size_t>> reading = read_some(*pair.b, into);
  co_await turn(env);
  pair.a->reset();
  const Result<size_t> read = co_await reading;
  EXPECT_EQ(outcome(read), "reset");
  co_await expect_gone(*pair.b);
}

WORLD_TEST(Closing, PeersResetIsSeenByAWaitingWrite) {
  const Pair pair = co_await connected(env, scene, kSmallBuffers);
  const std::vector<std::byte> message = pattern(2 * kInFlightMax, 1);
  Task<Result<void>> writing = write_all(*pair.b, message);
  co_await turn(env);
  EXPECT_FALSE(writing.is_done());
  pair.a->reset();
  const Result<void> written = co_await writing;
  EXPECT_EQ(outcome(written), "reset");
  const Result<void> again = co_await pair.b->write(Bytes(message).first(1));
  EXPECT_EQ(outcome(again), "reset");
}

WORLD_TEST(Closing, PeersResetIsSeenByAWaitingReceive) {
  const Pair pair = co_await connected(env, scene);
  Task<Result<Chunk>> receiving = receive_one(*pair.b);
  co_await turn(env);
  pair.a->reset();
  const Result<Chunk> received = co_await receiving;
  EXPECT_EQ(outcome(received), "reset");
  const Result<Chunk> again = co_await pair.b->receive();
  EXPECT_EQ(outcome(again), "reset");
}

WORLD_TEST(Closing, PeersResetIsSeenByReadAndWriteWaitingTogether) {
  const Pair pair = co_await connected(env, scene, kSmallBuffers);
  const std::vector<std::byte> message = pattern(2 * kInFlightMax, 1);
  std::vector<std::byte> into(100);
  Task<Result<size_t>> reading = read_some(*pair.b, into);
  Task<Result<void>> writing = write_all(*pair.b, message);
  co_await turn(env);
  pair.a->reset();
  const Result<size_t> read = co_await reading;
  const Result<void> written = co_await writing;
  EXPECT_EQ(outcome(read), "reset");
  EXPECT_EQ(outcome(written), "reset");
}

WORLD_TEST(Closing, WritingToAPeerThatWentAwayEndsInReset) {
  Pair pair = co_await connected(env, scene, kSmallBuffers);
  pair.b.reset();
  const std::vector<std::byte> message = pattern(10'000, 1);
  // The first writes may still be accepted; they must not be accepted for ever.
  Result<void> written;
  size_t accepted = 0;
  while (written && accepted < 8 * kInFlightMax) {
    written = co_await pair.a->write(message);
    accepted += message.size();
  }
  EXPECT_EQ(outcome(written), "reset");
}

// The peer has said all it had to say and is gone: writing to it fails, and what it said still ends
// in good order.
WORLD_TEST(Closing, EndThatCameFirstStaysTheEndWhenAWriteFailsLater) {
  Pair pair = co_await connected(env, scene);
  const std::vector<std::byte> message = pattern(1000, 1);
  const Result<void> written = co_await pair.a->write(message);
  EXPECT_EQ(outcome(written), "ok");
  pair.a.reset();
  std::vector<std::byte> arrived(message.size());
  const Result<void> read = co_await env::read_exactly(*pair.b, arrived);
  EXPECT_EQ(outcome(read), "ok");
  const Result<size_t> end = co_await pair.b->read(arrived);
  EXPECT_EQ(must(end), 0u);
  Result<void> answered;
  for (int i = 0; i < 1000 && answered; ++i) answered = co_await pair.b->write(message);
  EXPECT_EQ(outcome(answered), "reset");
  const Result<size_t> again = co_await pair.b->read(arrived);
  EXPECT_EQ(outcome(again), "ok") << "the end stays the end";
}

WORLD_TEST(Closing, ResetAfterFinishIsStillAReset) {
  const Pair pair = co_await connected(env, scene);
  must(pair.a->finish());
  std::vector<std::byte> into(10);
  const Result<size_t> end = co_await pair.b->read(into);
  EXPECT_EQ(must(end), 0u);
  Task<Result<size_t>> reading = read_some(*pair.a, into);
  pair.b->reset();
  const Result<size_t> read = co_await reading;
  EXPECT_EQ(outcome(read), "reset");
}

WORLD_TEST(Closing, ThousandConnectionsComeAndGo) {
  std::vector<std::byte> into(16);
  const std::vector<std::byte> message = pattern(into.size(), 1);
  const std::unique_ptr<env::Listener> listener = must(env.listen(scene.any_port()));
  for (int i = 0; i < 1000; ++i) {
    Task<Result<env::Connection>> accepting = accept_one(*listener);
    auto client = co_await env::connect_stream(env, listener->local());
    Result<env::Connection> accepted = co_await accepting;
    const std::unique_ptr<Stream> a = must(std::move(client));
    const std::unique_ptr<Stream> b = env.open(must(std::move(accepted)));
    const Result<void> written = co_await a->write(message);
    const Result<void> read = co_await env::read_exactly(*b, into);
    EXPECT_EQ(outcome(written), "ok");
    EXPECT_EQ(outcome(read), "ok");
    if (i % 2 == 0) a->reset();
  }
}

}  // namespace
}  // namespace cairn::conformance
