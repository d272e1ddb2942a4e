// SPDX-License-Identifier: Apache-2.0
#include "testing/target/raw_host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "env/io.h"
#include "nvme/format/property_format.h"
#include "testing/target/box.h"
#include "testing/worlds/verbs.h"

namespace cairn::target_tests {

using conformance::must;
using nvme::PduType;
using nvme::Sqe;

namespace {

void append(std::vector<std::byte>& to, Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

Bytes Received::data() const {
  const auto header = as<nvme::DataPdu>();
  return Bytes(bytes).subspan(common.data_offset, header.length);
}

std::string name_of(const std::optional<Received>& pdu) {
  return pdu ? std::string(nvme::name(pdu->type())) : "end";
}

std::string text_of(const nvme::Cqe& cqe) {
  return nvme::text(cqe.get_status(), nvme::StatusContext::kNvm);
}

task::Task<void> RawHost::dial(env::Address to) {
  Result<env::Connection> connection = co_await env_.connect(std::move(to));
  stream = env_.open(must(std::move(connection)));
}

task::Task<void> RawHost::greet(nvme::IcReqOptions options) {
  std::vector<std::byte> request(sizeof(nvme::IcReq));
  nvme::build_ic_req(request, options);
  co_await deliver(request);
  const std::optional<Received> response = co_await receive();
  EXPECT_EQ(name_of(response), "ICResp");
  style = {.header_digest = options.header_digest, .data_digest = options.data_digest};
}

task::Task<void> RawHost::arrive(env::Address to, nvme::IcReqOptions options, QueueWish wish) {
  co_await dial(std::move(to));
  co_await greet(options);
  const nvme::Cqe cqe = co_await connect(wish);
  EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
  nvme::PropertyCommand enable;
  enable.type = nvme::FabricsType::kPropertySet;
  enable.offset = static_cast<uint32_t>(nvme::PropertyOffset::kConfiguration);
  enable.value =
      nvme::Configuration{.enable = true, .submission_entry_size = 6, .completion_entry_size = 4}
          .encode();
  const nvme::Cqe enabled = co_await ask(nvme::to_sqe(enable));
  EXPECT_TRUE(enabled.get_status().ok()) << text_of(enabled);
}

task::Task<void> RawHost::join(env::Address to, const RawHost& admin, uint16_t queue_id,
                               nvme::IcReqOptions options, uint16_t size) {
  co_await dial(std::move(to));
  co_await greet(options);
  const nvme::Cqe cqe =
      co_await connect({.id = queue_id, .size = size, .controller = admin.controller_id});
  EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
}

task::Task<Result<void>> RawHost::send(Bytes bytes) {
  const Result<void> written = co_await stream->write(bytes);
  co_return written;
}

task::Task<void> RawHost::deliver(std::vector<std::byte> bytes) {
  const Result<void> sent = co_await send(bytes);
  must(sent);
}

task::Task<std::optional<Received>> RawHost::receive() {
  Received pdu;
  pdu.bytes.resize(sizeof(nvme::CommonHeader));
  const Result<void> head = co_await env::read_exactly(*stream, MutableBytes(pdu.bytes));
  if (!head) co_return std::nullopt;
  pdu.common = load<nvme::CommonHeader>(pdu.bytes);
  pdu.bytes.resize(std::max<size_t>(pdu.common.length, pdu.bytes.size()));
  const MutableBytes rest = MutableBytes(pdu.bytes).subspan(sizeof(nvme::CommonHeader));
  const Result<void> body = co_await env::read_exactly(*stream, rest);
  if (!body) co_return std::nullopt;
  co_return pdu;
}

task::Task<nvme::Cqe> RawHost::answer() {
  const std::optional<Received> pdu = co_await receive();
  EXPECT_EQ(name_of(pdu), "CapsuleResp");
  if (!pdu || pdu->type() != PduType::kCapsuleResp) co_return nvme::Cqe{};
  co_return pdu->as<nvme::CapsuleResp>().cqe;
}

std::vector<std::byte> RawHost::capsule(const Sqe& sqe, Bytes data) const {
  std::vector<std::byte> bytes(nvme::kPduPrefixMax);
  bytes.resize(nvme::build_capsule_cmd(bytes, style, sqe, static_cast<uint32_t>(data.size())));
  append(bytes, data);
  if (style.data_digest && !data.empty()) append(bytes, nvme::data_digest(std::span(&data, 1)));
  return bytes;
}

std::vector<std::byte> RawHost::h2c_data(const nvme::DataPiece& piece, Bytes data,
                                         bool last_piece) const {
  std::vector<std::byte> bytes(nvme::kPduPrefixMax);
  bytes.resize(nvme::build_h2c_data(bytes, style, piece, last_piece));
  append(bytes, data);
  if (style.data_digest) append(bytes, nvme::data_digest(std::span(&data, 1)));
  return bytes;
}

std::vector<std::byte> RawHost::connect_capsule(const QueueWish& wish, uint16_t cid) const {
  nvme::ConnectCommand command;
  command.cid = cid;
  command.queue_id = wish.id;
  command.queue_size = wish.size;
  command.attributes = wish.attributes;
  command.keep_alive_ms = wish.keep_alive_ms;
  nvme::ConnectData data;
  data.host_id[0] = wish.host_number;
  data.controller_id = wish.controller;
  data.subsystem_nqn.set(wish.nqn.empty() ? kNqn : wish.nqn);
  data.host_nqn.set(wish.host_nqn);
  return capsule(nvme::to_sqe(command), std::as_bytes(std::span(&data, 1)));
}

task::Task<nvme::Cqe> RawHost::connect(QueueWish wish) {
  const std::vector<std::byte> bytes = connect_capsule(wish);
  co_await deliver(bytes);
  last = co_await answer();
  if (last.get_status().ok()) controller_id = static_cast<uint16_t>(last.dw0);
  co_return last;
}

task::Task<nvme::Cqe> RawHost::ask(const Sqe& sqe, Bytes data) {
  const std::vector<std::byte> bytes = capsule(sqe, data);
  co_await deliver(bytes);
  last = co_await answer();
  EXPECT_EQ(last.cid, sqe.cid);
  co_return last;
}

task::Task<nvme::R2t> RawHost::send_asked(Bytes all) {
  const std::optional<Received> pdu = co_await receive();
  EXPECT_EQ(name_of(pdu), "R2T");
  if (!pdu || pdu->type() != PduType::kR2t) co_return nvme::R2t{};
  const auto r2t = pdu->as<nvme::R2t>();
  const nvme::DataPiece piece{
      .cid = r2t.cid, .ttag = r2t.ttag, .offset = r2t.offset, .length = r2t.length};
  co_await deliver(h2c_data(piece, all.subspan(r2t.offset, r2t.length)));
  co_return r2t;
}

task::Task<nvme::Cqe> RawHost::write_by_r2t(Sqe sqe, Bytes data) {
  sqe.sgl1 = nvme::SglDescriptor::transport(static_cast<uint32_t>(data.size()));
  co_await deliver(capsule(sqe));
  size_t sent = 0;
  while (sent < data.size()) {
    const nvme::R2t r2t = co_await send_asked(data);
    if (r2t.length == 0) break;
    sent += r2t.length;
  }
  last = co_await answer();
  co_return last;
}

task::Task<std::vector<std::byte>> RawHost::read(uint32_t nsid, uint64_t lba, uint32_t blocks) {
  Sqe sqe = io(nvme::IoOpcode::kRead, lba, blocks, nsid);
  sqe.sgl1 = nvme::SglDescriptor::transport(blocks * kBlock);
  co_await deliver(capsule(sqe));
  std::vector<std::byte> data;
  for (;;) {
    const std::optional<Received> pdu = co_await receive();
    if (!pdu || (pdu->type() != PduType::kC2hData && pdu->type() != PduType::kCapsuleResp)) {
      ADD_FAILURE() << "a read is answered by " << name_of(pdu);
      co_return data;
    }
    if (pdu->type() == PduType::kCapsuleResp) {
      last = pdu->as<nvme::CapsuleResp>().cqe;
      co_return data;
    }
    append(data, pdu->data());
    last = {};
    if ((pdu->common.flags & nvme::PduFlags::kSuccess) != 0) co_return data;
  }
}

Sqe RawHost::io(nvme::IoOpcode opcode, uint64_t lba, uint32_t blocks, uint32_t nsid) {
  Sqe sqe = Sqe::make(opcode, nsid);
  nvme::BlockFields{.start = Lba(lba), .blocks = blocks}.encode(sqe);
  sqe.cid = next_cid();
  return sqe;
}

task::Task<void> expect_term_req(RawHost& host, nvme::FatalError error, uint32_t information,
                                 std::string what) {
  for (;;) {
    const std::optional<Received> pdu = co_await host.receive();
    if (pdu && pdu->type() != PduType::kC2hTermReq) continue;
    EXPECT_EQ(name_of(pdu), "C2HTermReq") << what;
    if (!pdu) co_return;
    const auto request = pdu->as<nvme::TermReq>();
    EXPECT_EQ(request.fatal_error, static_cast<uint16_t>(error)) << what;
    EXPECT_EQ(request.information, information) << what;
    break;
  }
  const std::optional<Received> end = co_await host.receive();
  EXPECT_EQ(name_of(end), "end") << what;
}

task::Task<void> expect_end(RawHost& host) {
  for (;;) {
    const std::optional<Received> pdu = co_await host.receive();
    if (!pdu) co_return;
    EXPECT_NE(name_of(pdu), "C2HTermReq");
  }
}

}  // namespace cairn::target_tests
