// SPDX-License-Identifier: Apache-2.0
// The reading half of a host's queue: answers and data in, commands done.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "fabric/host/queue.h"

namespace cairn::fabric {

task::Task<Result<void>> HostQueue::read_pdus() {
  for (;;) {
    const Step step = take_what_is_here();
    if (step == Step::kEnd) co_return fail(*why_);
    Result<void> read;
    if (step == Step::kFill) {
      read = co_await fill();
    } else {
      read = co_await receiver_->more(ending_.token());
    }
    last_heard_ = env_.now();
    if (!read) co_return read;
  }
}

bool HostQueue::refuse(nvme::PduFault fault, Bytes header) {
  if (fault.error != nvme::FatalError::kNone) {
    farewell_size_ = nvme::build_term_req(farewell_, nvme::End::kHost, fault, header);
    is_at_fault_ = true;
  }
  const bool flipped = fault.error == nvme::FatalError::kHeaderDigest;
  if (!why_) {
    why_ = Error(flipped ? Errc::kCorrupt : Errc::kInvalid, "the target broke NVMe/TCP's rules",
                 static_cast<int32_t>(fault.error));
  }
  return false;
}

HostQueue::Step HostQueue::take_what_is_here() {
  while (!why_) {
    const Bytes here = receiver_->bytes();
    // An alert of TLS is shorter than any PDU.
    if (!rules_.established && looks_like_tls_alert(here)) {
      why_ = Error(Errc::kUnsupported, kTargetDemandsTls);
      return Step::kEnd;
    }
    if (here.size() < sizeof(nvme::CommonHeader)) return Step::kMore;
    const auto common = load<nvme::CommonHeader>(here);
    const nvme::PduResult<uint32_t> header_size = nvme::check_common_header(common, rules_);
    if (!header_size) {
      refuse(header_size.error(), here.first(sizeof(nvme::CommonHeader)));
      return Step::kEnd;
    }
    if (here.size() < *header_size) return Step::kMore;
    const nvme::PduResult<nvme::Pdu> pdu = nvme::check_pdu(here, rules_);
    if (!pdu) {
      refuse(pdu.error(), here.first(std::min<size_t>(here.size(), common.header_length)));
      return Step::kEnd;
    }
    receiver_->note_pdu();
    Step step = Step::kMore;
    if (!take_pdu(*pdu, step)) return Step::kEnd;
    if (step == Step::kFill) return step;
  }
  return Step::kEnd;
}

// False: the connection ends. Only data can come without all of their PDU being here.
bool HostQueue::take_pdu(const nvme::Pdu& pdu, Step& step) {
  if (pdu.type == nvme::PduType::kC2hData) return take_data(pdu, step);
  if (pdu.type == nvme::PduType::kC2hTermReq) return take_term_req(pdu);
  // The rest has no data. What it says is copied before anybody is called.
  receiver_->take(pdu.length);
  switch (pdu.type) {
    case nvme::PduType::kCapsuleResp:
      return take_response(pdu);
    case nvme::PduType::kR2t:
      return take_r2t(pdu);
    case nvme::PduType::kIcResp:
      return take_ic_resp(pdu);
    default:
      return refuse(nvme::sequence_fault(), pdu.header);
  }
}

bool HostQueue::take_ic_resp(const nvme::Pdu& pdu) {
  const auto response = pdu.as<nvme::IcResp>();
  style_ = {.header_digest = (response.digests & nvme::DigestEnable::kHeader) != 0,
            .data_digest = (response.digests & nvme::DigestEnable::kData) != 0,
            .data_alignment = response.data_alignment};
  if (style_.header_digest != options_.header_digest ||
      style_.data_digest != options_.data_digest) {
    why_ = Error(Errc::kUnsupported, "the target declines header or data digests");
    return false;
  }
  h2c_data_max_ = response.h2c_data_max;
  rules_.established = true;
  open_ = true;
  established_.set();
  return true;
}

bool HostQueue::take_term_req(const nvme::Pdu& pdu) {
  const auto request = pdu.as<nvme::TermReq>();
  why_ = Error(Errc::kReset, "the target ended the connection with a TermReq",
               request.fatal_error.value());
  return false;
}

bool HostQueue::take_response(const nvme::Pdu& pdu) {
  const auto capsule = pdu.as<nvme::CapsuleResp>();
  Slot* slot = find(capsule.cqe.cid);
  if (slot == nullptr) {
    constexpr uint32_t kOffset = offsetof(nvme::CapsuleResp, cqe) + offsetof(nvme::Cqe, cid);
    return refuse({nvme::FatalError::kInvalidHeader, kOffset}, pdu.header);
  }
  if (slot->command != nullptr) slot->command->cqe = capsule.cqe;
  answered(*slot);
  return true;
}

bool HostQueue::take_r2t(const nvme::Pdu& pdu) {
  const auto request = pdu.as<nvme::R2t>();
  Slot* slot = find(request.cid);
  if (slot == nullptr || slot->command == nullptr || !slot->command->writes()) {
    return refuse(nvme::unknown_cid_fault(), pdu.header);
  }
  // An R2T counts as answered when all its data were handed to the stream.
  const bool is_busy = slot->window_next < slot->window_end || current_ == slot;
  const nvme::R2tState state{.next = slot->next,
                             .data_length = slot->length,
                             .outstanding = is_busy ? 1u : 0u,
                             .r2t_max = 0};
  if (auto sound = nvme::check_r2t(pdu, state); !sound) return refuse(sound.error(), pdu.header);
  slot->ttag = request.ttag;
  slot->window_next = request.offset;
  slot->window_end = slot->next = request.offset + request.length;
  enqueue(*slot, request.length, true);
  return true;
}

// --- data ---------------------------------------------------------------------------------------

bool HostQueue::take_data(const nvme::Pdu& pdu, Step& step) {
  const auto header = pdu.as<nvme::DataPdu>();
  Slot* slot = find(header.cid);
  if (slot == nullptr || !slot->reads) return refuse(nvme::unknown_cid_fault(), pdu.header);
  if (slot->last_came) return refuse(nvme::sequence_fault(), pdu.header);
  const nvme::TransferWindow window{.begin = 0, .next = slot->next, .end = slot->length};
  if (auto sound = nvme::check_c2h_data(pdu, window); !sound) {
    return refuse(sound.error(), pdu.header);
  }
  slot->next += header.length;
  slot->last_came = pdu.last();
  filling_ = slot;
  fill_left_ = header.length;
  fill_crc_ = 0;
  fill_has_digest_ = pdu.data_digest;
  fill_succeeds_ = pdu.success();
  // The padding before the data may not be here yet.
  fill_skip_ = pdu.data_offset;
  if (!fill_from_here()) step = Step::kFill;
  return true;
}

// Takes what is here of the PDU. True: that was all of it, and the command was told.
bool HostQueue::fill_from_here() {
  const auto take = [&](uint32_t& left) {
    const size_t count = std::min<size_t>(left, receiver_->bytes().size());
    receiver_->take(count);
    left -= static_cast<uint32_t>(count);
  };
  if (fill_skip_ > 0) take(fill_skip_);
  if (fill_skip_ > 0) return false;
  while (fill_left_ > 0 && !receiver_->bytes().empty()) {
    if (filling_->command == nullptr) {
      take(fill_left_);
      continue;
    }
    const size_t here = std::min<size_t>(fill_left_, receiver_->bytes().size());
    const MutableBytes to = filling_->cursor.take(here);
    CHECK(!to.empty(), "a command has memory for the data it asks for");
    const Bytes from = Bytes(receiver_->bytes()).first(to.size());
    if (fill_has_digest_) {
      fill_crc_ = copy_crc32c(to, from, fill_crc_);
    } else {
      std::memcpy(to.data(), from.data(), to.size());
    }
    receiver_->take(to.size());
    fill_left_ -= static_cast<uint32_t>(to.size());
  }
  if (fill_left_ > 0) return false;
  if (fill_has_digest_) {
    const Bytes here = receiver_->bytes();
    if (here.size() < nvme::kDigestSize) return false;
    if (filling_->command != nullptr && load<nvme::Le32>(here) != fill_crc_) {
      filling_->command->corrupt = true;
    }
    receiver_->take(nvme::kDigestSize);
  }
  data_came();
  return true;
}

// The rest of a PDU whose beginning was here: straight into the command's memory.
task::Task<Result<void>> HostQueue::fill() {
  for (;;) {
    Result<void> read;
    if (fill_skip_ == 0 && fill_left_ > 0 && filling_->command != nullptr) {
      const MutableBytes to = filling_->cursor.take(fill_left_);
      CHECK(!to.empty(), "a command has memory for the data it asks for");
      read = co_await receiver_->read_into(to, ending_.token());
      if (read && fill_has_digest_) fill_crc_ = crc32c(to, fill_crc_);
      fill_left_ -= static_cast<uint32_t>(to.size());
    } else {
      read = co_await receiver_->more(ending_.token());
    }
    if (!read) {
      filling_ = nullptr;
      co_return read;
    }
    if (fill_from_here()) co_return Result<void>{};
  }
}

void HostQueue::data_came() {
  Slot& slot = *std::exchange(filling_, nullptr);
  if (slot.command != nullptr) slot.command->moved = slot.next;
  if (fill_succeeds_) {
    if (slot.command != nullptr) slot.command->cqe = nvme::Cqe{.cid = slot.cid};
    return answered(slot);
  }
  // It was cancelled while its memory was in use.
  if (slot.command != nullptr && slot.cancelled) abandon(slot, Error(*slot.cancelled));
}

}  // namespace cairn::fabric
