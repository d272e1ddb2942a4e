// SPDX-License-Identifier: Apache-2.0
// Local streams that carry descriptors beside bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "conformance/sharing_verbs.h"
#include "env/env.h"
#include "env/sharing.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/task.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Descriptor;
using env::Env;
using env::LocalStream;
using env::Received;
using task::CancelSource;
using task::Task;

WORLD_TEST_SUITE(LocalStreams);

// What a reader has got so far.
struct Inbox {
  std::vector<std::byte> bytes;
  struct Arrival {
    size_t at;  // how many bytes came before
    uint64_t number;
    bool operator==(const Arrival&) const = default;
  };
  std::vector<Arrival> descriptors;
};

// Reads, by no more than a piece at a time, until so many bytes are there.
Task<void> read_until(Env& env, LocalStream& stream, size_t size, size_t piece, Inbox& inbox) {
  std::vector<std::byte> room(piece);
  std::array<Descriptor, LocalStream::kDescriptorsMax> came;
  while (inbox.bytes.size() < size) {
    const size_t wanted = std::min(piece, size - inbox.bytes.size());
    const Result<Received> read = co_await stream.read(MutableBytes(room).first(wanted), came);
    const Received got = must(read);
    EXPECT_GT(got.bytes, 0u);
    if (got.bytes == 0) co_return;
    for (size_t i = 0; i < got.descriptors; ++i) {
      inbox.descriptors.push_back({inbox.bytes.size(), number_of(env, came[i])});
      came[i] = Descriptor();
    }
    inbox.bytes.insert(inbox.bytes.end(), room.begin(),
                       room.begin() + static_cast<ptrdiff_t>(got.bytes));
  }
}

