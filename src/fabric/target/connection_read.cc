// SPDX-License-Identifier: Apache-2.0
// The reading half of a connection: PDUs in, commands to the engine.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "env/call.h"
#include "fabric/target/connection.h"
#include "fabric/target/tls_entrance.h"
#include "nvme/io_commands.h"
#include "task/deadline.h"

namespace cairn::fabric {

task::Task<Result<void>> TargetConnection::read_pdus() {
  {
    task::Deadline handshake(core_.env, core_.env.now() + core_.options.handshake_timeout,
                             reading_end_.token());
    while (controller_ == nullptr) {
      Result<void> taken = co_await take_one(handshake.token());
      if (!taken) co_return taken;
    }
  }
  for (;;) {
    Result<void> taken = co_await take_one(reading_end_.token());
    if (!taken) co_return taken;
  }
}

std::unexpected<Error> TargetConnection::fault(nvme::PduFault fault, Bytes header) {
  if (fault.error != nvme::FatalError::kNone) {
    farewell_size_ = nvme::build_term_req(farewell_, nvme::End::kController, fault, header);
    out_ready_.set();
  }
  return fail(Errc::kInvalid, "PDU", static_cast<int32_t>(fault.error));
}

task::Task<Result<void>> TargetConnection::take_one(task::CancelToken token) {
  if (receiver_.bytes().size() < sizeof(nvme::CommonHeader)) {
    Result<void> read = co_await receiver_.at_least(sizeof(nvme::CommonHeader), token);
    if (!read) co_return read;
  }
  const auto common = load<nvme::CommonHeader>(receiver_.bytes());
  const nvme::PduResult<uint32_t> header_size = nvme::check_common_header(common, rules_);
  if (!header_size) {
    if (!rules_.established && looks_like_client_hello(receiver_.bytes())) {
      co_await note_client_hello();
    }
    co_return fault(header_size.error(), receiver_.bytes().first(sizeof(nvme::CommonHeader)));
  }
  if (receiver_.bytes().size() < *header_size) {
    Result<void> read = co_await receiver_.at_least(*header_size, token);
    if (!read) co_return read;
  }
  nvme::PduResult<nvme::Pdu> pdu = nvme::check_pdu(receiver_.bytes(), rules_);
  if (!pdu) {
    const size_t length = std::min<size_t>(receiver_.bytes().size(), common.header_length);
    co_return fault(pdu.error(), receiver_.bytes().first(length));
  }
  // A capsule is taken whole; the data of H2CData goes straight to its command.
  if (pdu->type != nvme::PduType::kH2cData && receiver_.bytes().size() < pdu->length) {
    CHECK(pdu->length <= kAdminStagingSize, "the rules bound every PDU but H2CData");
    Result<void> read = co_await receiver_.at_least(pdu->length, token);
    if (!read) co_return read;
    pdu->header = receiver_.bytes().first(pdu->header.size());  // it may have moved
  }
  co_return co_await take_pdu(*pdu, token);
}

// The host is told in our own language, a TermReq; why is for the log.
task::Task<void> TargetConnection::note_client_hello() {
  const nvme::TlsFailure failure{.peer = peer_, .why = "it speaks TLS, and this listener does not"};
  co_await env::call_on(core_.env, core_.control,
                        [&](env::Env&) { core_.registry.tls_failed(failure); });
}

task::Task<Result<void>> TargetConnection::take_pdu(const nvme::Pdu& pdu, task::CancelToken token) {
  switch (pdu.type) {
    case nvme::PduType::kCapsuleCmd:
      return take_capsule(pdu, token);
    case nvme::PduType::kH2cData:
      return take_data(pdu, token);
    default:
      break;
  }
  return take_other(pdu);
}

task::Task<Result<void>> TargetConnection::take_other(const nvme::Pdu& pdu) {
  if (pdu.type == nvme::PduType::kIcReq) {
    take_ic_req(pdu.as<nvme::IcReq>());
    receiver_.take(pdu.length);
    co_return Result<void>{};
  }
  // The only other PDU a host sends: it has found something wrong with ours.
  const auto request = pdu.as<nvme::TermReq>();
  co_return fail(Errc::kReset, "the host sent a TermReq", request.fatal_error.value());
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

task::Task<Result<void>> TargetConnection::take_capsule(const nvme::Pdu& pdu,
                                                        task::CancelToken token) {
  if (draining_) {
    // Its host sends it again, elsewhere or later: it was neither begun nor answered.
    receiver_.take(pdu.length);
    co_return Result<void>{};
  }
  TcpCommand* command = take_slot();
  if (command == nullptr) co_return fault(nvme::sequence_fault(), pdu.header);
  traffic_ = true;
  command->sqe = load<nvme::CapsuleCmd>(pdu.header).sqe;
  if (queue_entries_ > 0) sq_head_ = static_cast<uint16_t>((sq_head_ + 1) % queue_entries_);
  if (pdu.data_length > 0) {
    command->pointer.in_capsule = true;
    Result<Buffer> buffer = co_await core_.in_capsule.allocate(pdu.data_length, token);
    if (!buffer) {
      free_slot(*command);
      co_return fail(buffer.error());
    }
    const Bytes data = receiver_.bytes().subspan(pdu.data_offset, pdu.data_length);
    std::memcpy(buffer->data(), data.data(), data.size());
    command->data = std::move(*buffer);
    if (pdu.data_digest) {
      const Bytes digest = receiver_.bytes().subspan(pdu.data_offset + pdu.data_length);
      command->data_corrupt = !nvme::data_digest_matches(std::span(&data, 1), digest);
    }
  }
  receiver_.take(pdu.length);
  command->owns_cid = cids_.add(command->sqe.cid);
  if (!command->owns_cid) {
    command->complete(
        nvme::make_cqe(command->sqe, nvme::final(nvme::StatusCode::kCommandIdConflict)));
    co_return Result<void>{};
  }
  const auto pointer = nvme::decode_data_pointer(command->sqe, pdu.data_length);
  if (!pointer) {
    command->complete(nvme::make_cqe(command->sqe, pointer.error()));
    co_return Result<void>{};
  }
  command->pointer = *pointer;
  if (pointer->in_capsule && pointer->length > 0) {
    command->piece = command->data.subspan(pointer->offset, pointer->length);
  }
  if (controller_ == nullptr) co_return co_await this->connect(*command);
  dispatch(*command);
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
    read = co_await receiver_.at_least(nvme::kDigestSize, token);
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
