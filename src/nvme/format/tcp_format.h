// SPDX-License-Identifier: Apache-2.0
// NVMe/TCP protocol data units (NVMe/TCP 1.0, 3.6.2): the headers that frame everything on the
// wire.
//
// A PDU is its header (HLEN bytes), a header digest if in use, padding, data from byte PDO on, and
// a data digest if in use; PLEN bytes together. pdu.h checks received headers, pdu_build.h writes
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "nvme/format/command_format.h"
#include "nvme/format/field.h"

namespace cairn::nvme {

// Bit 0 is the direction: 0 goes to the controller, 1 to the host (3.3, figure 10).
enum class PduType : uint8_t {
  kIcReq = 0x00,
  kIcResp = 0x01,
  kH2cTermReq = 0x02,
  kC2hTermReq = 0x03,
  kCapsuleCmd = 0x04,
  kCapsuleResp = 0x05,
  kH2cData = 0x06,
  kC2hData = 0x07,
  kR2t = 0x09,
};

// The specification's name: "CapsuleCmd"; "unknown" for reserved types.
std::string_view name(PduType type);

// FLAGS. Which of them a PDU has depends on its type; the others are reserved.
struct PduFlags {
  static constexpr uint8_t kHeaderDigest = 1 << 0;  // HDGSTF
  static constexpr uint8_t kDataDigest = 1 << 1;    // DDGSTF
  static constexpr uint8_t kLast = 1 << 2;          // LAST_PDU
  static constexpr uint8_t kSuccess = 1 << 3;       // SUCCESS: no response capsule follows
};

// CRC32C of the header, or of the data.
inline constexpr uint32_t kDigestSize = 4;

// Common header (3.6.2.1).
struct CommonHeader {
  PduType type{};             // PDU-Type
  uint8_t flags = 0;          // FLAGS
  uint8_t header_length = 0;  // HLEN: without the digest
  uint8_t data_offset = 0;    // PDO: from the start of the PDU
  Le32 length;                // PLEN: all of the PDU
};
static_assert(sizeof(CommonHeader) == 8 && std::is_trivially_copyable_v<CommonHeader>);
static_assert(offsetof(CommonHeader, flags) == 1);
static_assert(offsetof(CommonHeader, header_length) == 2);
static_assert(offsetof(CommonHeader, data_offset) == 3);
static_assert(offsetof(CommonHeader, length) == 4);

// DGST of ICReq and ICResp.
struct DigestEnable {
  static constexpr uint8_t kHeader = 1 << 0;  // HDGST_ENABLE
  static constexpr uint8_t kData = 1 << 1;    // DDGST_ENABLE
};

// HPDA and CPDA: dwords, zero-based. 31 stands for 128 bytes.
inline constexpr uint8_t kDataAlignmentMax = 31;
constexpr uint32_t alignment_bytes(uint8_t pda) { return (pda + 1u) * 4; }

// Initialize Connection Request (3.6.2.2).
struct IcReq {
  CommonHeader common;
  Le16 format_version;         // PFV: 0
  uint8_t data_alignment = 0;  // HPDA: of data sent to the host
  uint8_t digests = 0;         // DGST: asked for
  Le32 r2t_max;                // MAXR2T: outstanding for one command, zero-based
  Reserved<112> unused16{};

  static constexpr bool describes(PduType type) { return type == PduType::kIcReq; }
};
static_assert(sizeof(IcReq) == 128 && std::is_trivially_copyable_v<IcReq>);
static_assert(offsetof(IcReq, format_version) == 8);
static_assert(offsetof(IcReq, data_alignment) == 10);
static_assert(offsetof(IcReq, digests) == 11);
static_assert(offsetof(IcReq, r2t_max) == 12);

// Initialize Connection Response (3.6.2.3).
struct IcResp {
  CommonHeader common;
  Le16 format_version;         // PFV: 0
  uint8_t data_alignment = 0;  // CPDA: of data sent to the controller
  uint8_t digests = 0;         // DGST: in use from now on
  Le32 h2c_data_max;           // MAXH2CDATA: bytes of data in one H2CData
  Reserved<112> unused16{};

