// SPDX-License-Identifier: Apache-2.0
#include "nvme/format/pdu_build.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "nvme/format/command_format.h"
#include "nvme/format/pdu.h"
#include "nvme/format/tcp_format.h"

namespace cairn::nvme {

namespace {

constexpr uint32_t prefix_size(uint32_t header_length, const PduStyle& style) {
  const uint32_t end = header_length + (style.header_digest ? kDigestSize : 0);
  return static_cast<uint32_t>(align_up(end, alignment_bytes(style.data_alignment)));
}

constexpr uint32_t longest_prefix() {
  uint32_t longest = 0;
  for (uint8_t pda = 0; pda <= kDataAlignmentMax; ++pda) {
    for (bool digest : {false, true}) {
      const PduStyle style{.header_digest = digest, .data_alignment = pda};
      longest = std::max(longest, prefix_size(sizeof(CapsuleCmd), style));
      longest = std::max(longest, prefix_size(sizeof(DataPdu), style));
    }
  }
  return longest;
}
static_assert(longest_prefix() == kPduPrefixMax);
static_assert(kPduPrefixMax >= sizeof(IcReq) && kPduPrefixMax <= UINT8_MAX);

// Fills in the common header of `pdu`, whose type and type's own flags are set, and writes it with
// its digest and padding.
template <class Layout>
size_t finish(MutableBytes to, const PduStyle& style, Layout& pdu, uint32_t data_length) {
  CommonHeader& common = pdu.common;
  common.header_length = sizeof(Layout);
  uint32_t prefix = sizeof(Layout);
  if (style.header_digest) {
    common.flags |= PduFlags::kHeaderDigest;
    prefix += kDigestSize;
  }
  uint32_t after_data = 0;
  if (data_length > 0) {
    prefix = prefix_size(sizeof(Layout), style);
    common.data_offset = static_cast<uint8_t>(prefix);
    if (style.data_digest) {
      common.flags |= PduFlags::kDataDigest;
      after_data = kDigestSize;
    }
  }
  CHECK(data_length <= UINT32_MAX - prefix - after_data);
  common.length = prefix + data_length + after_data;

  CHECK(to.size() >= prefix);
  std::ranges::fill(to.subspan(sizeof(Layout), prefix - sizeof(Layout)), std::byte{0});
  store(to, pdu);
  if (style.header_digest) {
    store(to.subspan(sizeof(Layout)), Le32(crc32c(to.first(sizeof(Layout)))));
  }
  return prefix;
}

uint8_t digest_bits(bool header, bool data) {
  return static_cast<uint8_t>((header ? DigestEnable::kHeader : 0) |
                              (data ? DigestEnable::kData : 0));
}

}  // namespace

size_t build_ic_req(MutableBytes to, const IcReqOptions& options) {
  IcReq pdu{.common = {.type = PduType::kIcReq}};
  pdu.data_alignment = options.data_alignment;
  pdu.digests = digest_bits(options.header_digest, options.data_digest);
  pdu.r2t_max = options.r2t_max;
  return finish(to, {}, pdu, 0);
}

size_t build_ic_resp(MutableBytes to, const IcRespOptions& options) {
  IcResp pdu{.common = {.type = PduType::kIcResp}};
  pdu.data_alignment = options.data_alignment;
  pdu.digests = digest_bits(options.header_digest, options.data_digest);
  pdu.h2c_data_max = options.h2c_data_max;
  return finish(to, {}, pdu, 0);
}

size_t build_term_req(MutableBytes to, End sender, PduFault fault, Bytes faulty_header) {
  CHECK(fault.error != FatalError::kNone);
  const Bytes data = faulty_header.first(std::min<size_t>(faulty_header.size(), kTermReqDataMax));
  TermReq pdu;
  pdu.common.type = sender == End::kHost ? PduType::kH2cTermReq : PduType::kC2hTermReq;
  pdu.common.header_length = sizeof(TermReq);
  pdu.common.length = static_cast<uint32_t>(sizeof(TermReq) + data.size());
  pdu.fatal_error = static_cast<uint16_t>(fault.error);
  pdu.information = fault.information;
  CHECK(to.size() >= pdu.common.length);
  store(to, pdu);
  std::ranges::copy(data, to.subspan(sizeof(TermReq)).begin());
  return pdu.common.length;
}

size_t build_capsule_cmd(MutableBytes to, const PduStyle& style, const Sqe& sqe,
                         uint32_t in_capsule_length) {
  CapsuleCmd pdu{.common = {.type = PduType::kCapsuleCmd}, .sqe = sqe};
  return finish(to, style, pdu, in_capsule_length);
}

size_t build_capsule_resp(MutableBytes to, const PduStyle& style, const Cqe& cqe) {
  CapsuleResp pdu{.common = {.type = PduType::kCapsuleResp}, .cqe = cqe};
  return finish(to, style, pdu, 0);
}

size_t build_h2c_data(MutableBytes to, const PduStyle& style, const DataPiece& piece, bool last) {
  CHECK(piece.length > 0);
  DataPdu pdu{.common = {.type = PduType::kH2cData, .flags = last ? PduFlags::kLast : uint8_t{0}},
              .cid = piece.cid,
              .ttag = piece.ttag,
              .offset = piece.offset,
              .length = piece.length};
  return finish(to, style, pdu, piece.length);
}

size_t build_c2h_data(MutableBytes to, const PduStyle& style, const DataPiece& piece, C2hEnd end) {
  CHECK(piece.length > 0);
  DataPdu pdu{.common = {.type = PduType::kC2hData},
              .cid = piece.cid,
              .offset = piece.offset,
              .length = piece.length};
  if (end != C2hEnd::kMore) pdu.common.flags |= PduFlags::kLast;
  if (end == C2hEnd::kLastWithSuccess) pdu.common.flags |= PduFlags::kSuccess;
  return finish(to, style, pdu, piece.length);
}

size_t build_r2t(MutableBytes to, const PduStyle& style, const DataPiece& piece) {
  CHECK(piece.length > 0);
  R2t pdu{.common = {.type = PduType::kR2t},
          .cid = piece.cid,
          .ttag = piece.ttag,
          .offset = piece.offset,
          .length = piece.length};
  return finish(to, style, pdu, 0);
}

std::array<std::byte, kDigestSize> data_digest(std::span<const Bytes> data) {
  uint32_t crc = 0;
  for (Bytes piece : data) crc = crc32c(piece, crc);
  return std::bit_cast<std::array<std::byte, kDigestSize>>(Le32(crc));
}

}  // namespace cairn::nvme
