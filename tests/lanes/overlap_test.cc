// SPDX-License-Identifier: Apache-2.0
// Reads of the same blocks, of different length and start, answered in one send from where the
// blocks lie: wherever the send is cut, each read gets its own bytes.
#include <algorithm>
#include <array>
#include <optional>

#include "lanes/lane_test.h"
#include "nvme/format/pdu_build.h"
#include "testing/target/raw_host.h"
#include "testing/worlds/verbs.h"

namespace cairn::lane_tests {
namespace {

using nvme::IoOpcode;
using nvme::PduType;
using nvme::SglDescriptor;
using target_tests::RawHost;
using target_tests::Received;

// Sanitizers make each exchange many times slower; they look at some of the bytes.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr uint64_t kStep = 31;
#else
constexpr uint64_t kStep = 1;
#endif

constexpr uint32_t kWritten = 8;  // blocks that have been written, in one capsule

struct Range {
  uint64_t lba;
  uint32_t blocks;
};

// The blocks as they were written.
std::vector<std::byte> contents() { return random_bytes(kWritten * kBlock, 7); }

class Overlap : public LaneTest {
 public:
  Overlap() {
    box_options.queue_entries = 32;
    world.network.jitter_max = 0_s;
    world.buggify.site = 0;
    world.trace_capacity = 16;
  }

  std::vector<Range> reads;
  bool data_digest = false;
  uint32_t rounds = 1;
  uint64_t position_of_answers = 0;  // in what the box sends on the queue's connection
  uint64_t wrong = 0;                // answers
  bool was_cut = false;

 protected:
  void exchange() { on_host<Overlap>(*this, &Overlap::body, 100_s); }
  // Each byte of the answers in turn is the first that the box cannot send at once.
  void cut_at_every_byte() {
    world.network.cut.reset();
    exchange();
    uint64_t position = position_of_answers;
    do {
      position += kStep;
      world.network.cut = {.connection = 1, .to_server = false, .position = position};
      exchange();
    } while (!HasFailure() && was_cut);
    EXPECT_FALSE(HasFailure()) << "cut at byte " << position - position_of_answers;
    EXPECT_GT(position - position_of_answers, reads.size() * kBlock);
  }

 private:
  static Task<void> connect(env::Env&, Overlap& test, RawHost& admin, RawHost& queue) {
    const env::Address box = test.cluster().node(test.box_name(0)).address(kPort);
    co_await admin.arrive(box, {}, {.nqn = kNqn});
    co_await queue.dial(box);
    co_await queue.greet({.data_digest = test.data_digest});
    const nvme::Cqe cqe =
        co_await queue.connect({.id = 1, .controller = admin.controller_id, .nqn = kNqn});
    EXPECT_TRUE(cqe.get_status().ok());
  }
  // True: the stream still makes sense.
  static Task<bool> take_answers(Overlap& test, RawHost& queue, uint16_t first_cid) {
    const std::vector<std::byte> all = contents();
    std::vector<bool> answered(test.reads.size());
    for (size_t i = 0; i < test.reads.size(); ++i) {
      const std::optional<Received> pdu = co_await queue.receive();
      EXPECT_EQ(name_of(pdu), "C2HData");
      if (!pdu || pdu->type() != PduType::kC2hData) co_return false;
      const auto header = pdu->as<nvme::DataPdu>();
      const auto index = static_cast<uint16_t>(header.cid - first_cid);
      EXPECT_TRUE(index < answered.size() && !answered[index]) << "an answer to nobody";
      if (index >= answered.size()) co_return false;
      answered[index] = true;
      const Range& range = test.reads[index];
      EXPECT_EQ(header.length, range.blocks * kBlock);
      if (header.length != range.blocks * kBlock) co_return false;
      const Bytes right = Bytes(all).subspan(range.lba * kBlock, header.length);
      if (!std::ranges::equal(pdu->data(), right)) ++test.wrong;
    }
    co_return true;
  }
  static Task<void> body(env::Env& env, Overlap& test) {
    RawHost admin(env);
    RawHost queue(env);
    co_await connect(env, test, admin, queue);
    nvme::Sqe write = queue.io(IoOpcode::kWrite, 0, kWritten);
    write.sgl1 = SglDescriptor::in_capsule(kWritten * kBlock);
    const nvme::Cqe written = co_await queue.ask(write, contents());
    EXPECT_TRUE(written.get_status().ok());
    test.position_of_answers = sizeof(nvme::IcResp) + 2 * sizeof(nvme::CapsuleResp);
    test.wrong = 0;
    bool goes_on = true;
    for (uint32_t round = 0; round < test.rounds && goes_on; ++round) {
      std::vector<std::byte> capsules;
      uint16_t first_cid = 0;
      for (const Range& range : test.reads) {
        nvme::Sqe read = queue.io(IoOpcode::kRead, range.lba, range.blocks);
        read.sgl1 = SglDescriptor::transport(range.blocks * kBlock);
        if (first_cid == 0) first_cid = read.cid;
        const std::vector<std::byte> one = queue.capsule(read);
        capsules.insert(capsules.end(), one.begin(), one.end());
      }
      co_await queue.deliver(capsules);
      goes_on = co_await take_answers(test, queue, first_cid);
    }
    EXPECT_EQ(test.wrong, 0u);
    test.was_cut = test.cluster().was_cut();
  }
};

// All that lend: memory, a stack's joint over it, and the home core's part of one that several
// cores share.
struct Lender {
  const char* drive;
  uint32_t cores;
};
constexpr std::array<Lender, 3> kLenders = {{{"mem:size=64K,block=512", 1},
                                             {"stack:mem:size=64K,block=512", 1},
                                             {"stack:mem:size=64K,block=512", 2}}};

TEST_F(Overlap, ReadsKeepTheirOwnBytesWhereverASendIsCut) {
  reads = {{2, 2}, {0, 1}, {1, 3}, {1, 1}, {0, 3}, {0, 3}, {2, 1}, {0, 2}};
  for (const Lender& lender : kLenders) {
    box_options.drive = lender.drive;
    box_cores = lender.cores;
    for (const bool digest : {false, true}) {
      data_digest = digest;
      cut_at_every_byte();
    }
  }
}

}  // namespace
}  // namespace cairn::lane_tests
