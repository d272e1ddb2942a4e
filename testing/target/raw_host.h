// SPDX-License-Identifier: Apache-2.0
// RawHost: one connection to a target, PDU by PDU, with nothing hidden and nothing forbidden.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "env/env.h"
#include "nvme/format/command_format.h"
#include "nvme/format/fabrics_format.h"
#include "nvme/format/io_format.h"
#include "nvme/format/pdu_build.h"
#include "nvme/format/tcp_format.h"
#include "task/task.h"

namespace cairn::target_tests {

// A PDU as it came.
struct Received {
  nvme::CommonHeader common;
  std::vector<std::byte> bytes;  // all of it

  nvme::PduType type() const { return common.type; }
  template <class Layout>
  Layout as() const {
    return load<Layout>(bytes);
  }
  Bytes data() const;  // of C2HData
};

// "R2T", "ICResp", or "end" for none: what EXPECT_EQ compares.
std::string name_of(const std::optional<Received>& pdu);

struct QueueWish {
  uint16_t id = 0;
  uint16_t size = 31;  // SQSIZE
  uint16_t controller = nvme::kAnyController;
  uint8_t attributes = nvme::ConnectAttributes::kNoFlowControl;
  uint32_t keep_alive_ms = 0;
  std::string nqn;  // empty: the box's
  std::string host_nqn = "nqn.2026-11.io.cairn:raw";
  uint8_t host_number = 1;
};

class RawHost {
 public:
  explicit RawHost(env::Env& env) : env_(env) {}

  task::Task<void> dial(env::Address to);
  // ICReq and its answer.
  task::Task<void> greet(nvme::IcReqOptions options = {});
  // dial, greet, Connect of the admin queue, and CC.EN.
  task::Task<void> arrive(env::Address to, nvme::IcReqOptions options = {}, QueueWish wish = {});
  // Another connection: an I/O queue of the controller of `admin`.
  task::Task<void> join(env::Address to, const RawHost& admin, uint16_t queue_id,
                        nvme::IcReqOptions options = {}, uint16_t size = 31);

  task::Task<Result<void>> send(Bytes bytes);
  // The same where nothing may go wrong.
  task::Task<void> deliver(std::vector<std::byte> bytes);
  // The next PDU; none when the target has ended the connection.
  task::Task<std::optional<Received>> receive();
  // The next answer; anything else fails the test.
  task::Task<nvme::Cqe> answer();

  // A capsule as bytes, with its data and digests.
  std::vector<std::byte> capsule(const nvme::Sqe& sqe, Bytes data = {}) const;
  std::vector<std::byte> h2c_data(const nvme::DataPiece& piece, Bytes data, bool last = true) const;
  std::vector<std::byte> connect_capsule(const QueueWish& wish, uint16_t cid = 1) const;

  // Sends a command and takes its answer.
  task::Task<nvme::Cqe> ask(const nvme::Sqe& sqe, Bytes data = {});
  task::Task<nvme::Cqe> connect(QueueWish wish);
  // Answers one R2T of a command with its part of `all`, and says what it was.
  task::Task<nvme::R2t> send_asked(Bytes all);
  // A write by R2Ts, to its answer.
  task::Task<nvme::Cqe> write_by_r2t(nvme::Sqe sqe, Bytes data);
  // A read to its end: the data, empty when it failed with `last`.
  task::Task<std::vector<std::byte>> read(uint32_t nsid, uint64_t lba, uint32_t blocks);

  uint16_t next_cid() { return ++cid_; }
  nvme::Sqe io(nvme::IoOpcode opcode, uint64_t lba, uint32_t blocks, uint32_t nsid = 1);

  nvme::PduStyle style;
  uint16_t controller_id = nvme::kAnyController;
  nvme::Cqe last;
  std::unique_ptr<env::Stream> stream;

 private:
  env::Env& env_;
  uint16_t cid_ = 100;
};

// The target sends this TermReq, perhaps after answers, and then ends the connection.
task::Task<void> expect_term_req(RawHost& host, nvme::FatalError error, uint32_t information,
                                 std::string what);
// The target ends the connection, perhaps after answers, without a TermReq.
task::Task<void> expect_end(RawHost& host);

std::string text_of(const nvme::Cqe& cqe);

}  // namespace cairn::target_tests