WORLD_TEST(LocalStreams, CarryBytesBothWays) {
  LocalPair pair = co_await connected_locally(env, scene);
  const auto there = pattern(300'000, 1);
  const auto back = pattern(200'000, 2);
  Inbox at_b;
  Inbox at_a;
  Task<void> reading_b = read_until(env, *pair.b, there.size(), 65536, at_b);
  Task<void> reading_a = read_until(env, *pair.a, back.size(), 1000, at_a);
  Task<Result<void>> writing = write_local(*pair.a, there);
  const Result<void> written_back = co_await pair.b->write(back);
  const Result<void> written = co_await writing;
  co_await reading_a;
  co_await reading_b;
  EXPECT_EQ(outcome(written), "ok");
  EXPECT_EQ(outcome(written_back), "ok");
  EXPECT_EQ(at_b.bytes, there);
  EXPECT_EQ(at_a.bytes, back);
}

// As protocols are read: nobody asks for more than is left of a message.
WORLD_TEST(LocalStreams, BringDescriptorsWithTheFirstByteOfAMessage) {
  const Descriptor one = numbered_memory(env, 1);
  const Descriptor two = numbered_memory(env, 2);
  const Descriptor three = numbered_memory(env, 3);
  const Descriptor* const first[] = {&one, &two};
  const Descriptor* const second[] = {&three};
  const auto bytes = pattern(1000, 1);
  const Bytes all(bytes);
  for (const size_t piece : {1, 2, 7, 64, 1000}) {
    LocalPair pair = co_await connected_locally(env, scene);
    const Result<void> plain = co_await pair.a->write(all.first(100));
    const Result<void> more = co_await pair.a->write(all.subspan(100, 50));
    const Result<void> two_come = co_await pair.a->write(all.subspan(150, 250), first);
    const Result<void> one_comes = co_await pair.a->write(all.subspan(400, 1), second);
    const Result<void> rest = co_await pair.a->write(all.subspan(401));
    for (const Result<void>& written : {plain, more, two_come, one_comes, rest}) must(written);
    Inbox inbox;
    for (const size_t end : {100, 150, 400, 401, 1000}) {
      co_await read_until(env, *pair.b, end, piece, inbox);
    }
    EXPECT_EQ(inbox.bytes, bytes);
    const std::vector<Inbox::Arrival> expected = {{150, 1}, {150, 2}, {400, 3}};
    EXPECT_EQ(inbox.descriptors, expected) << piece;
  }
}

WORLD_TEST(LocalStreams, QueueManyMessagesWithDescriptors) {
  LocalPair pair = co_await connected_locally(env, scene);
  constexpr size_t kMessages = 60;
  std::vector<Descriptor> memories;
  for (uint64_t i = 0; i < 4; ++i) memories.push_back(numbered_memory(env, i));
  std::vector<std::byte> sent;
  std::vector<Inbox::Arrival> expected;
  std::vector<size_t> ends;
  for (size_t i = 0; i < kMessages; ++i) {
    std::vector<const Descriptor*> with;
    for (size_t j = 0; j < i % 4; ++j) {
      with.push_back(&memories[(i + j) % 4]);
      expected.push_back({sent.size(), (i + j) % 4});
    }
    ends.push_back(sent.size());
    const auto message = pattern(1 + env.rng().below(200), i);
    sent.insert(sent.end(), message.begin(), message.end());
    const Result<void> written = co_await pair.a->write(message, with);
    EXPECT_EQ(outcome(written), "ok");
  }
  memories.clear();
  ends.push_back(sent.size());
  Inbox inbox;
  for (const size_t end : ends) co_await read_until(env, *pair.b, end, 512, inbox);
  EXPECT_EQ(inbox.bytes, sent);
  EXPECT_EQ(inbox.descriptors, expected);
}

// Who asks for more gets them in order all the same, and no later than their bytes.
WORLD_TEST(LocalStreams, BringDescriptorsOfOneWriteInOneRead) {
  const Descriptor one = numbered_memory(env, 1);
  const Descriptor two = numbered_memory(env, 2);
  const Descriptor* const first[] = {&one, &one};
  const Descriptor* const second[] = {&two};
  for (const size_t piece : {1, 7, 64}) {
    LocalPair pair = co_await connected_locally(env, scene);
    for (int i = 0; i < 10; ++i) {
      const Result<void> plain = co_await pair.a->write(as_bytes("abcde"));
      const Result<void> with_two = co_await pair.a->write(as_bytes("fghij"), first);
      const Result<void> with_one = co_await pair.a->write(as_bytes("klmno"), second);
      for (const Result<void>& written : {plain, with_two, with_one}) must(written);
    }
    Inbox inbox;
    co_await read_until(env, *pair.b, 150, piece, inbox);
    EXPECT_EQ(inbox.descriptors.size(), 30u);
    for (size_t i = 0; i < inbox.descriptors.size(); i += 3) {
      const auto* came = &inbox.descriptors[i];
      const size_t begin = i / 3 * 15;
      EXPECT_EQ(came[0].number, 1u);
      EXPECT_EQ(came[1].number, 1u);
      EXPECT_EQ(came[2].number, 2u);
      EXPECT_EQ(came[0].at, came[1].at);
      EXPECT_LE(came[0].at, begin + 5);
      EXPECT_GT(came[0].at + piece, begin + 5);
      EXPECT_LE(came[2].at, begin + 10);
      EXPECT_GT(came[2].at + piece, begin + 10);
      EXPECT_GT(came[2].at, came[1].at);
    }
  }
}

// The two ends of a new stream, one of them sent over another.
WORLD_TEST(LocalStreams, AreSentAsDescriptors) {
  Result<std::pair<Descriptor, Descriptor>> ends = shared(env).make_local_pair();
  if (scene.is_simulated()) {
    EXPECT_EQ(outcome(ends), "unsupported");
    co_return;
  }
  LocalPair pair = co_await connected_locally(env, scene);
  const Descriptor* const with[] = {&ends->second};
  const Result<void> sent = co_await pair.a->write(as_bytes("x"), with);
  must(sent);
  std::array<std::byte, 8> into{};
  std::array<Descriptor, 1> came;
  const Result<Received> got = co_await pair.b->read(into, came);
  EXPECT_EQ(must(got).descriptors, 1u);
  const auto here = must(shared(env).open_local(std::move(ends->first)));
  const auto there = must(shared(env).open_local(std::move(came[0])));
  const Result<void> written = co_await there->write(as_bytes("hello"));
  must(written);
  const Result<Received> hello = co_await here->read(into, {});
  EXPECT_EQ(must(hello).bytes, 5u);
  EXPECT_EQ(outcome(shared(env).open_local(must(shared(env).make_signal()))), "invalid");
}

WORLD_TEST(LocalStreams, CarryAsManyDescriptorsAsTheySay) {
  LocalPair pair = co_await connected_locally(env, scene);
  const Descriptor memory = numbered_memory(env, 7);
  const std::vector<const Descriptor*> max(LocalStream::kDescriptorsMax, &memory);
  const std::vector<const Descriptor*> more(LocalStream::kDescriptorsMax + 1, &memory);
  const Descriptor nothing;
  const Descriptor* const invalid[] = {&memory, &nothing};
  const Result<void> too_many = co_await pair.a->write(as_bytes("x"), more);
  const Result<void> none = co_await pair.a->write(as_bytes("x"), invalid);
  EXPECT_EQ(outcome(too_many), "invalid");
  EXPECT_EQ(outcome(none), "invalid");
  const Result<void> no_bytes = co_await pair.a->write({}, max);
  EXPECT_EQ(outcome(no_bytes), "ok");
  const Result<void> written = co_await pair.a->write(as_bytes("y"), max);
  EXPECT_EQ(outcome(written), "ok");
  Inbox inbox;
  co_await read_until(env, *pair.b, 1, 10, inbox);
  EXPECT_EQ(inbox.bytes[0], std::byte{'y'}) << "nothing of the others was sent";
  EXPECT_EQ(inbox.descriptors.size(), max.size());
}

WORLD_TEST(LocalStreams, CloseDescriptorsThatWereNotExpected) {
  LocalPair pair = co_await connected_locally(env, scene);
  const Descriptor memory = numbered_memory(env, 7);
  const std::vector<const Descriptor*> three(3, &memory);
  for (const size_t room : {0, 2}) {
    const Result<void> written = co_await pair.a->write(as_bytes("a"), three);
    must(written);
    std::array<std::byte, 10> into{};
    std::array<Descriptor, 2> came;
    const Result<Received> got = co_await pair.b->read(into, std::span(came).first(room));
    EXPECT_EQ(outcome(got), "limit");
    EXPECT_FALSE(came[0].is_valid());
  }
  // The stream goes on.
  const Result<void> written = co_await pair.a->write(as_bytes("b"), three);
  must(written);
  Inbox inbox;
  co_await read_until(env, *pair.b, 1, 10, inbox);
  EXPECT_EQ(inbox.bytes[0], std::byte{'b'});
  EXPECT_EQ(inbox.descriptors.size(), 3u);
}

WORLD_TEST(LocalStreams, CancelledReadsLoseNothing) {
  LocalPair pair = co_await connected_locally(env, scene);
  const Descriptor memory = numbered_memory(env, 5);
  const Descriptor* const with[] = {&memory};
  uint64_t bytes = 0;
  uint64_t descriptors = 0;
  constexpr uint64_t kRounds = 50;
  std::array<std::byte, 64> into{};
  std::array<Descriptor, 4> came;
  for (uint64_t round = 0; round < kRounds; ++round) {
    CancelSource stop;
    Task<Result<Received>> reading = read_local(*pair.b, into, came, stop.token());
    co_await hesitate(env);
    const Result<void> written = co_await pair.a->write(as_bytes("z"), with);
    must(written);
    co_await hesitate(env);
    stop.request();
    const Result<Received> got = co_await reading;
    if (!got) {
      EXPECT_EQ(outcome(got), "cancelled");
      continue;
    }
    bytes += got->bytes;
    descriptors += got->descriptors;
  }
  while (bytes < kRounds) {
    const Result<Received> got = co_await pair.b->read(into, came);
    bytes += must(got).bytes;
    descriptors += must(got).descriptors;
  }
  EXPECT_EQ(bytes, kRounds);
  EXPECT_EQ(descriptors, kRounds);
}

WORLD_TEST(LocalStreams, WritersWaitForReaders) {
  LocalPair pair = co_await connected_locally(env, scene, kSmallBuffers);
  const auto bytes = pattern(kInFlightMax, 1);
  CancelSource stop;
  Task<Result<void>> writing = write_local(*pair.a, bytes, stop.token());
  co_await turn(env);
  EXPECT_FALSE(writing.is_done());
  Inbox inbox;
  co_await read_until(env, *pair.b, kInFlightMax / 2, 65536, inbox);
  stop.request();
  const Result<void> written = co_await writing;
  EXPECT_EQ(outcome(written), "cancelled");
  const Result<void> later = co_await pair.a->write(as_bytes("x"));
  EXPECT_FALSE(later.has_value()) << "a part of the last one was sent";
  EXPECT_TRUE(is_pattern(inbox.bytes, 1));
}

WORLD_TEST(LocalStreams, EndWithTheirPeer) {
  LocalPair pair = co_await connected_locally(env, scene);
  const Descriptor memory = numbered_memory(env, 5);
  const Descriptor* const with[] = {&memory};
  const Result<void> written = co_await pair.a->write(as_bytes("last"), with);
  must(written);
  pair.a.reset();
  Inbox inbox;
  co_await read_until(env, *pair.b, 4, 64, inbox);
  EXPECT_EQ(inbox.descriptors.size(), 1u);
  std::array<std::byte, 8> into{};
  for (int i = 0; i < 2; ++i) {
    const Result<Received> end = co_await pair.b->read(into, {});
    EXPECT_EQ(must(end).bytes, 0u);
  }
}

WORLD_TEST(LocalStreams, EndWhileTheyAreRead) {
  LocalPair pair = co_await connected_locally(env, scene);
  std::array<std::byte, 8> into{};
  Task<Result<Received>> reading = read_local(*pair.b, into, {});
  co_await turn(env);
  pair.a.reset();
  const Result<Received> end = co_await reading;
  EXPECT_EQ(must(end).bytes, 0u);
}

WORLD_TEST(LocalStreams, TellThatThePeerHasLeftBeforeAllIsRead) {
  LocalPair pair = co_await connected_locally(env, scene);
  const Descriptor memory = numbered_memory(env, 5);
  const Descriptor* const with[] = {&memory};
  Task<Result<void>> leaving = hung_up(*pair.b);
  const Result<void> written = co_await pair.a->write(as_bytes("last"), with);
  must(written);
  Inbox inbox;
  co_await read_until(env, *pair.b, 1, 1, inbox);
  co_await turn(env);
  EXPECT_FALSE(leaving.is_done()) << "bytes are no leaving";
  pair.a.reset();
  const Result<void> left = co_await leaving;
  EXPECT_EQ(outcome(left), "ok");
  const Result<void> again = co_await pair.b->hang_up();
  EXPECT_EQ(outcome(again), "ok");
  co_await read_until(env, *pair.b, 4, 64, inbox);
  std::array<std::byte, 8> into{};
  const Result<Received> end = co_await pair.b->read(into, {});
  EXPECT_EQ(must(end).bytes, 0u);
}

WORLD_TEST(LocalStreams, AWaitForThePeersLeavingIsNoneOfItsReads) {
  LocalPair pair = co_await connected_locally(env, scene);
  CancelSource stop;
  Task<Result<void>> leaving = hung_up(*pair.b, stop.token());
  std::array<std::byte, 8> into{};
  Task<Result<Received>> reading = read_local(*pair.b, into, {});
  co_await turn(env);
  stop.request();
  const Result<void> cancelled = co_await leaving;
  EXPECT_EQ(outcome(cancelled), "cancelled");
  EXPECT_FALSE(reading.is_done());
  Task<Result<void>> once_more = hung_up(*pair.b);
  co_await turn(env);
  pair.b->reset();
  const Result<void> reset = co_await once_more;
  const Result<Received> read = co_await reading;
  const Result<void> later = co_await pair.b->hang_up();
  EXPECT_EQ(outcome(reset), "reset");
  EXPECT_EQ(outcome(read), "reset");
  EXPECT_EQ(outcome(later), "reset");
}

WORLD_TEST(LocalStreams, ResetsEndAllOperations) {
  LocalPair pair = co_await connected_locally(env, scene, kSmallBuffers);
  const auto bytes = pattern(kInFlightMax, 1);
  std::array<std::byte, 8> into{};
  Task<Result<Received>> reading = read_local(*pair.a, into, {});
  Task<Result<void>> writing = write_local(*pair.a, bytes);
  co_await turn(env);
  pair.a->reset();
  const Result<Received> read = co_await reading;
  const Result<void> written = co_await writing;
  const Result<Received> later = co_await pair.a->read(into, {});
  const Result<void> later_write = co_await pair.a->write(as_bytes("x"));
  EXPECT_EQ(outcome(read), "reset");
  EXPECT_EQ(outcome(written), "reset");
  EXPECT_EQ(outcome(later), "reset");
  EXPECT_EQ(outcome(later_write), "reset");
}

WORLD_TEST(LocalStreams, AreNotMadeOfOtherConnections) {
  const std::unique_ptr<env::Listener> listener = must(env.listen(scene.any_port()));
  Task<Result<env::Connection>> accepting = accept_one(*listener);
  Result<env::Connection> connection = co_await env.connect(listener->local());
  Result<env::Connection> accepted = co_await accepting;
  EXPECT_EQ(outcome(shared(env).open_local(must(std::move(connection)))), "invalid");
}

}  // namespace
}  // namespace cairn::conformance
