// SPDX-License-Identifier: Apache-2.0
// Data on its way to the box and back: in capsules, by R2T, with digests, padded, late and wrong.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "testing/target/suite.h"

namespace cairn::target_tests {
namespace {

WORLD_TEST_SUITE(Data);

using nvme::DataPiece;
using nvme::SglDescriptor;

struct Pair : BoxAndHost {
  using BoxAndHost::BoxAndHost;
  // A write of `blocks` that waits for its data, and the R2T it waits with.
  Task<nvme::R2t> begin_write(Sqe& sqe, uint32_t blocks) {
    sqe = queue.io(IoOpcode::kWrite, 0, blocks);
    sqe.sgl1 = SglDescriptor::transport(blocks * kBlock);
    co_await queue.deliver(queue.capsule(sqe));
    const std::optional<Received> pdu = co_await queue.receive();
    EXPECT_EQ(name_of(pdu), "R2T");
    co_return pdu ? pdu->as<nvme::R2t>() : nvme::R2t{};
  }
  Task<void> abort(uint16_t cid, uint16_t queue_id = 1) {
    Sqe sqe = Sqe::make(nvme::AdminOpcode::kAbort);
    nvme::AbortFields{.sqid = queue_id, .cid = cid}.encode(sqe);
    sqe.cid = admin.next_cid();
    const nvme::Cqe cqe = co_await admin.ask(sqe);
    EXPECT_EQ(cqe.dw0 & 1, 0u) << "it was there to be aborted";
  }
};

// Digests and alignment as a host may ask for them.
std::vector<nvme::IcReqOptions> styles() {
  std::vector<nvme::IcReqOptions> all;
  for (const uint8_t alignment : {0, 7, 31}) {
    for (const bool header : {false, true}) {
      for (const bool data : {false, true}) {
        all.push_back({.data_alignment = alignment, .header_digest = header, .data_digest = data});
      }
    }
  }
  return all;
}

WORLD_TEST(Data, ComesBackAsItWasWhateverTheStyle) {
  for (const nvme::IcReqOptions& style : styles()) {
    Pair pair(env);
    co_await pair.open(scene, style);
    RawHost& host = pair.queue;
    Sqe small = host.io(IoOpcode::kWrite, 1, 2);
    small.sgl1 = SglDescriptor::in_capsule(2 * kBlock);
    const nvme::Cqe in_capsule = co_await host.ask(small, pattern(2 * size_t{kBlock}, 1));
    EXPECT_TRUE(in_capsule.get_status().ok());
    const std::vector<std::byte> large = pattern(100 * size_t{kBlock}, 2);
    const nvme::Cqe by_r2t = co_await host.write_by_r2t(host.io(IoOpcode::kWrite, 3, 100), large);
    EXPECT_TRUE(by_r2t.get_status().ok());
    const std::vector<std::byte> first = co_await host.read(1, 1, 2);
    EXPECT_EQ(first, pattern(2 * size_t{kBlock}, 1));
    const std::vector<std::byte> second = co_await host.read(1, 3, 100);
    EXPECT_EQ(second, large);
    co_await pair.close();
  }
}

// A wrong data digest fails its command, which may be tried again; nothing was written.
WORLD_TEST(Data, WrongDigestFailsItsCommandAlone) {
  Pair pair(env);
  co_await pair.open(scene, {.data_digest = true});
  RawHost& host = pair.queue;
  Sqe write = host.io(IoOpcode::kWrite, 0, 1);
  write.sgl1 = SglDescriptor::in_capsule(kBlock);
  std::vector<std::byte> capsule = host.capsule(write, pattern(kBlock, 1));
  capsule.back() ^= std::byte{1};
  co_await host.deliver(capsule);
  const nvme::Cqe in_capsule = co_await host.answer();
  EXPECT_EQ(in_capsule.get_status().code(), StatusCode::kTransientTransportError);
  EXPECT_FALSE(in_capsule.get_status().do_not_retry());

  const nvme::R2t r2t = co_await pair.begin_write(write, 1);
  std::vector<std::byte> data =
      host.h2c_data({.cid = write.cid, .ttag = r2t.ttag, .length = kBlock}, pattern(kBlock, 1));
  data[100] ^= std::byte{1};
  co_await host.deliver(data);
  const nvme::Cqe by_r2t = co_await host.answer();
  EXPECT_EQ(by_r2t.get_status().code(), StatusCode::kTransientTransportError);
  const std::vector<std::byte> read = co_await host.read(1, 0, 1);
  EXPECT_TRUE(conformance::is_zero(read));
  co_await pair.close();
}

// An R2T answered in several pieces.
WORLD_TEST(Data, PiecesOfAnR2tAddUp) {
  Pair pair(env);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  Sqe write;
  const nvme::R2t r2t = co_await pair.begin_write(write, 2);
  const std::vector<std::byte> data = pattern(2 * size_t{kBlock}, 4);
  for (uint32_t at = 0; at < data.size(); at += 1024) {
    const DataPiece piece{.cid = write.cid, .ttag = r2t.ttag, .offset = at, .length = 1024};
    co_await host.deliver(
        host.h2c_data(piece, Bytes(data).subspan(at, 1024), at + 1024 == data.size()));
  }
  const nvme::Cqe cqe = co_await host.answer();
  EXPECT_TRUE(cqe.get_status().ok());
  const std::vector<std::byte> read = co_await host.read(1, 0, 2);
  EXPECT_EQ(read, data);
  co_await pair.close();
}

// A host that is asked for more while it still counts what it has sent would send a wrong amount.
WORLD_TEST(Data, OfTheLargestWriteIsAskedForOnce) {
  Pair pair(env);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  constexpr uint32_t kMax = nvme::kTransferBytesMax;
  Sqe write;
  const nvme::R2t r2t = co_await pair.begin_write(write, kMax / kBlock);
  EXPECT_EQ(r2t.offset, 0u);
  EXPECT_EQ(r2t.length, kMax);
  const std::vector<std::byte> data = pattern(kMax, 6);
  const DataPiece piece{.cid = write.cid, .ttag = r2t.ttag, .length = kMax};
  co_await host.deliver(host.h2c_data(piece, data));
  const nvme::Cqe cqe = co_await host.answer();
  EXPECT_TRUE(cqe.get_status().ok());
  const std::vector<std::byte> read = co_await host.read(1, 0, kMax / kBlock);
  EXPECT_EQ(read, data);
  co_await pair.close();
}

struct WrongPiece {
  const char* name;
  DataPiece piece;  // its ttag is added to the R2T's
  bool last;
  FatalError error;
  uint32_t information = 0;
  uint16_t wrong_cid = 0;
};

WORLD_TEST(Data, WrongAnswersToAnR2tEndTheConnection) {
  const std::vector<WrongPiece> wrongs = {
      {"another tag", {.ttag = 1, .length = 4096}, true, FatalError::kInvalidHeader, 10},
      {"another command", {.length = 4096}, true, FatalError::kInvalidHeader, 8, 1},
      {"beyond the R2T", {.length = 8196}, true, FatalError::kDataOutOfRange},
      {"behind the R2T", {.offset = 8192, .length = 4}, true, FatalError::kDataOutOfRange},
      {"a gap", {.offset = 4, .length = 4}, false, FatalError::kSequence},
      {"LAST before the end", {.length = 4096}, true, FatalError::kSequence},
      {"no LAST at the end", {.length = 8192}, false, FatalError::kSequence},
  };
  for (const WrongPiece& each : wrongs) {
    Pair pair(env);
    co_await pair.open(scene);
    Sqe write;
    const nvme::R2t r2t = co_await pair.begin_write(write, 2);
    DataPiece piece = each.piece;
    piece.cid = static_cast<uint16_t>(write.cid + each.wrong_cid);
    piece.ttag = static_cast<uint16_t>(r2t.ttag + piece.ttag);
    const Result<void> sent =
        co_await pair.queue.send(pair.queue.h2c_data(piece, pattern(piece.length, 1), each.last));
    EXPECT_TRUE(sent.has_value());
    co_await expect_term_req(pair.queue, each.error, each.information, each.name);
    co_await pair.close();
  }
}

// Data for a command that was aborted meanwhile is no fault: it is read and forgotten.
WORLD_TEST(Data, OfAnAbortedCommandIsSwallowed) {
  Pair pair(env);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  for (int round = 0; round < 100; ++round) {
    Sqe write;
    const nvme::R2t r2t = co_await pair.begin_write(write, 2);
    const bool part_first = round % 2 == 1;
    DataPiece piece{.cid = write.cid, .ttag = r2t.ttag, .length = kBlock};
    if (part_first) co_await host.deliver(host.h2c_data(piece, pattern(kBlock, 1), false));
    co_await pair.abort(write.cid);
    const nvme::Cqe aborted = co_await host.answer();
    EXPECT_EQ(aborted.cid, write.cid);
    EXPECT_EQ(aborted.get_status().code(), StatusCode::kAbortRequested);
    if (!part_first) co_await host.deliver(host.h2c_data(piece, pattern(kBlock, 1), false));
    piece.offset = kBlock;
    co_await host.deliver(host.h2c_data(piece, pattern(kBlock, 1), true));
  }
  const std::vector<std::byte> read = co_await host.read(1, 0, 2);
  EXPECT_TRUE(conformance::is_zero(read)) << "and nothing of it was written";
  co_await pair.close();
}

// As many at once as a queue takes, and their data in any order.
WORLD_TEST(Data, OfAQueueFullOfAbortedCommandsIsSwallowed) {
  constexpr uint16_t kMany = 127;
  Pair pair(env, {.queue_entries_max = kMany + 1});
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  host.stream.reset();
  co_await host.join(pair.box.address, pair.admin, 2, {}, kMany);
  for (int round = 0; round < 3; ++round) {
    std::vector<nvme::R2t> asked;
    for (uint16_t i = 0; i < kMany; ++i) {
      Sqe write;
      const nvme::R2t r2t = co_await pair.begin_write(write, 2);
      asked.push_back(r2t);
    }
    for (const nvme::R2t& r2t : asked) {
      co_await pair.abort(r2t.cid, 2);
      const nvme::Cqe aborted = co_await host.answer();
      EXPECT_EQ(aborted.get_status().code(), StatusCode::kAbortRequested);
    }
    for (size_t i = 0; i < asked.size(); ++i) {
      const nvme::R2t& r2t = round == 1 ? asked[asked.size() - 1 - i] : asked[i];
      const DataPiece piece{.cid = r2t.cid, .ttag = r2t.ttag, .length = r2t.length};
      co_await host.deliver(host.h2c_data(piece, pattern(r2t.length, 1)));
    }
  }
  const std::vector<std::byte> read = co_await host.read(1, 0, 2);
  EXPECT_TRUE(conformance::is_zero(read)) << "and nothing of it was written";
  co_await pair.close();
}

// More of it than was asked for is one.
WORLD_TEST(Data, OfAnAbortedCommandComesOnce) {
  Pair pair(env);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  Sqe write;
  const nvme::R2t r2t = co_await pair.begin_write(write, 1);
  co_await pair.abort(write.cid);
  const nvme::Cqe aborted = co_await host.answer();
  EXPECT_FALSE(aborted.get_status().ok());
  const DataPiece piece{.cid = write.cid, .ttag = r2t.ttag, .length = kBlock};
  co_await host.deliver(host.h2c_data(piece, pattern(kBlock, 1)));
  co_await host.deliver(host.h2c_data(piece, pattern(kBlock, 1)));
  co_await expect_term_req(host, FatalError::kInvalidHeader, 10, "owed data sent twice");
  co_await pair.close();
}

WORLD_TEST(Data, FusedPairIsOneCommand) {
  Pair pair(env);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  const std::vector<std::byte> zeroes(kBlock);
  const std::vector<std::byte> news = pattern(kBlock, 9);
  for (const bool matches : {true, false}) {
    Sqe compare = host.io(IoOpcode::kCompare, 5, 1);
    compare.sgl1 = SglDescriptor::in_capsule(kBlock);
    compare.set_fuse(nvme::Fuse::kFirst);
    Sqe write = host.io(IoOpcode::kWrite, 5, 1);
    write.sgl1 = SglDescriptor::in_capsule(kBlock);
    write.set_fuse(nvme::Fuse::kSecond);
    co_await host.deliver(host.capsule(compare, zeroes));
    co_await host.deliver(host.capsule(write, news));
    const nvme::Cqe first = co_await host.answer();
    const nvme::Cqe second = co_await host.answer();
    EXPECT_EQ(first.cid, compare.cid);
    EXPECT_EQ(second.cid, write.cid);
    EXPECT_EQ(first.get_status().code(),
              matches ? StatusCode::kSuccess : StatusCode::kCompareFailure);
    EXPECT_EQ(second.get_status().code(),
              matches ? StatusCode::kSuccess : StatusCode::kAbortedFailedFused);
  }
  co_await pair.close();
}

// A host may describe more memory than a command needs, for each half of a pair by itself: here a
// small one and a large one, which have shares of their own.
WORLD_TEST(Data, HalvesOfAPairMayDescribeDifferentLengths) {
  Pair pair(env);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  constexpr uint32_t kSmall = fabric::kSmallDataMax;
  constexpr uint32_t kLarge = 2 * fabric::kSmallDataMax;
  const std::vector<std::byte> zeroes(kLarge);
  const std::vector<std::byte> news = pattern(kLarge, 9);
  uint64_t lba = 5;
  for (const auto& [first, second] : {std::pair(kSmall, kLarge), std::pair(kLarge, kSmall)}) {
    Sqe compare = host.io(IoOpcode::kCompare, lba, 1);
    compare.sgl1 = SglDescriptor::transport(first);
    compare.set_fuse(nvme::Fuse::kFirst);
    Sqe write = host.io(IoOpcode::kWrite, lba, 1);
    write.sgl1 = SglDescriptor::transport(second);
    write.set_fuse(nvme::Fuse::kSecond);
    co_await host.deliver(host.capsule(compare));
    co_await host.deliver(host.capsule(write));
    for (const Bytes data : {Bytes(zeroes), Bytes(news)}) {
      const nvme::R2t r2t = co_await host.send_asked(data);
      EXPECT_EQ(r2t.length, r2t.cid == compare.cid ? first : second);
    }
    for (int half = 0; half < 2; ++half) {
      const nvme::Cqe cqe = co_await host.answer();
      EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
    }
    const std::vector<std::byte> read = co_await host.read(1, lba, 1);
    EXPECT_TRUE(std::ranges::equal(read, Bytes(news).first(kBlock)));
    ++lba;
  }
  co_await pair.close();
}

// Large writes take every large buffer there is and wait for their data; small ones that come
// before that data must not wait behind them, or nothing would ever move again.
WORLD_TEST(Data, SmallWritesPassThoseThatWaitForBuffers) {
  Pair pair(env);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  constexpr uint32_t kLarge = 31;
  constexpr uint32_t kLargeBlocks = 32;
  std::vector<std::byte> all;
  const std::vector<std::byte> data = pattern(size_t{kLargeBlocks} * kBlock, 3);
  for (uint32_t i = 0; i < kLarge - 1; ++i) {
    Sqe write = host.io(IoOpcode::kWrite, uint64_t{i} * kLargeBlocks, kLargeBlocks);
    write.sgl1 = SglDescriptor::transport(kLargeBlocks * kBlock);
    const std::vector<std::byte> one = host.capsule(write);
    all.insert(all.end(), one.begin(), one.end());
  }
  Sqe small = host.io(IoOpcode::kWrite, kBlocks - 1, 1);
  small.sgl1 = SglDescriptor::in_capsule(kBlock);
  const std::vector<std::byte> last = host.capsule(small, pattern(kBlock, 4));
  all.insert(all.end(), last.begin(), last.end());
  co_await host.deliver(all);
  uint32_t answers = 0;
  while (answers < kLarge) {
    const std::optional<Received> pdu = co_await host.receive();
    if (!pdu) break;
    if (pdu->type() == nvme::PduType::kR2t) {
      const auto r2t = pdu->as<nvme::R2t>();
      const DataPiece piece{
          .cid = r2t.cid, .ttag = r2t.ttag, .offset = r2t.offset, .length = r2t.length};
      co_await host.deliver(host.h2c_data(piece, Bytes(data).subspan(r2t.offset, r2t.length)));
    } else {
      EXPECT_TRUE(pdu->as<nvme::CapsuleResp>().cqe.get_status().ok());
      ++answers;
    }
  }
  EXPECT_EQ(answers, kLarge);
  co_await pair.close();
}

}  // namespace
}  // namespace cairn::target_tests
