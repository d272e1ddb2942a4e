// SPDX-License-Identifier: Apache-2.0
// Commands that need more buffers than a core has: they wait for each other's, within bounds, and
// never in a circle.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "nvme/format/copy_format.h"
#include "nvme/format/limits.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/target/suite.h"

namespace cairn::target_tests {
namespace {

using nvme::SglDescriptor;

// One core, so that all connections and the test itself share its buffers.
template <class World>
class Buffers : public Conformance<World> {
  conformance::Setting setting() const override { return {.cores = 1}; }
};
TYPED_TEST_SUITE(Buffers, Worlds, WorldNames);
template <class World>
class BufferDeadlines : public Conformance<World> {
  conformance::Setting setting() const override { return {.cores = 1}; }
};
TYPED_TEST_SUITE(BufferDeadlines, Simulator, WorldNames);

constexpr uint32_t kPairBlocks = 16;  // 64 KiB, the unit of atomic()
constexpr uint32_t kPairs = 63;       // as many as a queue of 127 takes

// Fused pairs, all sent at once, each comparing with zeroes and writing something else.
class PairLoad {
 public:
  PairLoad(RawHost& host, uint64_t first_block) : host_(host) {
    const uint32_t bytes = kPairBlocks * kBlock;
    for (uint32_t i = 0; i < kPairs; ++i) {
      const uint64_t lba = first_block + uint64_t{i} * kPairBlocks;
      Sqe compare = host_.io(IoOpcode::kCompare, lba, kPairBlocks);
      compare.set_fuse(nvme::Fuse::kFirst);
      Sqe write = host_.io(IoOpcode::kWrite, lba, kPairBlocks);
      write.set_fuse(nvme::Fuse::kSecond);
      for (Sqe* sqe : {&compare, &write}) {
        sqe->sgl1 = SglDescriptor::transport(bytes);
        const std::vector<std::byte> one = host_.capsule(*sqe);
        capsules_.insert(capsules_.end(), one.begin(), one.end());
      }
      compares_.insert(compare.cid);
    }
  }
  Task<void> send() { return host_.deliver(capsules_); }
  // Sends what is asked for until all are answered.
  Task<void> serve() {
    const std::vector<std::byte> zeroes(kPairBlocks * kBlock);
    const std::vector<std::byte> news = pattern(kPairBlocks * kBlock, 5);
    while (answers < 2 * kPairs) {
      const std::optional<Received> pdu = co_await host_.receive();
      if (!pdu) co_return;
      if (pdu->type() == nvme::PduType::kCapsuleResp) {
        const auto cqe = pdu->as<nvme::CapsuleResp>().cqe;
        EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
        ++answers;
        continue;
      }
      const auto r2t = pdu->as<nvme::R2t>();
      const Bytes all = compares_.contains(r2t.cid) ? zeroes : news;
      const nvme::DataPiece piece{
          .cid = r2t.cid, .ttag = r2t.ttag, .offset = r2t.offset, .length = r2t.length};
      co_await host_.deliver(host_.h2c_data(piece, all.subspan(r2t.offset, r2t.length)));
    }
  }
  uint32_t answers = 0;

