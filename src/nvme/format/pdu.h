// SPDX-License-Identifier: Apache-2.0
// Judging received PDUs, at either end: bytes in, a view of a sound PDU or the fault to report out.
//
// A receiver reads sizeof(CommonHeader) bytes and calls check_common_header(), which says how many
// more make up the header; with those it calls check_pdu(). After the header come, in this order,
// padding up to `data_offset`, `data_length` bytes of data and, with `data_digest`, four bytes of
// digest. A fault is sent to the peer with build_term_req() and ends the connection
// (NVMe/TCP 1.0, 3.5).
//
// All functions are pure. Reserved fields and flags are not looked at, so that later revisions of
// the protocol may use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "nvme/format/tcp_format.h"

namespace cairn::nvme {

// One end of a connection.
enum class End : uint8_t { kHost, kController };

// What a receiver expects.
struct PduRules {
  End receiver = End::kController;
  // Whether ICReq and ICResp have gone through. Before, only the one this end waits for is welcome.
  bool established = false;
  // In use on this connection. While a host waits for ICResp: what it asked for in ICReq.
  bool header_digest = false;
  bool data_digest = false;
  // What this end announced as HPDA or CPDA: the alignment of data it receives.
  uint8_t data_alignment = 0;
  // The largest HPDA or CPDA this end can serve when it sends.
  uint8_t peer_alignment_max = kDataAlignmentMax;
  // Controllers: announced as MAXH2CDATA.
  uint32_t h2c_data_max = 0;
  // Controllers: in-capsule data of this queue's commands. Fabrics commands may bring
  // kAdminInCapsuleMax on any queue.
  uint32_t in_capsule_max = 0;
};

// Why a connection must end, as a TermReq says it.
struct PduFault {
  FatalError error = FatalError::kNone;  // kNone: close, but send nothing
  uint32_t information = 0;              // FEI

  friend constexpr bool operator==(const PduFault&, const PduFault&) = default;
};

// "invalid PDU header field at byte 4". `reporter` is who found it. Allocates.
std::string text(PduFault fault, End reporter);

template <class T = void>
using PduResult = std::expected<T, PduFault>;

// A sound PDU.
struct Pdu {
  PduType type{};
  uint8_t flags = 0;         // PduFlags
  bool data_digest = false;  // kDigestSize bytes follow the data
  uint32_t length = 0;       // of the whole PDU
  uint32_t header_size = 0;  // of the header and its digest: where padding or data begin
  uint32_t data_offset = 0;  // from the PDU's start to its data; header_size if there are none
  uint32_t data_length = 0;
  Bytes header;  // the header without its digest, borrowed from the caller of check_pdu()

  bool last() const { return (flags & PduFlags::kLast) != 0; }
  bool success() const { return (flags & PduFlags::kSuccess) != 0; }

  // The header as the layout of its type (CHECK).
  template <class Layout>
  Layout as() const {
    CHECK(Layout::describes(type));
    return load<Layout>(header);
  }
};

CommonHeader decode_common_header(std::span<const std::byte, sizeof(CommonHeader)> bytes);

// How many bytes the header has, with its digest: at most kHeaderMax. Or what is wrong with the
// common header: errors are looked for in the order of the fields, because a TermReq names the
// lowest one.
PduResult<uint32_t> check_common_header(const CommonHeader& common, const PduRules& rules);

// The PDU whose header `header` is: at least as many bytes as check_common_header() asked for
// (CHECK). Judges the common header as well, then its digest, then the rest of the fields.
PduResult<Pdu> check_pdu(Bytes header, const PduRules& rules);

// A transfer that was asked for and is under way, in bytes from the start of the command's data.
struct TransferWindow {
  uint32_t begin = 0;
  uint32_t next = 0;  // what must come now
  uint32_t end = 0;
};

// Whether an H2CData continues the R2T with its TTAG. `cid` is that R2T's command.
PduResult<> check_h2c_data(const Pdu& pdu, uint16_t cid, TransferWindow r2t);

// Whether a C2HData continues the transfer of its command. One that ends short of the command's
// data is sound: the command then fails, or had less to say.
PduResult<> check_c2h_data(const Pdu& pdu, TransferWindow command);

// What a host knows of a command's R2Ts.
struct R2tState {
  uint32_t next = 0;         // the offset from which nothing was asked for yet
  uint32_t data_length = 0;  // of the command
  uint32_t outstanding = 0;  // R2Ts not yet answered in full
  uint32_t r2t_max = 0;      // announced as MAXR2T, zero-based
};
PduResult<> check_r2t(const Pdu& pdu, R2tState state);

// An id in a PDU that names nothing known: CCCID of C2HData or R2T, and TTAG of H2CData (3.3.2).
PduFault unknown_cid_fault();
PduFault unknown_ttag_fault();
// A PDU that is sound by itself but was not due.
PduFault sequence_fault();

// Whether `digest`, kDigestSize bytes as received, is that of `data`. When it is not, the command
// fails with kTransientTransportError and the connection goes on (3.5).
bool data_digest_matches(std::span<const Bytes> data, Bytes digest);

}  // namespace cairn::nvme
