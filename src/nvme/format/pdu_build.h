// SPDX-License-Identifier: Apache-2.0
// Writing PDUs into a caller's buffer: everything of a PDU but its data.
//
// A function returns how many bytes it wrote: header, header digest, and zeroes up to the data's
// place. The caller sends those, then the data, then the data digest if the connection has one.
// Nothing is allocated; `to` holds kPduPrefixMax bytes, kTermReqMax for a TermReq, or just enough
// (CHECK).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "nvme/format/command_format.h"
#include "nvme/format/pdu.h"
#include "nvme/format/tcp_format.h"

namespace cairn::nvme {

// The most that comes before a PDU's data: a command with its digest, padded to 72 bytes twice.
inline constexpr size_t kPduPrefixMax = 144;

// How a sender writes on an established connection.
struct PduStyle {
  bool header_digest = false;
  bool data_digest = false;
  uint8_t data_alignment = 0;  // what the receiver announced as HPDA or CPDA
};

struct IcReqOptions {
  uint8_t data_alignment = 0;  // HPDA
  bool header_digest = false;
  bool data_digest = false;
  uint32_t r2t_max = 0;  // MAXR2T: zero-based
};
size_t build_ic_req(MutableBytes to, const IcReqOptions& options);

struct IcRespOptions {
  uint8_t data_alignment = 0;  // CPDA
  bool header_digest = false;
  bool data_digest = false;
  uint32_t h2c_data_max = 0;  // MAXH2CDATA: a multiple of 4
};
size_t build_ic_resp(MutableBytes to, const IcRespOptions& options);

// Tells the peer of `fault`, which is not kNone (CHECK), with the header that had it: as much of it
// as was received, of which kTermReqDataMax bytes are sent.
size_t build_term_req(MutableBytes to, End sender, PduFault fault, Bytes faulty_header);

// A command, with `in_capsule_length` bytes of data to follow, perhaps none.
size_t build_capsule_cmd(MutableBytes to, const PduStyle& style, const Sqe& sqe,
                         uint32_t in_capsule_length);

size_t build_capsule_resp(MutableBytes to, const PduStyle& style, const Cqe& cqe);

// A piece of a command's data; `offset` and `length` are multiples of 4, `length` above 0.
struct DataPiece {
  uint16_t cid = 0;
  uint16_t ttag = 0;  // H2CData and R2T only
  uint32_t offset = 0;
  uint32_t length = 0;
};
size_t build_h2c_data(MutableBytes to, const PduStyle& style, const DataPiece& piece, bool last);

// How a C2HData stands in its command: more follow, it is the last, or it is the last and stands
// for the response capsule too.
enum class C2hEnd : uint8_t { kMore, kLast, kLastWithSuccess };
size_t build_c2h_data(MutableBytes to, const PduStyle& style, const DataPiece& piece, C2hEnd end);

size_t build_r2t(MutableBytes to, const PduStyle& style, const DataPiece& piece);

// The digest of data as it goes onto the wire behind them.
std::array<std::byte, kDigestSize> data_digest(std::span<const Bytes> data);

}  // namespace cairn::nvme
