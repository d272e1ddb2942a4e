// SPDX-License-Identifier: Apache-2.0
// The reading half of a connection: PDUs in, commands to the engine.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "env/call.h"
#include "fabric/target/connection.h"
#include "fabric/target/tls_entrance.h"
#include "nvme/controller/io_commands.h"
#include "task/deadline.h"

namespace cairn::fabric {

task::Task<Result<void>> TargetConnection::read_pdus() {
  {
    task::Deadline handshake(core_.env, core_.env.now() + core_.options.handshake_timeout,
                             reading_end_.token());
    while (controller_ == nullptr) {
      Result<void> taken = co_await take_some(handshake.token());
      if (!taken) co_return taken;
    }
  }
  for (;;) {
    Result<void> taken = co_await take_some(reading_end_.token());
    if (!taken) co_return taken;
  }
}

std::unexpected<Error> TargetConnection::fault(nvme::PduFault fault, Bytes header) {
  fault_ = fault;
  faulty_type_ = load<nvme::CommonHeader>(header).type;
  if (fault.error != nvme::FatalError::kNone) {
    farewell_size_ = nvme::build_term_req(farewell_, nvme::End::kController, fault, header);
    out_ready_.set();
  }
  return fail(Errc::kInvalid, "PDU", static_cast<int32_t>(fault.error));
}

TargetConnection::Step TargetConnection::fail_with(std::unexpected<Error> error) {
  failure_ = error.error();
  return Step::kFailed;
}

// A ClientHello is no PDU, and not logged as one.
task::Task<Result<void>> TargetConnection::failed() {
  if (spoke_tls_) {
    fault_.reset();
    co_await note_client_hello();
  }
  co_return fail(*failure_);
}

task::Task<void> TargetConnection::note_fault() {
  if (!fault_ || !core_.options.on_fault) co_return;
  const HostFault fault{
      .peer = peer_, .queue_id = queue_id_, .fault = *fault_, .type = faulty_type_};
  co_await env::call_on(core_.env, core_.control,
                        [&](env::Env&) { core_.options.on_fault(fault); });
}

// The host is told in our own language, a TermReq; why is for the log.
task::Task<void> TargetConnection::note_client_hello() {
  const nvme::TlsFailure failure{.peer = peer_, .why = "it speaks TLS, and this listener does not"};
  co_await env::call_on(core_.env, core_.control,
                        [&](env::Env&) { core_.registry.tls_failed(failure); });
}

task::Task<Result<void>> TargetConnection::take_some(task::CancelToken token) {
  switch (take_what_is_here()) {
    case Step::kTaken:
    case Step::kReadMore:
      return receiver_.more(token);
    case Step::kWait:
      if (front_.type == nvme::PduType::kH2cData) return take_data(front_, token);
      return take_waiting_capsule(token);
    case Step::kFailed:
      break;
  }
  return failed();
}

TargetConnection::Step TargetConnection::take_what_is_here() {
  for (;;) {
    const Bytes here = receiver_.bytes();
    if (here.size() < sizeof(nvme::CommonHeader)) return Step::kReadMore;
    const auto common = load<nvme::CommonHeader>(here);
    const nvme::PduResult<uint32_t> header_size = nvme::check_common_header(common, rules_);
    if (!header_size) {
      spoke_tls_ = !rules_.established && looks_like_client_hello(here);
      return fail_with(fault(header_size.error(), here.first(sizeof(nvme::CommonHeader))));
    }
    if (here.size() < *header_size) return Step::kReadMore;
    const nvme::PduResult<nvme::Pdu> pdu = nvme::check_pdu(here, rules_);
    if (!pdu) {
      const size_t length = std::min<size_t>(here.size(), common.header_length);
      return fail_with(fault(pdu.error(), here.first(length)));
    }
    front_ = *pdu;
    // A capsule is taken whole; the data of H2CData goes straight to its command.
    if (pdu->type == nvme::PduType::kH2cData) {
      receiver_.note_pdu();
      return Step::kWait;
    }
    CHECK(pdu->length <= kAdminStagingSize, "the rules bound every PDU but H2CData");
    if (here.size() < pdu->length) return Step::kReadMore;
    receiver_.note_pdu();
    if (const Step step = take_pdu(front_); step != Step::kTaken) return step;
  }
}

TargetConnection::Step TargetConnection::take_pdu(const nvme::Pdu& pdu) {
  if (pdu.type == nvme::PduType::kCapsuleCmd) return take_capsule(pdu);
  if (pdu.type == nvme::PduType::kIcReq) {
    take_ic_req(pdu.as<nvme::IcReq>());
    receiver_.take(pdu.length);
    return Step::kTaken;
  }
  // The only other PDU a host sends: it has found something wrong with ours.
  const auto request = pdu.as<nvme::TermReq>();
  return fail_with(fail(Errc::kReset, "the host sent a TermReq", request.fatal_error.value()));
}

void TargetConnection::take_ic_req(const nvme::IcReq& request) {
  const TargetOptions& offered = core_.options;
  const bool header = (request.digests & nvme::DigestEnable::kHeader) != 0;
  const bool data = (request.digests & nvme::DigestEnable::kData) != 0;
  style_ = {.header_digest = header && offered.header_digest,
            .data_digest = data && offered.data_digest,
            .data_alignment = request.data_alignment};
  greeting_size_ = nvme::build_ic_resp(greeting_, {.header_digest = style_.header_digest,
                                                   .data_digest = style_.data_digest,
                                                   .h2c_data_max = kH2cDataMax});
  rules_.established = true;
  rules_.header_digest = style_.header_digest;
  rules_.data_digest = style_.data_digest;
  out_ready_.set();
}

TargetConnection::Step TargetConnection::take_capsule(const nvme::Pdu& pdu) {
  if (draining_) {
    // Its host sends it again, elsewhere or later: it was neither begun nor answered.
    receiver_.take(pdu.length);
    return Step::kTaken;
  }
  TcpCommand* command = take_slot();
  if (command == nullptr) {
    // The first answers of a write may have arrived, and made room at the host, before the last.
    if (!sending_.empty()) return Step::kWait;
    return fail_with(fault(nvme::sequence_fault(), pdu.header));
  }
  if (!begin_command(*command, pdu)) {
    receiver_.take(pdu.length);
    return Step::kTaken;
  }
  begun_ = command;
  if (controller_ == nullptr) return Step::kWait;
  if (io_queue_ == nullptr || !io_queue_->try_now(*command)) {
    if (pdu.data_length > 0) {
      std::optional<Buffer> buffer = core_.in_capsule.try_allocate(pdu.data_length);
      if (!buffer) return Step::kWait;
      keep_data(*command, pdu, std::move(*buffer));
    }
    dispatch(*command);
  }
  begun_ = nullptr;
  receiver_.take(pdu.length);
  return Step::kTaken;
}

bool TargetConnection::begin_command(TcpCommand& command, const nvme::Pdu& pdu) {
  traffic_ = true;
  ++commands_;
  command.sqe = load<nvme::CapsuleCmd>(pdu.header).sqe;
  if (queue_entries_ > 0 && ++sq_head_ == queue_entries_) sq_head_ = 0;
  command.owns_cid = cids_.add(command.sqe.cid) || supersede_event_request(command.sqe.cid);
  if (!command.owns_cid) {
    command.complete(
        nvme::make_cqe(command.sqe, nvme::final(nvme::StatusCode::kCommandIdConflict)));
    return false;
  }
  const auto pointer = nvme::decode_data_pointer(command.sqe, pdu.data_length);
  if (!pointer) {
    command.complete(nvme::make_cqe(command.sqe, pointer.error()));
    return false;
  }
  command.pointer = *pointer;
  if (pdu.data_length == 0) return true;
  const MutableBytes data = receiver_.bytes().subspan(pdu.data_offset, pdu.data_length);
  if (pdu.data_digest) {
    const Bytes sent = data;
    const Bytes digest = receiver_.bytes().subspan(pdu.data_offset + pdu.data_length);
    command.data_corrupt = !nvme::data_digest_matches(std::span(&sent, 1), digest);
  }
  if (pointer->in_capsule) command.piece = data.subspan(pointer->offset, pointer->length);
  return true;
}

void TargetConnection::keep_data(TcpCommand& command, const nvme::Pdu& pdu, Buffer buffer) {
  const Bytes data = receiver_.bytes().subspan(pdu.data_offset, pdu.data_length);
  std::memcpy(buffer.data(), data.data(), data.size());
  command.data = std::move(buffer);
  const nvme::DataPointer& pointer = command.pointer;
  if (pointer.in_capsule) command.piece = command.data.subspan(pointer.offset, pointer.length);
}

// It needs a slot or a buffer that is not free now, or it is Connect and all else waits for its
// answer.
task::Task<Result<void>> TargetConnection::take_waiting_capsule(task::CancelToken token) {
  if (begun_ == nullptr) {
    sent_all_.reset();
    co_return co_await sent_all_.wait(token);
  }
  TcpCommand& command = *std::exchange(begun_, nullptr);
  if (controller_ == nullptr) co_return co_await this->connect(command);
  if (front_.data_length > 0) {
    command.cancel.emplace(token);  // ends with the reading as well as with the command
    Result<Buffer> buffer = co_await core_.in_capsule.allocate(
        front_.data_length, core_.options.buffer_timeout, command.cancel->token());
    const bool is_cancelled = command.cancel->requested();
    command.cancel.emplace();
    if (is_cancelled) command.cancel->request();
    if (token.requested()) {
      free_slot(command);
      co_return fail(token.error());
    }
    if (!buffer) {
      receiver_.take(front_.length);
      command.complete(nvme::make_cqe(command.sqe, nvme::data_status(buffer.error())));
      co_return Result<void>{};
    }
    keep_data(command, front_, std::move(*buffer));
  }
  receiver_.take(front_.length);
  dispatch(command);
  co_return Result<void>{};
}

task::Task<Result<void>> TargetConnection::take_data(const nvme::Pdu& pdu,
                                                     task::CancelToken token) {
  const auto header = pdu.as<nvme::DataPdu>();
  const size_t place = header.ttag % slots_max_;
  if (place >= slots_.size() || slots_[place]->ttag != header.ttag ||
      slots_[place]->state != TcpCommand::State::kAsking) {
    co_return co_await take_owed_data(pdu, token);
  }
  TcpCommand& command = *slots_[place];
  if (auto sound = nvme::check_h2c_data(pdu, command.sqe.cid, command.window); !sound) {
    co_return fault(sound.error(), pdu.header);
  }
  const MutableBytes to = command.piece.subspan(header.offset, header.length);
  const bool has_digest = pdu.data_digest;
  receiver_.take(pdu.data_offset);
  filling_ = &command;
  command.window.next += header.length;
  Result<void> read = co_await receiver_.read_into(to, token);
  if (read && has_digest) {
    read = co_await receiver_.wait_for(nvme::kDigestSize, token);
    if (read) {
      const Bytes data = to;
      command.data_corrupt = command.data_corrupt ||
                             !nvme::data_digest_matches(std::span(&data, 1),
                                                        receiver_.bytes().first(nvme::kDigestSize));
      receiver_.take(nvme::kDigestSize);
    }
  }
  filling_ = nullptr;
  // It ended meanwhile, or its response is on its way.
  if (command.state == TcpCommand::State::kFree) {
    free_slot(command);
  } else if (command.state == TcpCommand::State::kResponding) {
    command.drop_data();
  }
  if (!read) co_return read;
  if (command.state != TcpCommand::State::kAsking) co_return Result<void>{};
  if (command.window.next == command.window.end) command.arrived.set();
  co_return Result<void>{};
}

// Data of a command that has ended is read and forgotten.
task::Task<Result<void>> TargetConnection::take_owed_data(const nvme::Pdu& pdu,
                                                          task::CancelToken token) {
  OwedData::Entry* owed = owed_.find(pdu.as<nvme::DataPdu>().ttag);
  if (owed == nullptr) co_return fault(nvme::unknown_ttag_fault(), pdu.header);
  if (auto sound = nvme::check_h2c_data(pdu, owed->cid, owed->window); !sound) {
    co_return fault(sound.error(), pdu.header);
  }
  owed->window.next += pdu.data_length;
  co_return co_await receiver_.skip(pdu.length, token);
}

}  // namespace cairn::fabric
