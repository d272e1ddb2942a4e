// SPDX-License-Identifier: Apache-2.0
#include "host/fake_target.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "nvme/format/data_pointer.h"
#include "nvme/format/field.h"
#include "nvme/format/property_format.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/sync.h"

namespace cairn::host_tests {

using nvme::PduType;
using nvme::Status;
using nvme::StatusCode;

namespace {

task::Task<void> serve(env::Env& env, FakeTarget& target, env::Connection opened) {
  FakeConnection connection(env, target, env.open(std::move(opened)));
  target.connections.push_back(connection);
  co_await connection.run();
}

// A test that calls the target from outside wakes nobody: the target looks around by itself.
task::Task<void> look_around(env::Env& env) {
  while (true) {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms, env.stop_token());
    if (!slept) co_return;
  }
}

task::Task<void> serve_all(env::Env& env, FakeTarget& target, uint16_t port) {
  Result<std::unique_ptr<env::Listener>> listener =
      env.listen(env::Address::ip4(0, 0, 0, 0, port), {});
  if (!listener) co_return;
  task::Gate gate;
  gate.spawn(look_around(env));
  while (true) {
    Result<env::Connection> accepted = co_await (*listener)->accept(env.stop_token());
    if (!accepted) break;
    if (target.options.on_accept && !target.options.on_accept()) continue;
    gate.spawn(serve(env, target, std::move(*accepted)));
  }
  target.drop_all();
  co_await gate.close();
}

void flip(MutableBytes digest, uint8_t mask) { digest[0] ^= std::byte{mask}; }

}  // namespace

env::Program FakeTarget::program(uint16_t port) {
  return [this, port](env::Env& env) { return serve_all(env, *this, port); };
}

void FakeTarget::notify(const nvme::AsynchronousEvent& event) {
  connections.for_each([&](FakeConnection& connection) {
    if (!connection.is_admin() || connection.event_requests.empty()) return;
    const uint16_t cid = connection.event_requests.back();
    connection.event_requests.pop_back();
    connection.respond(cid, {}, event.encode());
  });
}

void FakeTarget::drop_all() {
  connections.for_each([](FakeConnection& connection) { connection.reset(); });
}

// --- bytes --------------------------------------------------------------------------------------

task::Task<void> FakeConnection::run() {
  task::Task<void> writer = write_loop();
  while (true) {
    const Result<void> taken = co_await take_one();
    if (!taken) break;
  }
  ended_ = true;
  out_ready_.set();
  stream_->reset();
  co_await writer;
}

task::Task<void> FakeConnection::write_loop() {
  while (true) {
    const Result<void> ready = co_await out_ready_.wait();
    CHECK(ready.has_value());
    out_ready_.reset();
    if (target_.options.latency > 0_s) {
      const Result<void> slept =
          co_await task::sleep_for(env_, target_.options.latency, env_.stop_token());
      if (!slept) co_return;
    }
    const std::vector<std::byte> bytes = std::exchange(out_, {});
    const Result<void> written = co_await stream_->write(bytes);
    if (!written || ended_) co_return;
  }
}

void FakeConnection::send(Bytes bytes) {
  out_.insert(out_.end(), bytes.begin(), bytes.end());
  out_ready_.set();
}

task::Task<Result<void>> FakeConnection::take_one() {
  Result<void> read = co_await receiver_.wait_for(sizeof(nvme::CommonHeader), {});
  if (!read) co_return read;
  const auto common = load<nvme::CommonHeader>(receiver_.bytes());
  const auto header_size = nvme::check_common_header(common, rules_);
  if (!header_size) co_return fail(Errc::kInvalid, "header");
  read = co_await receiver_.wait_for(common.length, {});
  if (!read) co_return read;
  const auto pdu = nvme::check_pdu(receiver_.bytes(), rules_);
  if (!pdu) co_return fail(Errc::kInvalid, "PDU");
  const bool go_on = take(*pdu, receiver_.bytes().first(common.length));
  receiver_.take(common.length);
  if (!go_on) co_return fail(Errc::kReset, "dropped");
  co_return Result<void>{};
}

bool FakeConnection::take(const nvme::Pdu& pdu, Bytes whole) {
  switch (pdu.type) {
    case PduType::kIcReq:
      greet(pdu.as<nvme::IcReq>());
      return true;
    case PduType::kCapsuleCmd:
      return take_capsule(pdu, whole);
    case PduType::kH2cData:
      return take_data(pdu, whole);
    default:
      ++target_.term_reqs;
      target_.last_term_error = pdu.as<nvme::TermReq>().fatal_error;
      return false;
  }
}

void FakeConnection::greet(const nvme::IcReq& request) {
  const FakeOptions& options = target_.options;
  style_ = {.header_digest = (request.digests & nvme::DigestEnable::kHeader) != 0,
            .data_digest = (request.digests & nvme::DigestEnable::kData) != 0,
            .data_alignment = 0};
  rules_.header_digest = style_.header_digest;
  rules_.data_digest = style_.data_digest;
  rules_.data_alignment = options.data_alignment;
  rules_.h2c_data_max = options.h2c_data_max;
  rules_.in_capsule_max = nvme::kAdminInCapsuleMax;
  rules_.established = true;
  if (options.on_ic_req) return send(options.on_ic_req(request));
  std::array<std::byte, sizeof(nvme::IcResp)> response;
  nvme::build_ic_resp(response, {.data_alignment = options.data_alignment,
                                 .header_digest = style_.header_digest,
                                 .data_digest = style_.data_digest,
                                 .h2c_data_max = options.h2c_data_max});
  send(response);
}

