// SPDX-License-Identifier: Apache-2.0
// The writing half of a connection: whatever is ready goes out together in one write.
#include <utility>

#include "fabric/target/connection.h"
#include "task/deadline.h"

namespace cairn::fabric {

namespace {

// One write: bounded so that the first response in it does not wait for the copying of many.
constexpr size_t kPiecesMax = 250;

// Whether a host waits for just this answer, as its command says.
bool is_urgent(const nvme::Sqe& sqe) {
  const nvme::IoOpcode opcode = sqe.io_opcode();
  if (opcode == nvme::IoOpcode::kRead || opcode == nvme::IoOpcode::kWrite) {
    return nvme::BlockFields::decode(sqe).force_unit_access;
  }
  return true;
}

// Whether a command of an admin queue ends as it must: a request for events waits until there is
// one, and in a healthy session the end of the session comes first (NVMe Base 2.0, 5.2).
bool is_ended_wait(const nvme::Sqe& sqe, nvme::Status status) {
  return sqe.admin_opcode() == nvme::AdminOpcode::kAsynchronousEventRequest &&
         (status == nvme::StatusCode::kAbortedQueueDeletion ||
          status == nvme::StatusCode::kAbortRequested);
}

}  // namespace

void TargetConnection::queue_out(TcpCommand& command) {
  // A command that ends while its R2T is queued responds in its place; while the R2T is being sent,
  // after it: see sent().
  const bool is_response = command.state == TcpCommand::State::kResponding;
  if (!command.ListHook<OutTag>::is_linked()) out_.push_back(command);
  const bool no_delay = queue_id_ == 0 || !is_response || is_urgent(command.sqe);
  const size_t bytes = sizeof(nvme::CapsuleResp) + (is_response ? command.piece.size() : 0);
  if (doorbell_.add(bytes, no_delay, running_)) out_ready_.set();
}

void TargetConnection::on_ring(void* connection) {
  static_cast<TargetConnection*>(connection)->out_ready_.set();
}

void TargetConnection::ask_for_data(TcpCommand& command) {
  const nvme::DataPiece piece{.cid = command.sqe.cid,
                              .ttag = command.ttag,
                              .offset = command.window.begin,
                              .length = command.window.end - command.window.begin};
  command.prefix_size = static_cast<uint16_t>(nvme::build_r2t(command.prefix, style_, piece));
  queue_out(command);
}

task::Task<void> TargetConnection::write_loop() {
  for (;;) {
    const Result<void> ready = co_await out_ready_.wait();
    if (!ready) co_return;
    out_ready_.reset();
    gather();
    while (!pieces_.empty()) {
      doorbell_.left(piece_messages_, piece_bytes_, out_.empty());
      Result<void> written = send_now();
      if (written && !pieces_.empty()) {
        task::Deadline deadline(core_.env, core_.env.now() + core_.options.write_timeout,
                                ending_.token());
        writing_ = true;
        written = co_await stream_->write(std::span(pieces_), deadline.token());
        writing_ = false;
      }
      sent();
      if (!written) {
        stop(written.error() == Errc::kTimedOut ? "the host does not read" : "write failed");
        drop_output();
        break;
      }
      gather();
    }
    if (reading_ended_ && out_.empty()) co_return;
    if (finishing_) {
      const Result<void> finished = stream_->finish();
      if (!finished) stop("the host is gone");
      co_return;
    }
  }
}

Result<void> TargetConnection::send_now() {
  if (ending_.requested()) return fail(Errc::kCancelled, "the connection ends");
  const Result<size_t> taken = stream_->write_now(pieces_);
  if (!taken) return fail(taken.error());
  if (*taken < piece_bytes_) {
    keep_rest(*taken);
  } else {
    pieces_.clear();
  }
  return {};
}

// A host that does not read must keep nothing but its own buffers: what was borrowed and could not
// be sent is copied there. Each loan is found by its place among the pieces: reads may overlap, so
// where its bytes lie does not say whose piece one is.
void TargetConnection::keep_rest(size_t sent) {
  const size_t before = pieces_.size();
  drop_front(pieces_, sent);
  const size_t gone = before - pieces_.size();
  sending_.for_each([&](TcpCommand& command) {
    if (command.loan.empty()) return;
    if (command.loan_piece < gone) return command.keep_loan(command.loan.size());
    Bytes& rest = pieces_[command.loan_piece - gone];
    const size_t offset = command.loan.size() - rest.size();
    command.keep_loan(offset);
    rest = command.piece.subspan(offset);
  });
  out_.for_each([](TcpCommand& command) {
    if (!command.loan.empty()) command.keep_loan(0);
  });
}

void TargetConnection::add_piece(Bytes piece) {
  pieces_.push_back(piece);
  piece_bytes_ += piece.size();
}

void TargetConnection::gather() {
  pieces_.clear();
  piece_bytes_ = piece_messages_ = 0;
  if (greeting_size_ > 0) {
    add_piece(Bytes(greeting_).first(std::exchange(greeting_size_, 0)));
  }
  if (farewell_size_ > 0) {
    add_piece(Bytes(farewell_).first(std::exchange(farewell_size_, 0)));
    has_said_farewell_ = true;
  }
  if (has_said_farewell_) return drop_output();
  if (!doorbell_.is_rung() && !reading_ended_ && !finishing_) return;
  while (pieces_.size() < kPiecesMax && doorbell_.takes_more(piece_messages_, piece_bytes_)) {
    TcpCommand* command = out_.pop_front();
    if (command == nullptr) return;
    ++piece_messages_;
    sending_.push_back(*command);
    command->sending_response = command->state == TcpCommand::State::kResponding;
    if (!command->sending_response) {
      add_piece(Bytes(command->prefix).first(command->prefix_size));
    } else {
      gather_response(*command);
    }
    if (core_.env.buggify("target.short_batch")) return;
  }
}

void TargetConnection::gather_response(TcpCommand& command) {
  // The host may use the id again once it has read this, which can be before the write is done.
  if (std::exchange(command.owns_cid, false)) cids_.remove(command.sqe.cid);
  const nvme::Status status = command.cqe.get_status();
  if (!status.ok() && !(is_admin() && is_ended_wait(command.sqe, status))) ++failures_;
  command.cqe.sqhd = flow_control_ ? sq_head_ : nvme::kNoSqHead;
  bool capsule = true;
  if (command.has_output && status.ok() && !command.piece.empty()) {
    // A result besides success needs its capsule; so does a queue with flow control, for SQHD.
    capsule = flow_control_ || command.cqe.result64() != 0;
    const Bytes data = command.output();
    const auto length = static_cast<uint32_t>(data.size());
    const nvme::DataPiece piece{.cid = command.sqe.cid, .offset = 0, .length = length};
    const auto end = capsule ? nvme::C2hEnd::kLast : nvme::C2hEnd::kLastWithSuccess;
    command.prefix_size =
        static_cast<uint16_t>(nvme::build_c2h_data(command.prefix, style_, piece, end));
    add_piece(Bytes(command.prefix).first(command.prefix_size));
    command.loan_piece = static_cast<uint32_t>(pieces_.size());
    add_piece(data);
    if (style_.data_digest) {
      command.digest = nvme::data_digest(std::span(&data, 1));
      add_piece(command.digest);
    }
  }
  if (!capsule) return;
  command.response_size =
      static_cast<uint16_t>(nvme::build_capsule_resp(command.response, style_, command.cqe));
  add_piece(Bytes(command.response).first(command.response_size));
}

// What was being sent is: responses end their commands, R2Ts leave theirs waiting for data.
void TargetConnection::sent() {
  pieces_.clear();
  sent_all_.set();
  while (TcpCommand* command = sending_.pop_front()) {
    if (command->sending_response) {
      free_slot(*command);
    } else if (command->state == TcpCommand::State::kResponding) {
      queue_out(*command);
    }
  }
}

// Nobody will read it.
void TargetConnection::drop_output() {
  while (TcpCommand* command = out_.pop_front()) {
    if (command->state == TcpCommand::State::kResponding) free_slot(*command);
  }
}

}  // namespace cairn::fabric
