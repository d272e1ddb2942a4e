// SPDX-License-Identifier: Apache-2.0
// Bytes arrive whole, once and in order, however they are cut on either side.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
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

using env::Stream;
using task::Task;

STREAM_TEST_SUITE(Streams);

WORLD_TEST(Streams, EveryCutOfAMessageArrivesWhole) {
  const Pair pair = co_await connected(env, scene);
  const std::vector<std::byte> message = pattern(40, 1);
  std::vector<std::byte> arrived(message.size());
  for (size_t cut = 0; cut <= message.size(); ++cut) {
    const Bytes whole(message);
    const Result<void> first = co_await pair.a->write(whole.first(cut));
    const Result<void> second = co_await pair.a->write(whole.subspan(cut));
    EXPECT_EQ(outcome(first), "ok") << cut;
    EXPECT_EQ(outcome(second), "ok") << cut;
    const Result<void> read = co_await env::read_exactly(*pair.b, arrived);
    EXPECT_EQ(outcome(read), "ok") << cut;
    EXPECT_EQ(arrived, message) << cut;
  }
}

// Reads `size` bytes in pieces of at most `piece_size` and compares them with the sequence.
Task<bool> read_in_pieces(Stream& stream, size_t size, size_t piece_size, uint64_t seed) {
  std::vector<std::byte> piece(piece_size);
  size_t have = 0;
  while (have < size) {
    const MutableBytes into = MutableBytes(piece).first(std::min(piece_size, size - have));
    const Result<size_t> got = co_await stream.read(into);
    if (!got || *got == 0 || *got > into.size()) co_return false;
    if (!is_pattern(into.first(*got), seed, have)) co_return false;
    have += *got;
  }
  co_return true;
}

WORLD_TEST(Streams, EverySizeOfReadFindsTheSameBytes) {
  const Pair pair = co_await connected(env, scene);
  const std::vector<std::byte> message = pattern(41, 2);
  for (size_t piece_size = 1; piece_size <= message.size() + 1; ++piece_size) {
    const Result<void> written = co_await pair.a->write(message);
    EXPECT_EQ(outcome(written), "ok");
    const bool same = co_await read_in_pieces(*pair.b, message.size(), piece_size, 2);
    EXPECT_TRUE(same) << "in reads of " << piece_size;
  }
}