bool FakeConnection::take_capsule(const nvme::Pdu& pdu, Bytes whole) {
  const nvme::Sqe sqe = load<nvme::CapsuleCmd>(pdu.header).sqe;
  const Bytes data = whole.subspan(pdu.data_offset, pdu.data_length);
  if (pdu.data_digest &&
      !nvme::data_digest_matches(std::span(&data, 1), whole.last(nvme::kDigestSize))) {
    ++target_.data_errors;
  }
  if (!data.empty()) ++target_.in_capsule;
  if (!sqe.is_fabrics()) ++(is_admin() ? target_.admin_count : target_.io_count)[sqe.opcode];
  const Verdict verdict =
      target_.options.on_command ? target_.options.on_command(*this, sqe) : Verdict::kServe;
  if (verdict == Verdict::kDrop) return false;
  if (verdict == Verdict::kIgnore || verdict == Verdict::kTaken) return true;
  const auto pointer = nvme::decode_data_pointer(sqe, pdu.data_length);
  if (!pointer) {
    respond(sqe.cid, pointer.error());
    return true;
  }
  const bool to_us = sqe.transfer() == nvme::Transfer::kHostToController;
  if (to_us && !pointer->in_capsule && pointer->length > 0) {
    const uint16_t ttag = next_ttag_++;
    writes_[ttag] = {.sqe = sqe,
                     .data = std::vector<std::byte>(pointer->length),
                     .window = {},
                     .verdict = verdict};
    ask(ttag);
    return true;
  }
  std::vector<std::byte> copy(data.begin(), data.end());
  execute(sqe, copy, verdict == Verdict::kServe);
  return true;
}

void FakeConnection::ask(uint16_t ttag) {
  PendingWrite& write = writes_[ttag];
  const uint32_t begin = write.window.end;
  const auto rest = static_cast<uint32_t>(write.data.size()) - begin;
  const uint32_t length = std::min(rest, target_.options.r2t_bytes);
  write.window = {.begin = begin, .next = begin, .end = begin + length};
  send_r2t({.cid = write.sqe.cid, .ttag = ttag, .offset = begin, .length = length});
}

bool FakeConnection::take_data(const nvme::Pdu& pdu, Bytes whole) {
  const auto header = pdu.as<nvme::DataPdu>();
  const auto found = writes_.find(header.ttag);
  if (found == writes_.end()) return false;
  PendingWrite& write = found->second;
  if (!nvme::check_h2c_data(pdu, write.sqe.cid, write.window)) return false;
  const Bytes data = whole.subspan(pdu.data_offset, pdu.data_length);
  if (pdu.data_digest &&
      !nvme::data_digest_matches(std::span(&data, 1), whole.last(nvme::kDigestSize))) {
    ++target_.data_errors;
  }
  std::memcpy(write.data.data() + header.offset, data.data(), data.size());
  write.window.next += header.length;
  if (write.window.next < write.window.end) return true;
  if (write.window.end < write.data.size()) {
    ask(header.ttag);
    return true;
  }
  PendingWrite done = std::move(write);
  writes_.erase(found);
  execute(done.sqe, done.data, done.verdict == Verdict::kServe);
  return true;
}

// --- answers ------------------------------------------------------------------------------------

void FakeConnection::respond(uint16_t cid, Status status, uint64_t result) {
  nvme::Cqe cqe;
  cqe.cid = cid;
  cqe.sqhd = nvme::kNoSqHead;
  cqe.set_status(status);
  cqe.set_result64(result);
  std::array<std::byte, 32> pdu;
  const size_t size = nvme::build_capsule_resp(pdu, style_, cqe);
  if (style_.header_digest) flip(MutableBytes(pdu).subspan(size - 4), target_.options.header_flip);
  send(Bytes(pdu).first(size));
}

void FakeConnection::send_c2h(const nvme::DataPiece& piece, Bytes data, nvme::C2hEnd end) {
  std::array<std::byte, nvme::kPduPrefixMax> prefix;
  send(Bytes(prefix).first(nvme::build_c2h_data(prefix, style_, piece, end)));
  send(data);
  if (!style_.data_digest) return;
  auto digest = nvme::data_digest(std::span(&data, 1));
  flip(digest, target_.options.data_flip);
  send(digest);
}

void FakeConnection::send_data(uint16_t cid, Bytes data) {
  const FakeOptions& options = target_.options;
  const size_t step = options.c2h_bytes > 0 ? options.c2h_bytes : data.size();
  for (size_t done = 0; done < data.size(); done += step) {
    const Bytes piece = data.subspan(done, std::min(step, data.size() - done));
    const bool last = done + piece.size() == data.size();
    const nvme::C2hEnd end = !last                  ? nvme::C2hEnd::kMore
                             : options.success_flag ? nvme::C2hEnd::kLastWithSuccess
                                                    : nvme::C2hEnd::kLast;
    send_c2h({.cid = cid,
              .offset = static_cast<uint32_t>(done),
              .length = static_cast<uint32_t>(piece.size())},
             piece, end);
  }
  if (!options.success_flag) respond(cid, {});
}

void FakeConnection::send_r2t(const nvme::DataPiece& piece) {
  ++target_.r2ts;
  std::array<std::byte, 32> pdu;
  send(Bytes(pdu).first(nvme::build_r2t(pdu, style_, piece)));
}

void FakeConnection::execute(const nvme::Sqe& sqe, MutableBytes data, bool answer) {
  if (sqe.is_fabrics()) return fabrics(sqe, data);
  if (is_admin()) return admin(sqe);
  io(sqe, data, answer);
}

}  // namespace cairn::host_tests