  static constexpr bool describes(PduType type) { return type == PduType::kIcResp; }
};
static_assert(sizeof(IcResp) == 128 && std::is_trivially_copyable_v<IcResp>);
static_assert(offsetof(IcResp, format_version) == 8);
static_assert(offsetof(IcResp, data_alignment) == 10);
static_assert(offsetof(IcResp, digests) == 11);
static_assert(offsetof(IcResp, h2c_data_max) == 12);

// MAXH2CDATA should be no less.
inline constexpr uint32_t kH2cDataMaxFloor = 4096;

// FES: why a connection is terminated (3.6.2.4, 3.6.2.5).
// As wide as the field, so that any value of it survives the cast.
enum class FatalError : uint16_t {  // NOLINT(performance-enum-size)
  kNone = 0x00,                     // reserved; here: close without sending a TermReq
  kInvalidHeader = 0x01,            // FEI: offset of the lowest wrong field
  kSequence = 0x02,
  kHeaderDigest = 0x03,          // FEI: the digest received
  kDataOutOfRange = 0x04,        // data beyond what was asked for
  kLimitExceeded = 0x05,         // from a controller: MAXH2CDATA; from a host: MAXR2T
  kUnsupportedParameter = 0x06,  // FEI: offset of the lowest unsupported field
};

// Terminate Connection Request, either way (3.6.2.4, 3.6.2.5). The header it complains about
// follows as data, without PDO; it has no digests.
struct TermReq {
  CommonHeader common;
  Le16 fatal_error;  // FES
  Le32 information;  // FEI
  Reserved<10> unused14{};

  constexpr FatalError error() const { return static_cast<FatalError>(fatal_error.value()); }
  static constexpr bool describes(PduType type) {
    return type == PduType::kH2cTermReq || type == PduType::kC2hTermReq;
  }
};
static_assert(sizeof(TermReq) == 24 && std::is_trivially_copyable_v<TermReq>);
static_assert(offsetof(TermReq, fatal_error) == 8);
static_assert(offsetof(TermReq, information) == 10);

inline constexpr uint32_t kTermReqDataMax = 128;
inline constexpr uint32_t kTermReqMax = sizeof(TermReq) + kTermReqDataMax;

// Command Capsule (3.6.2.6).
struct CapsuleCmd {
  CommonHeader common;
  Sqe sqe;  // CCSQE

  static constexpr bool describes(PduType type) { return type == PduType::kCapsuleCmd; }
};
static_assert(sizeof(CapsuleCmd) == 72 && offsetof(CapsuleCmd, sqe) == 8);

// In-capsule data that every controller takes with Fabrics and admin commands (3.3.1, figure 11).
inline constexpr uint32_t kAdminInCapsuleMax = 8192;

// Response Capsule (3.6.2.7).
struct CapsuleResp {
  CommonHeader common;
  Cqe cqe;  // RCCQE

  static constexpr bool describes(PduType type) { return type == PduType::kCapsuleResp; }
};
static_assert(sizeof(CapsuleResp) == 24 && offsetof(CapsuleResp, cqe) == 8);

// Data Transfer, either way (3.6.2.8, 3.6.2.9).
struct DataPdu {
  CommonHeader common;
  Le16 cid;     // CCCID: of the command
  Le16 ttag;    // TTAG: of the R2T that H2CData answers; reserved in C2HData
  Le32 offset;  // DATAO: from the start of the command's data; a multiple of 4
  Le32 length;  // DATAL: a multiple of 4
  Reserved<4> unused20{};

  static constexpr bool describes(PduType type) {
    return type == PduType::kH2cData || type == PduType::kC2hData;
  }
};
static_assert(sizeof(DataPdu) == 24 && std::is_trivially_copyable_v<DataPdu>);
static_assert(offsetof(DataPdu, cid) == 8);
static_assert(offsetof(DataPdu, ttag) == 10);
static_assert(offsetof(DataPdu, offset) == 12);
static_assert(offsetof(DataPdu, length) == 16);

// Ready to Transfer (3.6.2.10).
struct R2t {
  CommonHeader common;
  Le16 cid;     // CCCID: of the command
  Le16 ttag;    // TTAG: the controller's choice
  Le32 offset;  // R2TO: from the start of the command's data; a multiple of 4
  Le32 length;  // R2TL: a multiple of 4
  Reserved<4> unused20{};

  static constexpr bool describes(PduType type) { return type == PduType::kR2t; }
};
static_assert(sizeof(R2t) == 24 && std::is_trivially_copyable_v<R2t>);
static_assert(offsetof(R2t, cid) == 8);
static_assert(offsetof(R2t, ttag) == 10);
static_assert(offsetof(R2t, offset) == 12);
static_assert(offsetof(R2t, length) == 16);

// HLEN of a type; 0 for reserved types.
constexpr uint8_t header_length_of(PduType type) {
  switch (type) {
    case PduType::kIcReq:
    case PduType::kIcResp:
      return sizeof(IcReq);
    case PduType::kCapsuleCmd:
      return sizeof(CapsuleCmd);
    case PduType::kH2cTermReq:
    case PduType::kC2hTermReq:
    case PduType::kCapsuleResp:
    case PduType::kH2cData:
    case PduType::kC2hData:
    case PduType::kR2t:
      return sizeof(DataPdu);
  }
  return 0;
}

// The longest header with its digest: what a receiver holds before it can judge any PDU.
inline constexpr size_t kHeaderMax = sizeof(IcReq);

}  // namespace cairn::nvme