WORLD_TEST(Streams, SizesAroundEveryBufferSizeArriveWhole) {
  const Pair pair = co_await connected(env, scene);
  for (const size_t size : {size_t{1}, size_t{4} << 10, size_t{16} << 10, size_t{64} << 10,
                            size_t{128} << 10, size_t{256} << 10, size_t{1} << 20}) {
    for (const size_t near : {size - 1, size, size + 1}) {
      const std::vector<std::byte> message = pattern(near, near);
      Task<Result<void>> writing = write_all(*pair.a, message);
      const bool same = co_await read_in_pieces(*pair.b, near, 100'000, near);
      const Result<void> written = co_await writing;
      EXPECT_TRUE(same) << near;
      EXPECT_EQ(outcome(written), "ok") << near;
    }
  }
}

WORLD_TEST(Streams, ReadReturnsWhatIsThereAndDoesNotWaitForMore) {
  const Pair pair = co_await connected(env, scene);
  const std::vector<std::byte> message = pattern(3, 3);
  const Result<void> written = co_await pair.a->write(message);
  EXPECT_EQ(outcome(written), "ok");
  std::vector<std::byte> into(100);
  size_t have = 0;
  while (have < message.size()) {
    const Result<size_t> got = co_await pair.b->read(MutableBytes(into).subspan(have));
    EXPECT_GE(must(got), 1u);
    have += must(got);
  }
  EXPECT_EQ(have, message.size());
  EXPECT_TRUE(is_pattern(Bytes(into).first(have), 3));
}

WORLD_TEST(Streams, ReadOfNothingIsDoneAtOnce) {
  const Pair pair = co_await connected(env, scene);
  const Result<size_t> got = co_await pair.a->read(MutableBytes{});
  EXPECT_EQ(must(got), 0u);
  const std::array<MutableBytes, 2> empty_pieces{};
  const Result<size_t> vectored = co_await pair.a->read(std::span(empty_pieces));
  EXPECT_EQ(must(vectored), 0u);
}

WORLD_TEST(Streams, WriteOfNothingIsDoneAndSendsNothing) {
  const Pair pair = co_await connected(env, scene);
  const Result<void> nothing = co_await pair.a->write(Bytes{});
  EXPECT_EQ(outcome(nothing), "ok");
  const std::array<Bytes, 3> empty_pieces{};
  const Result<void> vectored = co_await pair.a->write(std::span(empty_pieces));
  EXPECT_EQ(outcome(vectored), "ok");
  must(pair.a->finish());
  const auto rest = co_await drain(*pair.b);
  EXPECT_EQ(must(rest).size(), 0u);
}

// `bytes` cut into pieces of the sizes given, over and over, empty ones included.
template <class Piece, class Whole>
std::vector<Piece> cut(Whole bytes, std::span<const size_t> sizes) {
  std::vector<Piece> pieces;
  Piece rest(bytes);
  for (size_t i = 0; !rest.empty(); ++i) {
    const size_t size = std::min(sizes[i % sizes.size()], rest.size());
    pieces.push_back(rest.first(size));
    rest = rest.subspan(size);
  }
  return pieces;
}

WORLD_TEST(Streams, VectoredWriteSendsPiecesInOrder) {
  const Pair pair = co_await connected(env, scene);
  const std::array<size_t, 6> sizes = {0, 1, 7, 0, 4096, 3};
  for (const size_t size : {size_t{1}, size_t{8}, size_t{4107}, size_t{100'000}}) {
    const std::vector<std::byte> message = pattern(size, 4);
    const auto pieces = cut<Bytes>(Bytes(message), sizes);
    Task<bool> reading = read_in_pieces(*pair.b, size, 1000, 4);
    const Result<void> written = co_await pair.a->write(std::span(pieces));
    const bool same = co_await reading;
    EXPECT_EQ(outcome(written), "ok") << size;
    EXPECT_TRUE(same) << size;
  }
}

// More pieces than one system call takes (IOV_MAX is 1024).
WORLD_TEST(Streams, VectoredWriteTakesThousandsOfPieces) {
  const Pair pair = co_await connected(env, scene);
  const std::vector<std::byte> message = pattern(15'000, 5);
  const std::array<size_t, 2> sizes = {3, 5};
  const auto pieces = cut<Bytes>(Bytes(message), sizes);
  EXPECT_GT(pieces.size(), 3000u);
  Task<bool> reading = read_in_pieces(*pair.b, message.size(), 4096, 5);
  const Result<void> written = co_await pair.a->write(std::span(pieces));
  const bool same = co_await reading;
  EXPECT_EQ(outcome(written), "ok");
  EXPECT_TRUE(same);
}

// Writes without waiting as long as that takes anything, and waits for the rest.
Task<Result<void>> write_now_and_later(Stream& stream, std::vector<Bytes> pieces) {
  while (total_size(pieces) > 0) {
    const Result<size_t> taken = stream.write_now(pieces);
    if (!taken) co_return fail(taken.error());
    drop_front(pieces, *taken);
    if (*taken > 0 || pieces.empty()) continue;
    const Bytes first = pieces.front();
    const Result<void> written = co_await stream.write(first);
    if (!written) co_return written;
    drop_front(pieces, first.size());
  }
  co_return Result<void>{};
}

WORLD_TEST(Streams, WritesWithoutWaitingMixWithOthersInOrder) {
  const Pair pair = co_await connected(env, scene, kSmallBuffers);
  const std::array<size_t, 4> sizes = {1, 0, 4096, 70'000};
  for (const size_t size : {size_t{1}, size_t{5000}, 2 * kInFlightMax}) {
    const std::vector<std::byte> message = pattern(size, 9);
    Task<bool> reading = read_in_pieces(*pair.b, size, 50'000, 9);
    const Result<void> written =
        co_await write_now_and_later(*pair.a, cut<Bytes>(Bytes(message), sizes));
    EXPECT_EQ(outcome(written), "ok") << size;
    const bool same = co_await reading;
    EXPECT_TRUE(same) << size;
  }
}

WORLD_TEST(Streams, WritingWithoutWaitingStopsWhenThePeerDoesNotRead) {
  const Pair pair = co_await connected(env, scene, kSmallBuffers);
  const std::vector<std::byte> message = pattern(2 * kInFlightMax, 10);
  const Bytes all = message;
  size_t accepted = 0;
  int refusals = 0;
  // Some refuse although there is room; nobody does so for ever, or accepts without end.
  while (refusals < 100 && accepted < message.size()) {
    const Bytes rest = all.subspan(accepted);
    const Result<size_t> taken = pair.a->write_now(std::span(&rest, 1));
    EXPECT_EQ(outcome(taken), "ok");
    if (!taken) break;
    accepted += *taken;
    refusals = *taken == 0 ? refusals + 1 : 0;
    co_await turn(env);
  }
  EXPECT_LE(accepted, kInFlightMax);
  EXPECT_EQ(outcome(pair.a->finish()), "ok");
  const auto arrived = co_await drain(*pair.b);
  EXPECT_EQ(must(arrived).size(), accepted);
}

WORLD_TEST(Streams, WritingWithoutWaitingAfterTheEndFails) {
  const Pair pair = co_await connected(env, scene);
  const std::vector<std::byte> message = pattern(10, 11);
  const Bytes all = message;
  EXPECT_EQ(outcome(pair.a->finish()), "ok");
  // A stream that never writes without waiting has nothing to refuse.
  const Result<size_t> taken = pair.a->write_now(std::span(&all, 1));
  EXPECT_TRUE(taken ? *taken == 0 : taken.error() == Errc::kClosed) << outcome(taken);
  pair.b->reset();
  const Result<size_t> late = pair.b->write_now(std::span(&all, 1));
  EXPECT_TRUE(late ? *late == 0 : late.error() == Errc::kReset) << outcome(late);
}

// Reads `size` bytes with vectored reads whose pieces have the sizes given.
Task<bool> read_vectored(Stream& stream, size_t size, std::span<const size_t> sizes) {
  std::vector<std::byte> arrived(size);
  size_t have = 0;
  while (have < size) {
    const auto pieces = cut<MutableBytes>(MutableBytes(arrived).subspan(have), sizes);
    const Result<size_t> got = co_await stream.read(std::span(pieces));
    if (!got || *got == 0 || *got > size - have) co_return false;
    have += *got;
  }
  co_return is_pattern(arrived, 6);
}

WORLD_TEST(Streams, VectoredReadFillsPiecesInOrder) {
  const Pair pair = co_await connected(env, scene);
  const std::array<size_t, 6> mixed = {0, 1, 5, 0, 100, 4096};
  const std::array<size_t, 1> tiny = {2};
  for (const size_t size : {size_t{1}, size_t{7}, size_t{107}, size_t{20'000}}) {
    for (const std::span<const size_t> sizes :
         {std::span<const size_t>(mixed), std::span<const size_t>(tiny)}) {
      const std::vector<std::byte> message = pattern(size, 6);
      Task<Result<void>> writing = write_all(*pair.a, message);
      const bool same = co_await read_vectored(*pair.b, size, sizes);
      const Result<void> written = co_await writing;
      EXPECT_TRUE(same) << size << " in " << sizes.size();
      EXPECT_EQ(outcome(written), "ok");
    }
  }
}

Task<void> write_bytes_one_by_one(Stream& stream, Bytes bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const Result<void> written = co_await stream.write(bytes.subspan(i, 1));
    EXPECT_EQ(outcome(written), "ok") << i;
  }
}

WORLD_TEST(Streams, BytesWrittenOneByOneKeepTheirOrder) {
  const Pair pair = co_await connected(env, scene);
  const std::vector<std::byte> message = pattern(2000, 7);
  Task<void> writing = write_bytes_one_by_one(*pair.a, message);
  const bool same = co_await read_in_pieces(*pair.b, message.size(), 64, 7);
  co_await writing;
  EXPECT_TRUE(same);
}

WORLD_TEST(Streams, BothDirectionsRunAtOnce) {
  const Pair pair = co_await connected(env, scene, kSmallBuffers);
  const std::vector<std::byte> there = pattern(1 << 20, 8);
  const std::vector<std::byte> back = pattern((1 << 20) + 77, 9);
  auto [sent, returned, at_b, at_a] =
      co_await task::when_all(write_all(*pair.a, there), write_all(*pair.b, back),
                              read_in_pieces(*pair.b, there.size(), 5000, 8),
                              read_in_pieces(*pair.a, back.size(), 7777, 9));
  EXPECT_EQ(outcome(sent), "ok");
  EXPECT_EQ(outcome(returned), "ok");
  EXPECT_TRUE(at_b);
  EXPECT_TRUE(at_a);
}

WORLD_TEST(Streams, EachEndKnowsTheOthersAddress) {
  const Pair pair = co_await connected(env, scene);
  EXPECT_EQ(pair.a->local(), pair.b->peer());
  EXPECT_EQ(pair.a->peer(), pair.b->local());
  EXPECT_NE(pair.a->local(), pair.a->peer());
}

Task<bool> ping_pong(Stream& a, Stream& b, int rounds, uint64_t seed) {
  std::vector<std::byte> ball(512);
  for (int i = 0; i < rounds; ++i) {
    fill_pattern(ball, seed, static_cast<uint64_t>(i) * ball.size());
    Result<void> done = co_await a.write(ball);
    if (done) done = co_await env::read_exactly(b, ball);
    if (done) done = co_await b.write(ball);
    if (done) done = co_await env::read_exactly(a, ball);
    if (!done || !is_pattern(ball, seed, static_cast<uint64_t>(i) * ball.size())) co_return false;
  }
  co_return true;
}

WORLD_TEST(Streams, ManyShareACore) {
  std::vector<Pair> pairs;
  for (int i = 0; i < 30; ++i) {
    Pair pair = co_await connected(env, scene);
    pairs.push_back(std::move(pair));
  }
  std::vector<Task<bool>> games;
  for (size_t i = 0; i < pairs.size(); ++i) {
    games.push_back(ping_pong(*pairs[i].a, *pairs[i].b, 50, i));
  }
  const std::vector<bool> kept = co_await task::when_all(std::move(games));
  EXPECT_TRUE(std::ranges::all_of(kept, [](bool each) { return each; }));
}

}  // namespace
}  // namespace cairn::conformance
