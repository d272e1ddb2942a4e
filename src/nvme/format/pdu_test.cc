// SPDX-License-Identifier: Apache-2.0
#include "nvme/format/pdu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <ostream>
#include <string>

#include "base/bytes.h"
#include "nvme/format/pdu_build.h"
#include "nvme/format/tcp_format.h"
#include "testing/nvme/hex.h"

namespace cairn::nvme {

// For failed expectations.
void PrintTo(const PduFault& fault, std::ostream* out) { *out << text(fault, End::kController); }

namespace {

// A controller past the exchange, its limits small enough to reach.
constexpr PduRules kController{
    .receiver = End::kController, .established = true, .h2c_data_max = 4096, .in_capsule_max = 512};
constexpr PduRules kHost{.receiver = End::kHost, .established = true};
constexpr PduRules kNewController{.receiver = End::kController};
constexpr PduRules kNewHost{.receiver = End::kHost};

PduRules with_digests(PduRules rules, bool header, bool data) {
  rules.header_digest = header;
  rules.data_digest = data;
  return rules;
}
PduRules aligned(PduRules rules, uint8_t pda) {
  rules.data_alignment = pda;
  return rules;
}

// The header `text`, filled up with zeroes as far as any header reaches.
HexBytes padded(const std::string& text) {
  HexBytes bytes = hex(text);
  bytes.resize(std::max(bytes.size(), kHeaderMax));
  return bytes;
}

PduFault fault_of(const PduRules& rules, const std::string& text) {
  const HexBytes header = padded(text);
  const PduResult<Pdu> pdu = check_pdu(header, rules);
  return pdu ? PduFault{FatalError{0xffff}, 0} : pdu.error();
}
constexpr PduFault invalid(uint32_t offset) { return {FatalError::kInvalidHeader, offset}; }
constexpr PduFault unsupported(uint32_t offset) {
  return {FatalError::kUnsupportedParameter, offset};
}
constexpr PduFault kSequenceError{FatalError::kSequence, 0};
constexpr PduFault kSilent{FatalError::kNone, 0};

// ---- What a sound PDU looks like

struct SoundCase {
  const char* header;
  PduRules rules;
  PduType type;
  uint32_t header_size;
  uint32_t data_offset;
  uint32_t data_length;
  bool data_digest;
};

TEST(Pdu, SoundOnesAreMeasured) {
  const PduRules digests = with_digests(kController, false, true);
  const SoundCase cases[] = {
      {"00 00 80 00 80000000", kNewController, PduType::kIcReq, 128, 128, 0, false},
      {"01 00 80 00 80000000 0000 00 00 00100000", kNewHost, PduType::kIcResp, 128, 128, 0, false},
      {"02 00 18 00 18000000", kController, PduType::kH2cTermReq, 24, 24, 0, false},
      {"02 00 18 00 98000000", kNewController, PduType::kH2cTermReq, 24, 24, 128, false},
      {"03 00 18 00 20000000", with_digests(kHost, true, true), PduType::kC2hTermReq, 24, 24, 8,
       false},
      {"04 00 48 00 48000000", kController, PduType::kCapsuleCmd, 72, 72, 0, false},
      {"04 00 48 48 48020000", kController, PduType::kCapsuleCmd, 72, 72, 512, false},
      {"04 00 48 50 50020000", kController, PduType::kCapsuleCmd, 72, 80, 512, false},
      {"04 02 48 00 48000000", digests, PduType::kCapsuleCmd, 72, 72, 0, false},
      {"04 00 48 00 48000000", digests, PduType::kCapsuleCmd, 72, 72, 0, false},
      {"04 02 48 48 50000000", digests, PduType::kCapsuleCmd, 72, 72, 4, true},
      {"04 00 48 80 90000000", aligned(kController, 31), PduType::kCapsuleCmd, 72, 128, 16, false},
      {"05 00 18 00 18000000", kHost, PduType::kCapsuleResp, 24, 24, 0, false},
      {"06 00 18 18 1c000000 00*8 04000000", kController, PduType::kH2cData, 24, 24, 4, false},
      {"06 06 18 40 48000000 00*8 04000000", aligned(digests, 15), PduType::kH2cData, 24, 64, 4,
       true},
      {"07 0c 18 18 18001000 00*8 00001000", kHost, PduType::kC2hData, 24, 24, 1 << 20, false},
      {"07 00 18 18 fcffffff 00*8 e4ffffff", kHost, PduType::kC2hData, 24, 24, 0xffffffe4, false},
      {"09 00 18 00 18000000 00*8 04000000", kHost, PduType::kR2t, 24, 24, 0, false},
  };
  for (const SoundCase& test : cases) {
    const HexBytes header = padded(test.header);
    const auto common = decode_common_header(Bytes(header).first<sizeof(CommonHeader)>());
    EXPECT_EQ(check_common_header(common, test.rules), test.header_size) << test.header;
    const PduResult<Pdu> pdu = check_pdu(header, test.rules);
    ASSERT_TRUE(pdu) << test.header << ": " << text(pdu.error(), End::kController);
    EXPECT_EQ(pdu->type, test.type) << test.header;
    EXPECT_EQ(pdu->length, common.length) << test.header;
    EXPECT_EQ(pdu->header_size, test.header_size) << test.header;
    EXPECT_EQ(pdu->data_offset, test.data_offset) << test.header;
    EXPECT_EQ(pdu->data_length, test.data_length) << test.header;
    EXPECT_EQ(pdu->data_digest, test.data_digest) << test.header;
  }
}

TEST(Pdu, ReservedFlagsAndFieldsAreNotLookedAt) {
  const char* const headers[] = {"00 ff 80 ff 80000000 0000 00 fc 00000000 ff*112",
                                 "02 ff 18 ff 18000000 ff*16"};
  for (const char* header : headers)
    EXPECT_TRUE(check_pdu(padded(header), kNewController)) << header;
  EXPECT_TRUE(check_pdu(padded("04 f0 48 00 48000000"), kController));
  EXPECT_TRUE(check_pdu(padded("06 f8 18 18 1c000000 00*8 04000000 ff*4"), kController));
  EXPECT_TRUE(check_pdu(padded("05 fe 18 ff 18000000"), kHost));
}

TEST(Pdu, IsReadAsItsType) {
  const HexBytes header = padded("06 04 18 18 18100000 | 3412 0700 00200000 00100000 00*4");
  const Pdu pdu = check_pdu(header, kController).value();
  EXPECT_TRUE(pdu.last());
  EXPECT_FALSE(pdu.success());
  EXPECT_EQ(pdu.header.size(), 24u);
  const auto data = pdu.as<DataPdu>();
  EXPECT_EQ(data.cid, 0x1234);
  EXPECT_EQ(data.ttag, 7);
  EXPECT_EQ(data.offset, 0x2000u);
  EXPECT_EQ(data.length, 0x1000u);
}

// ---- Faults of the common header, lowest field first

TEST(Pdu, UnknownTypesAndWrongDirectionsAreFaultsOfByte0) {
  for (const char* type : {"08", "0a", "0b", "7f", "ff", "01", "03", "05", "07", "09"}) {
    EXPECT_EQ(fault_of(kController, type + std::string(" 00 18 00 18000000")), invalid(0)) << type;
    EXPECT_EQ(fault_of(kNewController, type + std::string(" 00 18 00 18000000")), invalid(0))
        << type;
  }
  for (const char* type : {"00", "02", "04", "06", "08", "0b"}) {
    EXPECT_EQ(fault_of(kHost, type + std::string(" 00 18 00 18000000")), invalid(0)) << type;
  }
}

TEST(Pdu, ThoseOfTheOtherPhaseAreSequenceErrors) {
  EXPECT_EQ(fault_of(kController, "00 00 80 00 80000000"), kSequenceError);
  EXPECT_EQ(fault_of(kHost, "01 00 80 00 80000000"), kSequenceError);
  EXPECT_EQ(fault_of(kNewController, "04 00 48 00 48000000"), kSequenceError);
  EXPECT_EQ(fault_of(kNewController, "06 00 18 18 1c000000"), kSequenceError);
  for (const char* type : {"05", "07", "09"}) {
    EXPECT_EQ(fault_of(kNewHost, type + std::string(" 00 18 00 18000000")), kSequenceError) << type;
  }
}

TEST(Pdu, DigestFlagsMustBeAsAgreed) {
  const char* const commands[] = {"04 01 48 00 48000000", "04 02 48 48 50000000"};
  for (const char* header : commands)
    EXPECT_EQ(fault_of(kController, header), invalid(1)) << header;
  EXPECT_EQ(fault_of(with_digests(kController, true, false), "04 00 48 00 4c000000"), invalid(1));
  EXPECT_EQ(fault_of(with_digests(kController, false, true), "04 00 48 48 4c000000"), invalid(1));
  EXPECT_EQ(fault_of(with_digests(kController, false, true), "06 00 18 18 1c000000 00*8 04000000"),
            invalid(1));
  EXPECT_EQ(fault_of(kController, "06 02 18 18 20000000 00*8 04000000"), invalid(1));
  EXPECT_EQ(fault_of(with_digests(kHost, true, true), "05 00 18 00 18000000"), invalid(1));
  EXPECT_EQ(fault_of(with_digests(kHost, true, true), "09 00 18 00 18000000"), invalid(1));
}

TEST(Pdu, SuccessWithoutLastIsAFaultOfTheFlags) {
  EXPECT_EQ(fault_of(kHost, "07 08 18 18 1c000000 00*8 04000000"), invalid(1));
}

TEST(Pdu, HeaderLengthsAreFixed) {
  EXPECT_EQ(fault_of(kNewController, "00 00 7f 00 80000000"), invalid(2));
  EXPECT_EQ(fault_of(kNewHost, "01 00 18 00 80000000"), invalid(2));
  EXPECT_EQ(fault_of(kController, "04 00 49 00 48000000"), invalid(2));
  EXPECT_EQ(fault_of(kController, "04 00 00 00 48000000"), invalid(2));
  EXPECT_EQ(fault_of(kController, "06 00 ff 18 1c000000"), invalid(2));
  EXPECT_EQ(fault_of(kHost, "05 00 48 00 18000000"), invalid(2));
}

TEST(Pdu, DataOffsetsAreAlignedAndBehindTheHeader) {
  EXPECT_EQ(fault_of(kController, "04 00 48 4a 60000000"), invalid(3)) << "not a multiple of 4";
  EXPECT_EQ(fault_of(kController, "04 00 48 03 48000000"), invalid(3)) << "not even without data";
  EXPECT_EQ(fault_of(kController, "04 00 48 44 60000000"), invalid(3)) << "inside the header";
  EXPECT_EQ(fault_of(kController, "04 00 48 00 60000000"), invalid(3)) << "missing";
  EXPECT_EQ(fault_of(kController, "04 00 48 64 60000000"), invalid(3)) << "behind the end";
  EXPECT_EQ(fault_of(aligned(kController, 15), "04 00 48 48 60000000"), invalid(3))
      << "as announced";
  EXPECT_EQ(fault_of(with_digests(kController, true, false), "04 01 48 48 60000000"), invalid(3))
      << "on the digest";
  EXPECT_EQ(fault_of(kController, "06 00 18 00 1c000000"), invalid(3));
  EXPECT_EQ(fault_of(kHost, "07 00 18 14 1c000000"), invalid(3));
}

TEST(Pdu, LengthsMustHoldWhatTheHeaderSays) {
  EXPECT_EQ(fault_of(kNewController, "00 00 80 00 81000000"), invalid(4));
  EXPECT_EQ(fault_of(kNewController, "00 00 80 00 00000000"), invalid(4));
  EXPECT_EQ(fault_of(kNewHost, "01 00 80 00 7f000000"), invalid(4));
  EXPECT_EQ(fault_of(kController, "04 00 48 00 47000000"), invalid(4)) << "shorter than its header";
  EXPECT_EQ(fault_of(with_digests(kController, true, false), "04 01 48 00 48000000"), invalid(4))
      << "no room for the digest";
  EXPECT_EQ(fault_of(kController, "04 00 48 4c 4c000000"), invalid(4)) << "padding without data";
  EXPECT_EQ(fault_of(with_digests(kController, false, true), "04 02 48 48 4c000000"), invalid(4))
      << "a digest without data";
  EXPECT_EQ(fault_of(kController, "06 00 18 18 17000000"), invalid(4));
  EXPECT_EQ(fault_of(with_digests(kController, false, true), "06 02 18 18 1b000000"), invalid(4));
  EXPECT_EQ(fault_of(kHost, "05 00 18 00 1c000000"), invalid(4)) << "responses have no data";
  EXPECT_EQ(fault_of(kHost, "09 00 18 00 00000000"), invalid(4));
}

TEST(Pdu, TheLowestWrongFieldIsNamed) {
  EXPECT_EQ(fault_of(kController, "04 01 49 03 00000000"), invalid(1));
  EXPECT_EQ(fault_of(kController, "04 00 49 03 00000000"), invalid(2));
  EXPECT_EQ(fault_of(kController, "04 00 48 03 00000000"), invalid(3));
  EXPECT_EQ(fault_of(kController, "04 00 48 00 00000000"), invalid(4));
}

TEST(Pdu, MalformedTerminationsAreNotAnswered) {
  for (const char* header : {"02 00 18 00 17000000", "02 00 18 00 99000000", "02 00 18 00 ffffffff",
                             "02 00 19 00 18000000"}) {
    EXPECT_EQ(fault_of(kController, header), kSilent) << header;
    EXPECT_EQ(fault_of(kNewController, header), kSilent) << header;
  }
  EXPECT_EQ(fault_of(kHost, "03 00 18 00 00000000"), kSilent);
}

// ---- Faults behind the common header

TEST(Pdu, AWrongHeaderDigestIsReportedAsReceived) {
  const PduRules rules = with_digests(kHost, true, false);
  const std::string resp = "05 01 18 00 1c000000 | 00*8 0500 0000 3412 0000 |";
  EXPECT_TRUE(check_pdu(padded(resp + "13568c9b"), rules));
  EXPECT_EQ(fault_of(rules, resp + "13568c9a"), (PduFault{FatalError::kHeaderDigest, 0x9a8c5613}));
  // A flipped bit in a field is told as a digest error, whatever the field then says.
  EXPECT_EQ(fault_of(rules, "09 01 18 00 1c000000 | 3412 0700 01100000 00200000 00*4 | ed670135"),
            (PduFault{FatalError::kHeaderDigest, 0x350167ed}));
}

TEST(Pdu, InitializeRequestsAreJudged) {
  const std::string head = "00 00 80 00 80000000 ";
  EXPECT_EQ(fault_of(kNewController, head + "0100 00 00 00000000"), invalid(8));
  EXPECT_EQ(fault_of(kNewController, head + "0000 20 00 00000000"), invalid(10));
  EXPECT_EQ(fault_of(kNewController, head + "0001 ff 00 00000000"), invalid(8));
  PduRules narrow = kNewController;
  narrow.peer_alignment_max = 0;
  EXPECT_EQ(fault_of(narrow, head + "0000 01 00 00000000"), unsupported(10));
  EXPECT_TRUE(check_pdu(padded(head + "0000 1f 03 ffffffff"), kNewController));
}

TEST(Pdu, InitializeResponsesAreJudged) {
  const std::string head = "01 00 80 00 80000000 ";
  EXPECT_EQ(fault_of(kNewHost, head + "0100 00 00 00100000"), invalid(8));
  EXPECT_EQ(fault_of(kNewHost, head + "0000 20 00 00100000"), invalid(10));
  EXPECT_EQ(fault_of(kNewHost, head + "0000 00 01 00100000"), invalid(11)) << "nobody asked for it";
  EXPECT_EQ(fault_of(with_digests(kNewHost, true, false), head + "0000 00 02 00100000"),
            invalid(11));
  EXPECT_EQ(fault_of(kNewHost, head + "0000 00 00 01100000"), invalid(12));
  EXPECT_EQ(fault_of(kNewHost, head + "0000 00 00 00000000"), unsupported(12));
  PduRules narrow = kNewHost;
  narrow.peer_alignment_max = 0;
  EXPECT_EQ(fault_of(narrow, head + "0000 01 00 00100000"), unsupported(10));
  EXPECT_TRUE(check_pdu(padded(head + "0000 00 00 00100000"), with_digests(kNewHost, true, true)))
      << "a digest may be refused";
}

TEST(Pdu, InCapsuleDataHaveALimitThatFabricsCommandsRaise) {
  EXPECT_TRUE(check_pdu(padded("04 00 48 48 48020000 01"), kController));
  EXPECT_EQ(fault_of(kController, "04 00 48 48 4c020000 01"), invalid(4));
  EXPECT_TRUE(check_pdu(padded("04 00 48 48 48200000 7f 40 0000 01"), kController)) << "8 KiB";
  EXPECT_EQ(fault_of(kController, "04 00 48 48 4c200000 7f 40 0000 01"), invalid(4));
}

TEST(Pdu, DataPdusMustAddUp) {
  EXPECT_EQ(fault_of(kController, "06 00 18 18 20000000 00*8 04000000"), invalid(4));
  EXPECT_EQ(fault_of(kController, "06 00 18 18 1c000000 00*8 08000000"), invalid(4));
  EXPECT_EQ(fault_of(kController, "06 00 18 18 1c000000 00*4 02000000 04000000"), invalid(12));
  EXPECT_EQ(fault_of(kController, "06 00 18 18 1a000000 00*8 02000000"), invalid(16));
  EXPECT_EQ(fault_of(kController, "06 00 18 18 18000000 00*8 00000000"), invalid(16)) << "empty";
  EXPECT_EQ(fault_of(with_digests(kHost, false, true), "07 02 18 18 1c000000 00*8 00000000"),
            invalid(16));
  EXPECT_EQ(fault_of(kHost, "07 00 18 18 00000000 00*8 e8ffffff"), invalid(4)) << "wraps around";
}

TEST(Pdu, HostDataAboveTheAnnouncedMaximumExceedTheLimit) {
  EXPECT_TRUE(check_pdu(padded("06 00 18 18 18100000 00*8 00100000"), kController));
  EXPECT_EQ(fault_of(kController, "06 00 18 18 1c100000 00*8 04100000"),
            (PduFault{FatalError::kLimitExceeded, 0}));
}

TEST(Pdu, ReadyToTransferAsksForSomething) {
  EXPECT_EQ(fault_of(kHost, "09 00 18 00 18000000 00*4 01000000 04000000"), invalid(12));
  EXPECT_EQ(fault_of(kHost, "09 00 18 00 18000000 00*4 00000000 00000000"), invalid(16));
  EXPECT_EQ(fault_of(kHost, "09 00 18 00 18000000 00*4 00000000 06000000"), invalid(16));
}

// ---- Transfers

Pdu built(const PduRules& rules, std::array<std::byte, kPduPrefixMax>& buffer, size_t size) {
  return check_pdu(Bytes(buffer).first(size), rules).value();
}

TEST(Transfer, HostDataStayInTheirR2tAndInOrder) {
  std::array<std::byte, kPduPrefixMax> buffer{};
  const auto check = [&](DataPiece piece, bool last, TransferWindow r2t) {
    const size_t size = build_h2c_data(buffer, {}, piece, last);
    return check_h2c_data(built(kController, buffer, size), 5, r2t);
  };
  const TransferWindow fresh{.begin = 0x1000, .next = 0x1000, .end = 0x1800};
  const TransferWindow half{.begin = 0x1000, .next = 0x1400, .end = 0x1800};
  const auto fault = [](FatalError error, uint32_t at = 0) {
    return std::unexpected(PduFault{error, at});
  };

  EXPECT_TRUE(check({.cid = 5, .offset = 0x1000, .length = 0x800}, true, fresh));
  EXPECT_TRUE(check({.cid = 5, .offset = 0x1000, .length = 0x400}, false, fresh));
  EXPECT_TRUE(check({.cid = 5, .offset = 0x1400, .length = 0x400}, true, half));
  EXPECT_EQ(check({.cid = 6, .offset = 0x1000, .length = 0x800}, true, fresh),
            fault(FatalError::kInvalidHeader, 8));
  EXPECT_EQ(check({.cid = 5, .offset = 0x0ffc, .length = 0x800}, true, fresh),
            fault(FatalError::kDataOutOfRange));
  EXPECT_EQ(check({.cid = 5, .offset = 0x1000, .length = 0x804}, true, fresh),
            fault(FatalError::kDataOutOfRange));
  EXPECT_EQ(check({.cid = 5, .offset = 0xfffffffc, .length = 0x800}, true, fresh),
            fault(FatalError::kDataOutOfRange));
  EXPECT_EQ(check({.cid = 5, .offset = 0x1400, .length = 0x400}, true, fresh),
            fault(FatalError::kSequence));
  EXPECT_EQ(check({.cid = 5, .offset = 0x1000, .length = 0x400}, false, half),
            fault(FatalError::kSequence));
  EXPECT_EQ(check({.cid = 5, .offset = 0x1000, .length = 0x400}, true, fresh),
            fault(FatalError::kSequence));
  EXPECT_EQ(check({.cid = 5, .offset = 0x1000, .length = 0x800}, false, fresh),
            fault(FatalError::kSequence));
}

TEST(Transfer, ControllerDataStayInTheirCommandAndInOrder) {
  std::array<std::byte, kPduPrefixMax> buffer{};
  const auto check = [&](DataPiece piece, TransferWindow command) {
    const size_t size = build_c2h_data(buffer, {}, piece, C2hEnd::kLast);
    return check_c2h_data(built(kHost, buffer, size), command);
  };
  const TransferWindow window{.begin = 0, .next = 0x400, .end = 0x1000};
  EXPECT_TRUE(check({.offset = 0x400, .length = 0xc00}, window));
  EXPECT_TRUE(check({.offset = 0x400, .length = 0x400}, window)) << "short of the end";
  EXPECT_EQ(check({.offset = 0x400, .length = 0xc04}, window).error(),
            (PduFault{FatalError::kDataOutOfRange, 0}));
  EXPECT_EQ(check({.offset = 0x800, .length = 0x400}, window).error(), kSequenceError);
  EXPECT_EQ(check({.offset = 0, .length = 0x400}, window).error(), kSequenceError);
}

TEST(Transfer, R2tsGoOnWhereTheLastOneEndedAndStayInTheirLimit) {
  std::array<std::byte, kPduPrefixMax> buffer{};
  const auto check = [&](DataPiece piece, R2tState state) {
    const size_t size = build_r2t(buffer, {}, piece);
    return check_r2t(built(kHost, buffer, size), state);
  };
  const R2tState state{.next = 0x1000, .data_length = 0x2000, .outstanding = 0, .r2t_max = 0};
  EXPECT_TRUE(check({.offset = 0x1000, .length = 0x1000}, state));
  EXPECT_EQ(check({.offset = 0x0800, .length = 0x800}, state).error(), kSequenceError);
  EXPECT_EQ(check({.offset = 0x1000, .length = 0x1004}, state).error(), invalid(16));
  R2tState busy = state;
  busy.outstanding = 1;
  EXPECT_EQ(check({.offset = 0x1000, .length = 0x1000}, busy).error(),
            (PduFault{FatalError::kLimitExceeded, 0}));
  busy.r2t_max = 1;
  EXPECT_TRUE(check({.offset = 0x1000, .length = 0x1000}, busy));
}

TEST(Transfer, UnknownIdsHaveTheirOffsets) {
  EXPECT_EQ(unknown_cid_fault(), invalid(8));
  EXPECT_EQ(unknown_ttag_fault(), invalid(10));
  EXPECT_EQ(sequence_fault(), kSequenceError);
}

TEST(PduFault, PrintsWhatAndWhere) {
  EXPECT_EQ(text(invalid(4), End::kHost), "invalid PDU header field at byte 4");
  EXPECT_EQ(text(unsupported(10), End::kHost), "unsupported parameter at byte 10");
  EXPECT_EQ(text({FatalError::kHeaderDigest, 0xab}, End::kHost),
            "header digest error, received 000000abh");
  EXPECT_EQ(text({FatalError::kLimitExceeded, 0}, End::kHost), "R2T limit exceeded");
  EXPECT_EQ(text({FatalError::kLimitExceeded, 0}, End::kController),
            "data transfer limit exceeded");
  EXPECT_EQ(text({FatalError{9}, 0}, End::kHost), "unknown fatal error 09h");
  EXPECT_EQ(name(PduType::kC2hData), "C2HData");
  EXPECT_EQ(name(PduType{8}), "unknown");
}

}  // namespace
}  // namespace cairn::nvme
