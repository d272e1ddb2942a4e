// SPDX-License-Identifier: Apache-2.0
// Any bytes on an NVMe/TCP connection, at either end, are sound PDUs up to one fault that names a
// place inside its header; what is sound builds and reads the same again, and so do the commands
// inside.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "nvme/format/command_format.h"
#include "nvme/format/copy_format.h"
#include "nvme/format/data_pointer.h"
#include "nvme/format/dsm_format.h"
#include "nvme/format/feature_format.h"
#include "nvme/format/field.h"
#include "nvme/format/identify_format.h"
#include "nvme/format/io_format.h"
#include "nvme/format/log_format.h"
#include "nvme/format/pdu.h"
#include "nvme/format/pdu_build.h"
#include "nvme/format/reservation_format.h"
#include "nvme/format/status_format.h"
#include "nvme/format/tcp_format.h"

namespace cairn::nvme {
namespace {

// The first bytes of an input choose who receives the rest, and how.
constexpr size_t kRulesSize = 4;

PduRules rules_from(Bytes bytes) {
  const auto at = [&](size_t i) { return std::to_integer<uint8_t>(bytes[i]); };
  return {.receiver = bit<0>(at(0)) ? End::kHost : End::kController,
          .established = bit<1>(at(0)),
          .header_digest = bit<2>(at(0)),
          .data_digest = bit<3>(at(0)),
          .data_alignment = bits<4, 0>(at(1)),
          .peer_alignment_max = bit<5>(at(1)) ? uint8_t{0} : kDataAlignmentMax,
          .h2c_data_max = (at(2) + 1u) * 64,
          .in_capsule_max = at(3) * 64u};
}

End other(End end) { return end == End::kHost ? End::kController : End::kHost; }

// The peer understands what a fault is answered with.
void check_fault(const PduFault& fault, const PduRules& rules, Bytes header) {
  const uint8_t length = header_length_of(static_cast<PduType>(header[0]));
  if (fault.error == FatalError::kInvalidHeader ||
      fault.error == FatalError::kUnsupportedParameter) {
    CHECK(fault.information < std::max<size_t>(length, sizeof(CommonHeader)));
  } else if (fault.error != FatalError::kHeaderDigest) {
    CHECK(fault.information == 0);
  }
  CHECK(!text(fault, rules.receiver).empty());
  if (fault.error == FatalError::kNone) return;
  std::array<std::byte, kTermReqMax> buffer;
  const size_t size = build_term_req(buffer, rules.receiver, fault, header);
  const PduRules at_peer{.receiver = other(rules.receiver), .established = rules.established};
  const PduResult<Pdu> term = check_pdu(Bytes(buffer).first(size), at_peer);
  CHECK(term.has_value());
  CHECK(term->as<TermReq>().error() == fault.error);
  CHECK(term->as<TermReq>().information == fault.information);
  CHECK(term->data_length == std::min<size_t>(header.size(), kTermReqDataMax));
}

template <class Fields>
void check_fields(const Sqe& sqe) {
  const Fields fields = Fields::decode(sqe);
  Sqe again;
  fields.encode(again);
  CHECK(Fields::decode(again) == fields);
}

void check_command(const Sqe& sqe, uint32_t in_capsule_length) {
  check_fields<BlockFields>(sqe);
  check_fields<DsmFields>(sqe);
  check_fields<CopyFields>(sqe);
  check_fields<IdentifyFields>(sqe);
  check_fields<GetLogFields>(sqe);
  check_fields<GetFeaturesFields>(sqe);
  check_fields<SetFeaturesFields>(sqe);
  check_fields<RegisterFields>(sqe);
  check_fields<AcquireFields>(sqe);
  check_fields<ReleaseFields>(sqe);
  check_fields<ReportFields>(sqe);
  const std::expected<DataPointer, Status> data = decode_data_pointer(sqe, in_capsule_length);
  if (!data) {
    CHECK(data.error().do_not_retry());
  } else if (data->in_capsule) {
    CHECK(uint64_t{data->offset} + data->length == in_capsule_length);
  }
}

// Writes the same PDU anew; nothing for those whose fields are the caller's choice of options.
size_t rebuild(MutableBytes to, const Pdu& pdu, const PduStyle& style) {
  if (CapsuleCmd::describes(pdu.type)) {
    return build_capsule_cmd(to, style, pdu.as<CapsuleCmd>().sqe, pdu.data_length);
  }
  if (CapsuleResp::describes(pdu.type)) {
    return build_capsule_resp(to, style, pdu.as<CapsuleResp>().cqe);
  }
  if (R2t::describes(pdu.type)) {
    const auto r2t = pdu.as<R2t>();
    return build_r2t(to, style, {r2t.cid, r2t.ttag, r2t.offset, r2t.length});
  }
  if (!DataPdu::describes(pdu.type)) return 0;
  const auto data = pdu.as<DataPdu>();
  const DataPiece piece{data.cid, data.ttag, data.offset, data.length};
  if (pdu.type == PduType::kH2cData) return build_h2c_data(to, style, piece, pdu.last());
  const C2hEnd end = pdu.success() ? C2hEnd::kLastWithSuccess
                     : pdu.last()  ? C2hEnd::kLast
                                   : C2hEnd::kMore;
  return build_c2h_data(to, style, piece, end);
}

// A piece of data that passes is the next one of its transfer and stays inside.
void check_transfer(const Pdu& pdu) {
  const TransferWindow window{.begin = 64, .next = 128, .end = 4096};
  PduResult<> taken = std::unexpected(PduFault{});
  if (pdu.type == PduType::kH2cData) taken = check_h2c_data(pdu, 1, window);
  if (pdu.type == PduType::kC2hData) taken = check_c2h_data(pdu, window);
  if (R2t::describes(pdu.type)) {
    taken = check_r2t(pdu, {.next = window.next, .data_length = window.end});
  }
  if (!taken) return;
  const DataPdu piece = load<DataPdu>(pdu.header);  // an R2T has the same fields
  CHECK(piece.offset == window.next);
  CHECK(uint64_t{piece.offset} + piece.length <= window.end);
}

void check_sound(const Pdu& pdu, const PduRules& rules) {
  CHECK(pdu.header_size <= pdu.data_offset);
  CHECK(uint64_t{pdu.data_offset} + pdu.data_length + (pdu.data_digest ? kDigestSize : 0) ==
        pdu.length);
  if (CapsuleCmd::describes(pdu.type)) {
    check_command(pdu.as<CapsuleCmd>().sqe, pdu.data_length);
  }
  check_transfer(pdu);

  // Padding may make the longest of all PDUs too long to build.
  if (pdu.data_length > UINT32_MAX - kPduPrefixMax - kDigestSize) return;
  std::array<std::byte, kPduPrefixMax> buffer;
  const PduStyle style{rules.header_digest, rules.data_digest, rules.data_alignment};
  const size_t size = rebuild(buffer, pdu, style);
  if (size == 0) return;
  const PduResult<Pdu> again = check_pdu(Bytes(buffer).first(size), rules);
  CHECK(again.has_value());
  CHECK(again->type == pdu.type);
  CHECK(again->data_length == pdu.data_length);
  CHECK(again->data_offset == size);
  CHECK(again->last() == pdu.last() || !DataPdu::describes(pdu.type));
}

// One PDU from the front of `stream`: its length, or 0 if the stream ends or breaks there.
uint32_t receive(Bytes stream, PduRules& rules) {
  if (stream.size() < sizeof(CommonHeader)) return 0;
  const CommonHeader common = decode_common_header(stream.first<sizeof(CommonHeader)>());
  const PduResult<uint32_t> header_size = check_common_header(common, rules);
  if (!header_size) {
    check_fault(header_size.error(), rules, stream.first(sizeof(CommonHeader)));
    return 0;
  }
  CHECK(*header_size <= kHeaderMax);
  if (stream.size() < *header_size) return 0;
  std::array<std::byte, kHeaderMax> buffer{};
  const MutableBytes header = MutableBytes(buffer).first(*header_size);
  std::ranges::copy(stream.first(*header_size), header.begin());
  PduResult<Pdu> pdu = check_pdu(header, rules);
  if (!pdu && pdu.error().error == FatalError::kHeaderDigest) {
    // No mutation guesses a digest: report this one, then go on as if it had been right.
    check_fault(pdu.error(), rules, header);
    store(header.subspan(common.header_length), Le32(crc32c(header.first(common.header_length))));
    pdu = check_pdu(header, rules);
  }
  if (!pdu) {
    check_fault(pdu.error(), rules, header.first(common.header_length));
    return 0;
  }
  check_sound(*pdu, rules);
  if (!rules.established && !TermReq::describes(pdu->type)) {
    const uint8_t digests =
        IcReq::describes(pdu->type) ? pdu->as<IcReq>().digests : pdu->as<IcResp>().digests;
    rules.established = true;
    rules.header_digest = (digests & DigestEnable::kHeader) != 0;
    rules.data_digest = (digests & DigestEnable::kData) != 0;
  }
  return pdu->length;
}

}  // namespace
}  // namespace cairn::nvme

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn::nvme;
  const cairn::Bytes input(reinterpret_cast<const std::byte*>(data), size);
  if (input.size() < kRulesSize) return 0;
  PduRules rules = rules_from(input);
  cairn::Bytes stream = input.subspan(kRulesSize);
  while (const uint32_t length = receive(stream, rules)) {
    if (length > stream.size()) break;
    stream = stream.subspan(length);
  }
  return 0;
}
