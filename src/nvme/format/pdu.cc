// SPDX-License-Identifier: Apache-2.0
#include "nvme/format/pdu.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "nvme/format/command_format.h"
#include "nvme/format/field.h"
#include "nvme/format/tcp_format.h"

namespace cairn::nvme {

static_assert(sizeof(CapsuleCmd) + kDigestSize <= kHeaderMax);

std::string_view name(PduType type) {
  switch (type) {
    case PduType::kIcReq:
      return "ICReq";
    case PduType::kIcResp:
      return "ICResp";
    case PduType::kH2cTermReq:
      return "H2CTermReq";
    case PduType::kC2hTermReq:
      return "C2HTermReq";
    case PduType::kCapsuleCmd:
      return "CapsuleCmd";
    case PduType::kCapsuleResp:
      return "CapsuleResp";
    case PduType::kH2cData:
      return "H2CData";
    case PduType::kC2hData:
      return "C2HData";
    case PduType::kR2t:
      return "R2T";
  }
  return "unknown";
}

std::string text(PduFault fault, End reporter) {
  switch (fault.error) {
    case FatalError::kNone:
      return "malformed termination request";
    case FatalError::kInvalidHeader:
      return fmt::format("invalid PDU header field at byte {}", fault.information);
    case FatalError::kSequence:
      return "PDU sequence error";
    case FatalError::kHeaderDigest:
      return fmt::format("header digest error, received {:08x}h", fault.information);
    case FatalError::kDataOutOfRange:
      return "data transfer out of range";
    case FatalError::kLimitExceeded:
      return reporter == End::kController ? "data transfer limit exceeded" : "R2T limit exceeded";
    case FatalError::kUnsupportedParameter:
      return fmt::format("unsupported parameter at byte {}", fault.information);
  }
  return fmt::format("unknown fatal error {:02x}h", static_cast<uint16_t>(fault.error));
}

namespace {

std::unexpected<PduFault> invalid(size_t offset) {
  return std::unexpected(PduFault{FatalError::kInvalidHeader, static_cast<uint32_t>(offset)});
}
std::unexpected<PduFault> unsupported(size_t offset) {
  return std::unexpected(
      PduFault{FatalError::kUnsupportedParameter, static_cast<uint32_t>(offset)});
}
std::unexpected<PduFault> broken(FatalError error) { return std::unexpected(PduFault{error, 0}); }

// What a type alone says of its PDUs.
struct Kind {
  uint8_t header_length;  // HLEN; 0 for reserved types
  bool initialize;        // ICReq, ICResp
  bool terminate;         // H2CTermReq, C2HTermReq
  bool command;           // CapsuleCmd: may have data
  bool data;              // H2CData, C2HData: has data
};

constexpr auto kKinds = [] {
  std::array<Kind, 16> kinds{};
  for (size_t i = 0; i < kinds.size(); ++i) {
    const auto type = static_cast<PduType>(i);
    kinds[i] = {.header_length = header_length_of(type),
                .initialize = IcReq::describes(type) || IcResp::describes(type),
                .terminate = TermReq::describes(type),
                .command = CapsuleCmd::describes(type),
                .data = DataPdu::describes(type)};
  }
  return kinds;
}();

Kind kind_of(PduType type) {
  const auto index = static_cast<uint8_t>(type);
  return index < kKinds.size() ? kKinds[index] : Kind{};
}

bool goes_to(End receiver, PduType type) {
  const bool to_host = (static_cast<uint8_t>(type) & 1) != 0;
  return to_host == (receiver == End::kHost);
}

// What the lengths and flags of a common header say of the parts of its PDU.
struct Shape {
  uint32_t header_end;  // header and digest
  bool has_data;
  bool data_digest;
};

Shape shape_of(const CommonHeader& common, const Kind& kind, const PduRules& rules) {
  const bool digest = rules.header_digest && !kind.initialize && !kind.terminate;
  const uint32_t header_end = kind.header_length + (digest ? kDigestSize : 0);
  // A command without data is told by its length; data PDUs have data, or are at fault.
  const bool has_data = kind.data || (kind.command && common.length > header_end);
  return {.header_end = header_end,
          .has_data = has_data,
          .data_digest = has_data && (common.flags & PduFlags::kDataDigest) != 0};
}

// FLAGS as 3.3.1.1 and 3.3.2.1 demand them.
bool flags_are_sound(const CommonHeader& common, const Kind& kind, const Shape& shape,
                     const PduRules& rules) {
  if (kind.initialize) return true;
  const bool header_digest = (common.flags & PduFlags::kHeaderDigest) != 0;
  if (header_digest != rules.header_digest) return false;
  if (shape.has_data && shape.data_digest != rules.data_digest) return false;
  constexpr uint8_t kEnd = PduFlags::kLast | PduFlags::kSuccess;
  return common.type != PduType::kC2hData || (common.flags & kEnd) != PduFlags::kSuccess;
}

// PDO. A command without data may leave it 0, which is a multiple of everything.
bool data_offset_is_sound(const CommonHeader& common, const Kind& kind, const Shape& shape,
                          const PduRules& rules) {
  if (!kind.command && !kind.data) return true;
  if (!is_aligned(common.data_offset, alignment_bytes(rules.data_alignment))) return false;
  if (!shape.has_data) return true;
  if (common.data_offset < shape.header_end) return false;
  return common.length < shape.header_end || common.data_offset <= common.length;
}

// PLEN, PDO being sound.
bool length_is_sound(const CommonHeader& common, const Kind& kind, const Shape& shape) {
  if (!shape.has_data) return common.length == shape.header_end;
  const uint32_t around_data = common.data_offset + (shape.data_digest ? kDigestSize : 0);
  // Padding without data is no command; of a data PDU, DATAL is what would be wrong then.
  return kind.data ? common.length >= around_data : common.length > around_data;
}

PduResult<Shape> check_common(const CommonHeader& common, const PduRules& rules) {
  const Kind kind = kind_of(common.type);
  if (kind.header_length == 0 || !goes_to(rules.receiver, common.type)) {
    return invalid(offsetof(CommonHeader, type));
  }
  const Shape shape = shape_of(common, kind, rules);
  if (kind.terminate) {
    // It ends the connection in any case; a malformed one is not answered (3.5).
    if (common.header_length != sizeof(TermReq) || common.length < sizeof(TermReq) ||
        common.length > kTermReqMax) {
      return broken(FatalError::kNone);
    }
    return shape;
  }
  if (kind.initialize == rules.established) return broken(FatalError::kSequence);

  if (!flags_are_sound(common, kind, shape, rules)) return invalid(offsetof(CommonHeader, flags));
  if (common.header_length != kind.header_length) {
    return invalid(offsetof(CommonHeader, header_length));
  }
  if (!data_offset_is_sound(common, kind, shape, rules)) {
    return invalid(offsetof(CommonHeader, data_offset));
  }
  if (!length_is_sound(common, kind, shape)) return invalid(offsetof(CommonHeader, length));
  return shape;
}

PduResult<> check_ic_req(const IcReq& request, const PduRules& rules) {
  if (request.format_version != 0) return invalid(offsetof(IcReq, format_version));
  if (request.data_alignment > kDataAlignmentMax) return invalid(offsetof(IcReq, data_alignment));
  if (request.data_alignment > rules.peer_alignment_max) {
    return unsupported(offsetof(IcReq, data_alignment));
  }
  return {};
}

PduResult<> check_ic_resp(const IcResp& response, const PduRules& rules) {
  if (response.format_version != 0) return invalid(offsetof(IcResp, format_version));
  if (response.data_alignment > kDataAlignmentMax) return invalid(offsetof(IcResp, data_alignment));
  // A digest that was not asked for must not be in use (3.3.1.1).
  const bool header_digest = (response.digests & DigestEnable::kHeader) != 0;
  const bool data_digest = (response.digests & DigestEnable::kData) != 0;
  if ((header_digest && !rules.header_digest) || (data_digest && !rules.data_digest)) {
    return invalid(offsetof(IcResp, digests));
  }
  if (!is_aligned(response.h2c_data_max, 4)) return invalid(offsetof(IcResp, h2c_data_max));
  if (response.data_alignment > rules.peer_alignment_max) {
    return unsupported(offsetof(IcResp, data_alignment));
  }
  if (response.h2c_data_max == 0) return unsupported(offsetof(IcResp, h2c_data_max));
  return {};
}

PduResult<> check_data(const DataPdu& data, const Pdu& pdu, const PduRules& rules) {
  if (data.length != pdu.data_length) return invalid(offsetof(CommonHeader, length));
  if (!is_aligned(data.offset, 4)) return invalid(offsetof(DataPdu, offset));
  if (data.length == 0 || !is_aligned(data.length, 4)) return invalid(offsetof(DataPdu, length));
  if (pdu.type == PduType::kH2cData && data.length > rules.h2c_data_max) {
    return broken(FatalError::kLimitExceeded);
  }
  return {};
}

PduResult<> check_request(const R2t& request) {
  if (!is_aligned(request.offset, 4)) return invalid(offsetof(R2t, offset));
  if (request.length == 0 || !is_aligned(request.length, 4)) return invalid(offsetof(R2t, length));
  return {};
}

PduResult<> check_command(const Pdu& pdu, const PduRules& rules) {
  if (pdu.data_length <= rules.in_capsule_max) return {};
  if (pdu.data_length <= kAdminInCapsuleMax && pdu.as<CapsuleCmd>().sqe.is_fabrics()) return {};
  return invalid(offsetof(CommonHeader, length));
}

// What only the header behind the common part can tell.
PduResult<> check_specific(const Pdu& pdu, const PduRules& rules) {
  switch (pdu.type) {
    case PduType::kIcReq:
      return check_ic_req(pdu.as<IcReq>(), rules);
    case PduType::kIcResp:
      return check_ic_resp(pdu.as<IcResp>(), rules);
    case PduType::kCapsuleCmd:
      return check_command(pdu, rules);
    case PduType::kH2cData:
    case PduType::kC2hData:
      return check_data(pdu.as<DataPdu>(), pdu, rules);
    case PduType::kR2t:
      return check_request(pdu.as<R2t>());
    case PduType::kH2cTermReq:
    case PduType::kC2hTermReq:
    case PduType::kCapsuleResp:
      return {};
  }
  return invalid(offsetof(CommonHeader, type));
}

// Whether `digest` is the CRC32C of the bytes that gave `crc`.
bool digest_is(uint32_t crc, Bytes digest) { return load<Le32>(digest) == crc; }

// Whether [offset, offset + length) leaves a window.
bool leaves(const TransferWindow& window, const DataPdu& data) {
  return data.offset < window.begin || uint64_t{data.offset} + data.length > window.end;
}

}  // namespace

CommonHeader decode_common_header(std::span<const std::byte, sizeof(CommonHeader)> bytes) {
  return load<CommonHeader>(bytes);
}

PduResult<uint32_t> check_common_header(const CommonHeader& common, const PduRules& rules) {
  const PduResult<Shape> shape = check_common(common, rules);
  if (!shape) return std::unexpected(shape.error());
  return shape->header_end;
}

PduResult<Pdu> check_pdu(Bytes header, const PduRules& rules) {
  CHECK(header.size() >= sizeof(CommonHeader));
  const CommonHeader common = load<CommonHeader>(header);
  const PduResult<Shape> shape = check_common(common, rules);
  if (!shape) return std::unexpected(shape.error());
  CHECK(header.size() >= shape->header_end);

  Pdu pdu{.type = common.type,
          .flags = common.flags,
          .data_digest = shape->data_digest,
          .length = common.length,
          .header_size = shape->header_end,
          .data_offset = shape->has_data ? common.data_offset : shape->header_end,
          .header = header.first(common.header_length)};
  pdu.data_length = pdu.length - pdu.data_offset - (pdu.data_digest ? kDigestSize : 0);

  if (pdu.header_size > pdu.header.size()) {
    const Bytes digest = header.subspan(pdu.header.size(), kDigestSize);
    if (!digest_is(crc32c(pdu.header), digest)) {
      return std::unexpected(PduFault{FatalError::kHeaderDigest, load<Le32>(digest)});
    }
  }
  const PduResult<> specific = check_specific(pdu, rules);
  if (!specific) return std::unexpected(specific.error());
  return pdu;
}

PduResult<> check_h2c_data(const Pdu& pdu, uint16_t cid, TransferWindow r2t) {
  const auto data = pdu.as<DataPdu>();
  if (data.cid != cid) return invalid(offsetof(DataPdu, cid));
  if (leaves(r2t, data)) return broken(FatalError::kDataOutOfRange);
  if (data.offset != r2t.next) return broken(FatalError::kSequence);
  const bool ends = data.offset + data.length == r2t.end;
  if (pdu.last() != ends) return broken(FatalError::kSequence);
  return {};
}

PduResult<> check_c2h_data(const Pdu& pdu, TransferWindow command) {
  const auto data = pdu.as<DataPdu>();
  if (leaves(command, data)) return broken(FatalError::kDataOutOfRange);
  if (data.offset != command.next) return broken(FatalError::kSequence);
  return {};
}

PduResult<> check_r2t(const Pdu& pdu, R2tState state) {
  const auto request = pdu.as<R2t>();
  if (state.outstanding > state.r2t_max) return broken(FatalError::kLimitExceeded);
  if (request.offset != state.next) return broken(FatalError::kSequence);
  if (uint64_t{request.offset} + request.length > state.data_length) {
    return invalid(offsetof(R2t, length));
  }
  return {};
}

PduFault unknown_cid_fault() { return {FatalError::kInvalidHeader, offsetof(DataPdu, cid)}; }
PduFault unknown_ttag_fault() { return {FatalError::kInvalidHeader, offsetof(DataPdu, ttag)}; }
PduFault sequence_fault() { return {FatalError::kSequence, 0}; }

bool data_digest_matches(std::span<const Bytes> data, Bytes digest) {
  CHECK(digest.size() >= kDigestSize);
  uint32_t crc = 0;
  for (Bytes piece : data) crc = crc32c(piece, crc);
  return digest_is(crc, digest);
}

}  // namespace cairn::nvme
