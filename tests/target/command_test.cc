// SPDX-License-Identifier: Apache-2.0
// Commands that are wrong in themselves: each gets its status, and the connection goes on.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "testing/target/suite.h"

namespace cairn::target_tests {
namespace {

WORLD_TEST_SUITE(Commands);

using nvme::SglDescriptor;

struct Wrong {
  const char* name;
  Sqe sqe;
  StatusCode code;
  bool in_capsule = false;  // 4 KiB come with it
};

WORLD_TEST(Commands, WrongOnesGetTheirStatus) {
  BoxAndHost pair(env);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  const auto io = [&](IoOpcode opcode, uint64_t lba, uint32_t blocks, SglDescriptor sgl,
                      uint32_t nsid = 1) {
    Sqe sqe = host.io(opcode, lba, blocks, nsid);
    sqe.sgl1 = sgl;
    return sqe;
  };
  const auto kPage = SglDescriptor::transport(kBlock);
  Sqe prp = io(IoOpcode::kRead, 0, 1, kPage);
  prp.set_psdt(nvme::Psdt::kPrp);
  Sqe keyed = io(IoOpcode::kRead, 0, 1, kPage);
  keyed.sgl1.id = nvme::SglId::kKeyedDataBlock;
  Sqe fuse = io(IoOpcode::kRead, 0, 1, kPage);
  fuse.set_fuse(nvme::Fuse::kReserved);
  Sqe second = io(IoOpcode::kWrite, 0, 1, SglDescriptor::in_capsule(kBlock));
  second.set_fuse(nvme::Fuse::kSecond);
  Sqe protection = io(IoOpcode::kRead, 0, 1, kPage);
  nvme::BlockFields{.protection = 8}.encode(protection);
  const std::vector<Wrong> wrongs = {
      {"LBA behind the end", io(IoOpcode::kRead, kBlocks, 1, kPage), StatusCode::kLbaOutOfRange},
      {"range across the end", io(IoOpcode::kRead, kBlocks - 1, 2, SglDescriptor::transport(8192)),
       StatusCode::kLbaOutOfRange},
      {"LBA that overflows", io(IoOpcode::kRead, UINT64_MAX, 2, SglDescriptor::transport(8192)),
       StatusCode::kLbaOutOfRange},
      {"more than MDTS", io(IoOpcode::kRead, 0, 257, SglDescriptor::transport(257 * kBlock)),
       StatusCode::kInvalidField},
      {"a shorter buffer", io(IoOpcode::kRead, 0, 2, kPage), StatusCode::kDataSglLengthInvalid},
      {"a longer buffer", io(IoOpcode::kRead, 0, 1, SglDescriptor::transport(8192)),
       StatusCode::kDataSglLengthInvalid},
      {"no buffer", io(IoOpcode::kRead, 0, 1, SglDescriptor::transport(0)),
       StatusCode::kDataSglLengthInvalid},
      {"a buffer of odd size", io(IoOpcode::kWrite, 0, 1, SglDescriptor::transport(kBlock + 2)),
       StatusCode::kDataSglLengthInvalid},
      {"a buffer of four gigabytes", io(IoOpcode::kWrite, 0, 1, SglDescriptor::transport(~3u)),
       StatusCode::kDataSglLengthInvalid},
      {"less data than blocks", io(IoOpcode::kWrite, 0, 2, SglDescriptor::in_capsule(kBlock)),
       StatusCode::kDataSglLengthInvalid, true},
      {"data at another offset", io(IoOpcode::kWrite, 0, 1, SglDescriptor::in_capsule(kBlock, 1)),
       StatusCode::kDataSglLengthInvalid, true},
      {"an offset behind the data",
       io(IoOpcode::kWrite, 0, 1, SglDescriptor::in_capsule(0, kBlock + 1)),
       StatusCode::kSglOffsetInvalid, true},
      {"data here and there", io(IoOpcode::kWrite, 0, 1, kPage), StatusCode::kDataSglLengthInvalid,
       true},
      {"PRPs", prp, StatusCode::kInvalidField},
      {"a keyed descriptor", keyed, StatusCode::kSglDescriptorTypeInvalid},
      {"reserved FUSE", fuse, StatusCode::kInvalidField},
      {"a second without a first", second, StatusCode::kAbortedMissingFused, true},
      {"protection of nothing", protection, StatusCode::kInvalidProtectionInformation},
      {"no such namespace", io(IoOpcode::kRead, 0, 1, kPage, 3),
       StatusCode::kInvalidNamespaceOrFormat},
      {"namespace 0", io(IoOpcode::kRead, 0, 1, kPage, 0), StatusCode::kInvalidNamespaceOrFormat},
      {"all namespaces", io(IoOpcode::kRead, 0, 1, kPage, nvme::kBroadcastNsid),
       StatusCode::kInvalidNamespaceOrFormat},
  };
  const std::vector<std::byte> page = pattern(kBlock, 1);
  for (const Wrong& each : wrongs) {
    const nvme::Cqe cqe = co_await host.ask(each.sqe, each.in_capsule ? Bytes(page) : Bytes());
    EXPECT_EQ(cqe.get_status().code(), each.code) << each.name << ": " << text_of(cqe);
    EXPECT_TRUE(cqe.get_status().do_not_retry()) << each.name;
  }
  const std::vector<std::byte> untouched = co_await host.read(1, 0, 1);
  EXPECT_TRUE(conformance::is_zero(untouched));
  co_await pair.close();
}

WORLD_TEST(Commands, UnknownOpcodesAreRefusedOnBothQueues) {
  BoxAndHost pair(env);
  co_await pair.open(scene);
  const std::set<uint8_t> known = {0x00, 0x01, 0x02, 0x05, 0x08, 0x09, 0x0d,
                                   0x0e, 0x11, 0x15, 0x19, 0x7f, 0x81};
  const std::set<uint8_t> known_admin = {0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18, 0x7f};
  for (int opcode = 0; opcode < 256; ++opcode) {
    for (RawHost* host : {&pair.queue, &pair.admin}) {
      const std::set<uint8_t>& ours = host == &pair.queue ? known : known_admin;
      if (ours.contains(static_cast<uint8_t>(opcode))) continue;
      Sqe sqe = Sqe::make(nvme::AdminOpcode::kKeepAlive, 1);
      sqe.opcode = static_cast<uint8_t>(opcode);
      sqe.cid = host->next_cid();
      const nvme::Cqe cqe = co_await host->ask(sqe);
      EXPECT_EQ(cqe.get_status().code(), StatusCode::kInvalidOpcode) << "opcode " << opcode;
    }
  }
  co_await pair.close();
}

// The first with an id goes on; the second is refused.
WORLD_TEST(Commands, AnIdInUseIsAConflict) {
  BoxAndHost pair(env);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  const std::vector<std::byte> data = pattern(kBlock, 5);
  Sqe write = host.io(IoOpcode::kWrite, 7, 1);
  write.sgl1 = SglDescriptor::transport(kBlock);
  co_await host.deliver(host.capsule(write));
  const std::optional<Received> r2t = co_await host.receive();
  EXPECT_EQ(name_of(r2t), "R2T");
  Sqe flush = host.io(IoOpcode::kFlush, 0, 1);
  flush.cid = write.cid;
  const nvme::Cqe refused = co_await host.ask(flush);
  EXPECT_EQ(refused.get_status().code(), StatusCode::kCommandIdConflict);
  const auto asked = r2t->as<nvme::R2t>();
  co_await host.deliver(
      host.h2c_data({.cid = write.cid, .ttag = asked.ttag, .length = kBlock}, data));
  const nvme::Cqe written = co_await host.answer();
  EXPECT_TRUE(written.get_status().ok());
  flush.cid = write.cid;  // free again
  const nvme::Cqe flushed = co_await host.ask(flush);
  EXPECT_TRUE(flushed.get_status().ok());
  const std::vector<std::byte> read = co_await host.read(1, 7, 1);
  EXPECT_EQ(read, data);
  co_await pair.close();
}

// Many more commands than the queue has entries, none of which can end by itself.
WORLD_TEST(Commands, MoreThanTheQueueHoldsEndTheConnection) {
  BoxAndHost pair(env);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  std::vector<std::byte> all;
  for (int i = 0; i < 100; ++i) {
    Sqe write = host.io(IoOpcode::kWrite, 0, 1);
    write.sgl1 = SglDescriptor::transport(kBlock);
    const std::vector<std::byte> one = host.capsule(write);
    all.insert(all.end(), one.begin(), one.end());
  }
  const Result<void> sent = co_await host.send(all);
  EXPECT_TRUE(sent.has_value());
  co_await expect_term_req(host, FatalError::kSequence, 0, "too many commands");
  co_await pair.close();
}

WORLD_TEST(Commands, ManyInOneSegmentAreAllAnswered) {
  BoxAndHost pair(env);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  std::vector<std::byte> all;
  std::set<uint16_t> waiting;
  for (uint64_t i = 0; i < 31; ++i) {
    Sqe write = host.io(IoOpcode::kWrite, i, 1);
    write.sgl1 = SglDescriptor::in_capsule(kBlock);
    const std::vector<std::byte> one = host.capsule(write, pattern(kBlock, i));
    all.insert(all.end(), one.begin(), one.end());
    waiting.insert(write.cid);
  }
  co_await host.deliver(all);
  while (!waiting.empty()) {
    const nvme::Cqe cqe = co_await host.answer();
    EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
    EXPECT_EQ(waiting.erase(cqe.cid), 1u);
    if (cqe.cid == 0) break;
  }
  for (uint64_t i = 0; i < 31; ++i) {
    const std::vector<std::byte> read = co_await host.read(1, i, 1);
    EXPECT_EQ(read, pattern(kBlock, i));
  }
  co_await pair.close();
}

WORLD_TEST(Commands, ByteAfterByteIsAsGoodAsAllAtOnce) {
  BoxAndHost pair(env);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  Sqe write = host.io(IoOpcode::kWrite, 3, 1);
  write.sgl1 = SglDescriptor::in_capsule(kBlock);
  const std::vector<std::byte> data = pattern(kBlock, 8);
  const std::vector<std::byte> bytes = host.capsule(write, data);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const Result<void> sent = co_await host.send(Bytes(bytes).subspan(i, 1));
    EXPECT_TRUE(sent.has_value());
    // The header alone, each byte in a segment of its own.
    if (i < 100) co_await conformance::turn(env);
  }
  const nvme::Cqe cqe = co_await host.answer();
  EXPECT_TRUE(cqe.get_status().ok());
  const std::vector<std::byte> read = co_await host.read(1, 3, 1);
  EXPECT_EQ(read, data);
  co_await pair.close();
}

// SQHD goes round with the queue when flow control is on.
WORLD_TEST(Commands, FlowControlGetsItsHead) {
  Box box(env);
  co_await box.open(scene.any_port());
  RawHost host(env);
  co_await host.arrive(box.address, {}, {.size = 3, .attributes = 0});
  uint16_t head = 2;  // Connect and CC.EN
  for (int i = 0; i < 9; ++i) {
    Sqe sqe = Sqe::make(nvme::AdminOpcode::kKeepAlive);
    sqe.cid = host.next_cid();
    const nvme::Cqe cqe = co_await host.ask(sqe);
    head = (head + 1) % 4;
    EXPECT_EQ(cqe.sqhd, head);
  }
  host.stream.reset();
  co_await box.close();
}

}  // namespace
}  // namespace cairn::target_tests
