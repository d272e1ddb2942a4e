// SPDX-License-Identifier: Apache-2.0
// The writing half of a host's queue: whatever is ready goes out together in one write.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "fabric/host/queue.h"

namespace cairn::fabric {

namespace {

// One write: bounded so that the first command in it does not wait for the copying of many.
constexpr size_t kPiecesMax = 250;

std::array<std::byte, nvme::kDigestSize> digest_of(PieceCursor cursor, uint32_t length) {
  uint32_t crc = 0;
  while (length > 0) {
    const Bytes piece = cursor.take(length);
    if (piece.empty()) break;
    crc = crc32c(piece, crc);
    length -= static_cast<uint32_t>(piece.size());
  }
  return std::bit_cast<std::array<std::byte, nvme::kDigestSize>>(nvme::Le32(crc));
}

}  // namespace

task::Task<void> HostQueue::write_loop() {
  for (;;) {
    const Result<void> ready = co_await out_ready_.wait();
    CHECK(ready.has_value(), "nobody cancels this wait");
    out_ready_.reset();
    gather();
    while (!pieces_.empty()) {
      doorbell_.left(piece_messages_, piece_bytes_, out_.empty() && current_ == nullptr);
      Result<void> sent = send_now();
      if (sent && !pieces_.empty()) {
        sent = co_await stream_->write(std::span(pieces_), ending_.token());
      }
      write_done();
      if (!sent) {
        stop(sent.error());
        break;
      }
      gather();
    }
    if (reading_ended_) co_return;
  }
}

// Hands over what the stream takes without waiting; the rest stays in pieces_.
Result<void> HostQueue::send_now() {
  if (ending_.requested()) return fail(Errc::kCancelled, "the connection ends");
  const Result<size_t> taken = stream_->write_now(pieces_);
  if (!taken) return fail(taken.error());
  drop_front(pieces_, *taken);
  return {};
}

void HostQueue::gather() {
  piece_bytes_ = piece_messages_ = 0;
  if (greeting_size_ > 0) {
    pieces_.push_back(Bytes(greeting_).first(std::exchange(greeting_size_, 0)));
  }
  if (reading_ended_ || why_) {
    // Nothing but the reason is worth sending now, and that only between two PDUs.
    if (farewell_size_ > 0 && current_ == nullptr && !ending_.requested()) {
      pieces_.push_back(Bytes(farewell_).first(std::exchange(farewell_size_, 0)));
    }
    return;
  }
  while (pieces_.size() + 2 < kPiecesMax) {
    if (current_ == nullptr) {
      if (!doorbell_.is_rung() || !doorbell_.takes_more(piece_messages_, piece_bytes_)) return;
      Slot* slot = out_.pop_front();
      if (slot == nullptr) return doorbell_.left(0, 0, true);
      begin_pdu(*slot);
      ++piece_messages_;
    }
    if (!gather_data()) return;
    if (env_.buggify("host.short_batch")) return;
  }
}

void HostQueue::enqueue(Slot& slot, size_t bytes, bool no_delay) {
  out_.push_back(slot);
  if (doorbell_.add(bytes, no_delay, with_target())) out_ready_.set();
}

void HostQueue::on_ring(void* queue) { static_cast<HostQueue*>(queue)->out_ready_.set(); }

void HostQueue::begin_pdu(Slot& slot) {
  current_ = &slot;
  if (slot.state == Slot::State::kReady) {
    begin_capsule(slot);
  } else {
    begin_data(slot);
  }
}

void HostQueue::begin_capsule(Slot& slot) {
  HostCommand& command = *slot.command;
  const bool in_capsule = command.sqe.sgl1.id == nvme::SglId::kDataBlockOffset;
  slot.state = Slot::State::kSent;
  --ready_count_;
  slot.pdu_left = in_capsule ? command.length : 0;
  slot.pdu_has_digest = in_capsule && style_.data_digest;
  command.sent = true;
  command.moved = slot.pdu_left;
  const size_t size = nvme::build_capsule_cmd(slot.prefix, style_, command.sqe, slot.pdu_left);
  if (slot.pdu_has_digest) slot.digest = digest_of(slot.cursor, slot.pdu_left);
  add_piece(slot, Bytes(slot.prefix).first(size));
}

void HostQueue::begin_data(Slot& slot) {
  const uint32_t length = std::min(slot.window_end - slot.window_next, h2c_data_max_);
  const nvme::DataPiece piece{
      .cid = slot.cid, .ttag = slot.ttag, .offset = slot.window_next, .length = length};
  slot.window_next += length;
  slot.pdu_left = length;
  slot.pdu_has_digest = style_.data_digest;
  slot.command->moved = slot.window_next;
  const bool last = slot.window_next == slot.window_end;
  const size_t size = nvme::build_h2c_data(slot.prefix, style_, piece, last);
  if (slot.pdu_has_digest) slot.digest = digest_of(slot.cursor, length);
  add_piece(slot, Bytes(slot.prefix).first(size));
}

void HostQueue::add_piece(Slot& slot, Bytes piece) {
  pieces_.push_back(piece);
  piece_bytes_ += piece.size();
  if (!slot.ListHook<SendingTag>::is_linked()) sending_.push_back(slot);
}

// The data of the current PDU, or as much as one write holds. True: all of it.
bool HostQueue::gather_data() {
  Slot& slot = *current_;
  while (slot.pdu_left > 0) {
    if (pieces_.size() + 1 >= kPiecesMax) return false;
    const Bytes piece = slot.cursor.take(slot.pdu_left);
    CHECK(!piece.empty(), "a command has the data it sends");
    slot.pdu_left -= static_cast<uint32_t>(piece.size());
    add_piece(slot, piece);
  }
  if (slot.pdu_has_digest) add_piece(slot, slot.digest);
  current_ = nullptr;
  return true;
}

// The stream has given all memory back, be it sent or not.
void HostQueue::write_done() {
  pieces_.clear();
  while (Slot* slot = sending_.pop_front()) {
    if (slot == current_) continue;
    if (slot->answered) {
      finish(*slot);
    } else if (slot->window_next < slot->window_end && !slot->ListHook<OutTag>::is_linked()) {
      // The next PDU of the same R2T, whose header takes the same place.
      enqueue(*slot, slot->window_end - slot->window_next, true);
    }
  }
}

}  // namespace cairn::fabric