 private:
  RawHost& host_;
  std::vector<std::byte> capsules_;
  std::set<uint16_t> compares_;
};

BoxOptions atomic_box() {
  return {.drives = {"stack:atomic(mem:size=32M)"}, .queue_entries_max = 128};
}

WORLD_TEST(Buffers, FusedPairsDoNotWaitForEachOther) {
  constexpr uint16_t kQueues = 4;
  Box box(env, atomic_box());
  co_await box.open(scene.any_port());
  RawHost admin(env);
  co_await admin.arrive(box.address);
  std::vector<std::unique_ptr<RawHost>> hosts;
  std::vector<PairLoad> loads;
  for (uint16_t i = 0; i < kQueues; ++i) {
    hosts.push_back(std::make_unique<RawHost>(env));
    co_await hosts.back()->join(box.address, admin, static_cast<uint16_t>(i + 1), {}, 127);
    loads.emplace_back(*hosts.back(), uint64_t{i} * kPairs * kPairBlocks);
  }
  std::vector<Task<void>> serving;
  for (PairLoad& load : loads) co_await load.send();
  for (PairLoad& load : loads) serving.push_back(load.serve());
  co_await task::when_all(std::move(serving));
  for (const PairLoad& load : loads) EXPECT_EQ(load.answers, 2 * kPairs);
  RawHost fresh(env);
  co_await fresh.join(box.address, admin, kQueues + 1);
  const std::vector<std::byte> read = co_await fresh.read(1, 0, kPairBlocks);
  EXPECT_EQ(read, pattern(kPairBlocks * kBlock, 5));
  hosts.clear();
  fresh.stream.reset();
  admin.stream.reset();
  co_await box.close();
}

// Takes every buffer of the core that holds so much.
std::vector<Buffer> take_all(env::Env& env, size_t size) {
  std::vector<Buffer> taken;
  while (Result<Buffer> buffer = env.buffers().allocate(size)) taken.push_back(std::move(*buffer));
  return taken;
}

WORLD_TEST(BufferDeadlines, WhoGetsNoneIsToldAndMayTryAgain) {
  BoxOptions options = atomic_box();
  options.target.buffer_timeout = 10_s;
  BoxAndHost pair(env, options);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  std::vector<Buffer> taken = take_all(env, kBlock);
  Sqe read = host.io(IoOpcode::kRead, 0, 1);
  read.sgl1 = SglDescriptor::transport(kBlock);
  Sqe write = host.io(IoOpcode::kWrite, 0, 1);
  write.sgl1 = SglDescriptor::transport(kBlock);
  for (const Sqe& sqe : {read, write}) {
    const Time begin = env.now();
    const nvme::Cqe cqe = co_await host.ask(sqe);
    EXPECT_EQ(cqe.get_status().code(), StatusCode::kCommandInterrupted) << text_of(cqe);
    EXPECT_FALSE(cqe.get_status().do_not_retry());
    EXPECT_GE(env.now() - begin, 10_s);
    EXPECT_LT(env.now() - begin, 11_s);
  }
  taken.clear();
  const std::vector<std::byte> data = co_await host.read(1, 0, 1);
  EXPECT_EQ(data.size(), kBlock);
  co_await pair.close();
}

constexpr uint32_t kCopyBlocks = nvme::kTransferBytesMax / kBlock;

// A copy of as much as one may copy, from the front to the middle.
struct Copy {
  explicit Copy(RawHost& host) : sqe(Sqe::make(IoOpcode::kCopy, 1)), ranges(32) {
    nvme::CopyFields{.destination = Lba(2 * kCopyBlocks)}.encode(sqe);
    sqe.cid = host.next_cid();
    sqe.sgl1 = SglDescriptor::in_capsule(static_cast<uint32_t>(ranges.size()));
    nvme::CopyRange range;
    range.start = 0;
    range.blocks = kCopyBlocks - 1;
    store(ranges, range);
  }
  Sqe sqe;
  std::vector<std::byte> ranges;
};

WORLD_TEST(BufferDeadlines, CopyWaitsUntilThereIsOne) {
  BoxOptions options;
  options.target.buffer_timeout = 10_s;
  BoxAndHost pair(env, options);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  const std::vector<std::byte> data = pattern(size_t{kCopyBlocks} * kBlock, 8);
  const nvme::Cqe written =
      co_await host.write_by_r2t(host.io(IoOpcode::kWrite, 0, kCopyBlocks), data);
  EXPECT_TRUE(written.get_status().ok());
  std::vector<Buffer> taken = take_all(env, nvme::kTransferBytesMax);
  const Copy never(host);
  const nvme::Cqe interrupted = co_await host.ask(never.sqe, never.ranges);
  EXPECT_EQ(interrupted.get_status().code(), StatusCode::kCommandInterrupted);
  const Copy later(host);
  co_await host.deliver(host.capsule(later.sqe, later.ranges));
  const Result<void> slept = co_await task::sleep_for(env, 5_s);
  EXPECT_TRUE(slept.has_value());
  taken.clear();
  const nvme::Cqe copied = co_await host.answer();
  EXPECT_TRUE(copied.get_status().ok()) << text_of(copied);
  const std::vector<std::byte> read = co_await host.read(1, 2 * kCopyBlocks, kCopyBlocks);
  EXPECT_EQ(read, data);
  co_await pair.close();
}

Task<void> copy_many(RawHost& host, uint32_t count) {
  std::vector<std::byte> capsules;
  for (uint32_t i = 0; i < count; ++i) {
    const Copy copy(host);
    const std::vector<std::byte> one = host.capsule(copy.sqe, copy.ranges);
    capsules.insert(capsules.end(), one.begin(), one.end());
  }
  co_await host.deliver(capsules);
  for (uint32_t i = 0; i < count; ++i) {
    const nvme::Cqe cqe = co_await host.answer();
    EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
  }
}

// More at once than there are buffers of that size.
WORLD_TEST(Buffers, CopiesTakeTurns) {
  constexpr uint16_t kQueues = 5;
  Box box(env, {.drives = {"stack:slice(mem:size=4M)"}});
  co_await box.open(scene.any_port());
  RawHost admin(env);
  co_await admin.arrive(box.address);
  std::vector<std::unique_ptr<RawHost>> hosts;
  std::vector<Task<void>> copying;
  for (uint16_t i = 0; i < kQueues; ++i) {
    hosts.push_back(std::make_unique<RawHost>(env));
    co_await hosts.back()->join(box.address, admin, static_cast<uint16_t>(i + 1));
  }
  for (const auto& host : hosts) copying.push_back(copy_many(*host, 31));
  co_await task::when_all(std::move(copying));
  hosts.clear();
  admin.stream.reset();
  co_await box.close();
}

}  // namespace
}  // namespace cairn::target_tests
