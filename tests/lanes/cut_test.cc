// SPDX-License-Identifier: Apache-2.0
// One exchange with everything in it, cut at each of its bytes in turn, in both directions and with
// digests: whatever arrives apart, nothing is lost, doubled, mistaken or stuck.
#include <array>

#include "lanes/lane_test.h"
#include "task/when_all.h"

namespace cairn::lane_tests {
namespace {

using Kind = Request::Kind;
using Mode = fabric::DoorbellOptions::Mode;

constexpr uint64_t kSmall = 2;   // blocks that go in a capsule
constexpr uint64_t kLarge = 17;  // and more than a capsule takes: 8704 bytes
constexpr Lba kSmallAt(0);
constexpr Lba kLargeAt(8);
constexpr Lba kPairAt(40);
constexpr Lba kEmptyAt(50);

// Sanitizers make each exchange many times slower; they look at some of the bytes.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr uint64_t kStep = 31;
#else
constexpr uint64_t kStep = 1;
#endif

class Cut : public LaneTest {
 public:
  Cut() {
    options.header_digest = options.data_digest = true;
    options.keep_alive = 0_s;  // nothing happens by itself
    options.depth = 16;
    box_options.drive = "mem:size=64K,block=512";
    box_options.queue_entries = 16;
    world.network.jitter_max = 0_s;
    world.buggify.site = 0;
    world.trace_capacity = 16;
  }

 protected:
  // True: the exchange was long enough to be cut there.
  bool exchange_cut_at(const sim::WireCut& cut) {
    world.network.cut = cut;
    sessions = 0;
    on_host<Cut>(*this, &Cut::body, 10_s);
    EXPECT_EQ(sessions, 1u);
    return was_cut;
  }
  void cut_at_every_byte(uint64_t connection, bool to_server, Mode host, Mode box) {
    options.doorbell.mode = host;
    box_options.target.doorbell.mode = box;
    uint64_t position = 1;
    while (
        !HasFailure() &&
        exchange_cut_at({.connection = connection, .to_server = to_server, .position = position})) {
      position += kStep;
    }
    EXPECT_FALSE(HasFailure()) << "cut at byte " << position;
    EXPECT_GT(position, 2000u) << "the exchange was never so short";
  }

 public:
  uint64_t sessions = 0;
  bool was_cut = false;

 private:
  static Task<void> expect(RemoteDrive& drive, Request request, MutableBytes data,
                           MutableBytes second, Errc* error) {
    const std::array<MutableBytes, 1> pieces = {data};
    const std::array<MutableBytes, 1> seconds = {second};
    const bool has_data = !data.empty();
    const Result<void> done = co_await drive.submit(request, std::span(pieces).first(has_data),
                                                    std::span(seconds).first(!second.empty()));
    if (error != nullptr) {
      EXPECT_FALSE(done.has_value());
      if (!done) *error = done.error().code();
    } else {
      EXPECT_OK(done);
    }
  }

  static Task<void> body(env::Env& env, Cut& test) {
    HostPool pool(env);
    const std::unique_ptr<RemoteDrive> drive = co_await open_drive(pool, test.uri());
    std::vector<std::byte> small = random_bytes(kSmall * kBlock, 1);
    std::vector<std::byte> large = random_bytes(kLarge * kBlock, 2);
    std::vector<std::byte> zeroes(kBlock);
    std::vector<std::byte> pair = random_bytes(kBlock, 3);
    std::vector<std::byte> empty = random_bytes(kBlock, 4);
    Errc mismatch{};
    {
      std::vector<Task<void>> all;
      const auto ask = [&](const Request& request, MutableBytes data, MutableBytes second = {},
                           Errc* error = nullptr) {
        all.push_back(expect(*drive, request, data, second, error));
      };
      ask({.kind = Kind::kRead, .lba = kEmptyAt, .blocks = 1}, empty);
      ask({.kind = Kind::kWrite, .lba = kSmallAt, .blocks = kSmall}, small);
      ask({.kind = Kind::kWrite, .lba = kLargeAt, .blocks = kLarge}, large);
      ask({.kind = Kind::kCompare, .lba = kEmptyAt, .blocks = 1}, pair, {}, &mismatch);
      ask({.kind = Kind::kCompareAndWrite, .lba = kPairAt, .blocks = 1}, zeroes, pair);
      ask({.kind = Kind::kFlush}, {});
      co_await task::when_all(std::move(all));
    }
    EXPECT_EQ(mismatch, Errc::kMismatch);
    EXPECT_EQ(empty, zeroes);
    std::vector<std::byte> small_back(small.size());
    std::vector<std::byte> large_back(large.size());
    std::vector<std::byte> pair_back(pair.size());
    {
      std::vector<Task<void>> all;
      const auto read = [&](Lba lba, MutableBytes into) {
        const Request request{.kind = Kind::kRead, .lba = lba, .blocks = into.size() / kBlock};
        all.push_back(expect(*drive, request, into, {}, nullptr));
      };
      read(kSmallAt, small_back);
      read(kLargeAt, large_back);
      read(kPairAt, pair_back);
      co_await task::when_all(std::move(all));
    }
    EXPECT_EQ(small_back, small);
    EXPECT_EQ(large_back, large);
    EXPECT_EQ(pair_back, pair);
    test.sessions = drive->paths()[0]->controller().sessions();
    co_await drive->close();
    test.was_cut = test.cluster().was_cut();
  }
};

TEST_F(Cut, CommandsAndTheirDataArriveInTwoPieces) {
  cut_at_every_byte(1, true, Mode::kAdaptive, Mode::kAdaptive);
}

TEST_F(Cut, AnswersAndTheirDataArriveInTwoPieces) {
  cut_at_every_byte(1, false, Mode::kFixed, Mode::kFixed);
}

TEST_F(Cut, TheAdminQueueToo) {
  cut_at_every_byte(0, true, Mode::kAdaptive, Mode::kAdaptive);
  cut_at_every_byte(0, false, Mode::kAdaptive, Mode::kAdaptive);
}

// Buffers of so many bytes: every send is short and every receive partial, all along.
TEST_F(Cut, EverythingArrivesInPiecesOf) {
  for (const Mode mode : {Mode::kOff, Mode::kFixed, Mode::kAdaptive}) {
    for (const uint32_t size : {1u, 2u, 3u, 5u, 7u, 24u, 71u, 72u, 73u, 76u, 77u, 511u, 1000u}) {
      options.doorbell.mode = box_options.target.doorbell.mode = mode;
      world.network.send_buffer_size = world.network.receive_buffer_size = size;
      exchange_cut_at({.connection = 99});
      EXPECT_FALSE(HasFailure()) << "pieces of " << size;
    }
  }
}

}  // namespace
}  // namespace cairn::lane_tests
