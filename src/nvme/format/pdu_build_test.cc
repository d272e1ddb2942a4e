// SPDX-License-Identifier: Apache-2.0
// Golden bytes of every PDU, from NVMe/TCP 1.0, 3.6.2; the digests were computed bit by bit
// elsewhere.
#include "nvme/format/pdu_build.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>

#include "base/bytes.h"
#include "base/ids.h"
#include "nvme/format/command_format.h"
#include "nvme/format/io_format.h"
#include "nvme/format/opcode_format.h"
#include "nvme/format/pdu.h"
#include "nvme/format/tcp_format.h"
#include "testing/nvme/hex.h"

namespace cairn::nvme {
namespace {

// A buffer full of garbage, so that what a builder leaves out shows.
struct Buffer {
  std::array<std::byte, kTermReqMax> bytes;
  Buffer() { bytes.fill(std::byte{0xee}); }
  operator MutableBytes() { return bytes; }
  HexBytes first(size_t size) const { return wire(Bytes(bytes).first(size)); }
};

Sqe small_write() {
  Sqe sqe = Sqe::make(IoOpcode::kWrite, 1);
  sqe.cid = 1;
  sqe.sgl1 = SglDescriptor::in_capsule(512);
  BlockFields{.start = Lba(2), .blocks = 1}.encode(sqe);
  return sqe;
}
constexpr const char* kSmallWrite =
    "01 40 0100 01000000 00*16 | 00*8 00020000 000000 01 | 02000000 00*4 00*4 00*12";

constexpr PduStyle kPlain{};

TEST(PduBuild, InitializeConnectionRequest) {
  Buffer out;
  const size_t size = build_ic_req(
      out, {.data_alignment = 3, .header_digest = true, .data_digest = true, .r2t_max = 15});
  EXPECT_EQ(out.first(size), hex("00 00 80 00 80000000 | 0000 03 03 0f000000 00*112"));
}

TEST(PduBuild, InitializeConnectionResponse) {
  Buffer out;
  const size_t size = build_ic_resp(out, {.data_digest = true, .h2c_data_max = 0x40000});
  EXPECT_EQ(out.first(size), hex("01 00 80 00 80000000 | 0000 00 02 00000400 00*112"));
}

TEST(PduBuild, TerminationFromEachEnd) {
  Buffer out;
  const auto faulty = hex("04 00 49 00 48000000");
  size_t size = build_term_req(out, End::kController, {FatalError::kInvalidHeader, 2}, faulty);
  EXPECT_EQ(out.first(size),
            hex("03 00 18 00 20000000 | 0100 02000000 00*10 | 04 00 49 00 48000000"));
  size = build_term_req(out, End::kHost, {FatalError::kHeaderDigest, 0x04030201}, {});
  EXPECT_EQ(out.first(size), hex("02 00 18 00 18000000 | 0300 01020304 00*10"));
}

TEST(PduBuild, TerminationCarriesAtMost128BytesOfHeader) {
  Buffer out;
  const auto header = hex("aa*200");
  const size_t size = build_term_req(out, End::kHost, {FatalError::kSequence, 0}, header);
  EXPECT_EQ(size, 152u);
  EXPECT_EQ(out.first(size), hex("02 00 18 00 98000000 | 0200 00000000 00*10 | aa*128"));
}

TEST(PduBuild, CommandWithoutData) {
  Buffer out;
  Sqe keep_alive = Sqe::make(AdminOpcode::kKeepAlive);
  keep_alive.cid = 0x1234;
  const size_t size = build_capsule_cmd(out, kPlain, keep_alive, 0);
  EXPECT_EQ(out.first(size), hex("04 00 48 00 48000000 | 18 40 3412 00*20 00*15 5a 00*24"));
}

TEST(PduBuild, CommandWithDataInItsCapsule) {
  Buffer out;
  const size_t size = build_capsule_cmd(out, kPlain, small_write(), 512);
  EXPECT_EQ(out.first(size), hex(std::string("04 00 48 48 48020000 |") + kSmallWrite));
}

TEST(PduBuild, CommandWithDigestsAndAlignedData) {
  Buffer out;
  const PduStyle style{.header_digest = true, .data_digest = true, .data_alignment = 15};
  const size_t size = build_capsule_cmd(out, style, small_write(), 512);
  EXPECT_EQ(out.first(size),
            hex(std::string("04 03 48 80 84020000 |") + kSmallWrite + "| 108cab15 | 00*52"));
}

TEST(PduBuild, Response) {
  Buffer out;
  const Cqe cqe{.sqhd = 5, .cid = 0x1234};
  size_t size = build_capsule_resp(out, kPlain, cqe);
  EXPECT_EQ(out.first(size), hex("05 00 18 00 18000000 | 00*8 0500 0000 3412 0000"));
  size = build_capsule_resp(out, {.header_digest = true, .data_digest = true}, cqe);
  EXPECT_EQ(out.first(size), hex("05 01 18 00 1c000000 | 00*8 0500 0000 3412 0000 | 13568c9b"));
}

// The example of figure 8: 64-byte alignment leaves 40 bytes of padding.
TEST(PduBuild, HostDataAlignedTo64Bytes) {
  Buffer out;
  const DataPiece piece{.cid = 0x1234, .ttag = 7, .offset = 0x1000, .length = 0x2000};
  size_t size = build_h2c_data(out, {.data_alignment = 15}, piece, true);
  EXPECT_EQ(out.first(size),
            hex("06 04 18 40 40200000 | 3412 0700 00100000 00200000 00*4 | 00*40"));
  size = build_h2c_data(out, kPlain, piece, false);
  EXPECT_EQ(out.first(size), hex("06 00 18 18 18200000 | 3412 0700 00100000 00200000 00*4"));
}

// The example of figure 9: 16-byte alignment leaves 8 bytes of padding, 4 of them to a digest.
TEST(PduBuild, ControllerDataAlignedTo16Bytes) {
  Buffer out;
  const DataPiece piece{.cid = 0x1234, .offset = 0, .length = 0x1000};
  size_t size = build_c2h_data(out, {.data_alignment = 3}, piece, C2hEnd::kLast);
  EXPECT_EQ(out.first(size), hex("07 04 18 20 20100000 | 3412 0000 00000000 00100000 00*4 | 00*8"));
  size = build_c2h_data(out, {.header_digest = true, .data_digest = true, .data_alignment = 3},
                        piece, C2hEnd::kLastWithSuccess);
  EXPECT_EQ(out.first(size), hex("07 0f 18 20 24100000 | 3412 0000 00000000 00100000 00*4 |"
                                 "9a5dde8d 00*4"));
  size = build_c2h_data(out, kPlain, piece, C2hEnd::kMore);
  EXPECT_EQ(out.first(size), hex("07 00 18 18 18100000 | 3412 0000 00000000 00100000 00*4"));
}

TEST(PduBuild, ReadyToTransfer) {
  Buffer out;
  const DataPiece piece{.cid = 0x1234, .ttag = 7, .offset = 0x1000, .length = 0x2000};
  size_t size = build_r2t(out, kPlain, piece);
  EXPECT_EQ(out.first(size), hex("09 00 18 00 18000000 | 3412 0700 00100000 00200000 00*4"));
  size = build_r2t(out, {.header_digest = true, .data_digest = true, .data_alignment = 15}, piece);
  EXPECT_EQ(out.first(size),
            hex("09 01 18 00 1c000000 | 3412 0700 00100000 00200000 00*4 | ed670135"));
}

// RFC 3720, B.4.
TEST(PduBuild, DataDigests) {
  const auto zeroes = hex("00*32");
  const auto ones = hex("ff*32");
  const Bytes halves[] = {Bytes(zeroes).first(5), Bytes(zeroes).subspan(5)};
  EXPECT_EQ(wire(Bytes(data_digest(halves))), hex("aa36918a"));
  EXPECT_TRUE(data_digest_matches(halves, hex("aa36918a")));
  EXPECT_FALSE(data_digest_matches(halves, hex("aa36918b")));
  const Bytes whole[] = {ones};
  EXPECT_EQ(wire(Bytes(data_digest(whole))), hex("43aba862"));
}

}  // namespace
}  // namespace cairn::nvme
