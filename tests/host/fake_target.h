// SPDX-License-Identifier: Apache-2.0
// FakeTarget: an NVMe/TCP target made of bytes, which a test can have misbehave in any way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/list.h"
#include "env/env.h"
#include "nvme/format/ana_format.h"
#include "nvme/format/command_format.h"
#include "nvme/format/discovery_format.h"
#include "nvme/format/event_format.h"
#include "nvme/format/fabrics_format.h"
#include "nvme/format/pdu.h"
#include "nvme/format/pdu_build.h"
#include "stream/receiver.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::host_tests {

inline constexpr uint16_t kPort = 4420;
inline constexpr std::string_view kNqn = "nqn.2026-11.io.cairn:fake";

// What a namespace stores; several targets may serve one.
struct FakeMedium {
  explicit FakeMedium(uint64_t count = 8192) : blocks(count), bytes(count * kBlock) {}
  static constexpr uint32_t kBlock = 512;
  uint64_t blocks;
  std::vector<std::byte> bytes;
  std::array<uint8_t, 16> nguid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
};

class FakeConnection;

// What becomes of a command.
enum class Verdict : uint8_t {
  kServe,    // executed and answered
  kExecute,  // executed, never answered
  kIgnore,   // neither
  kDrop,     // the connection is reset
  kTaken,    // the hook answers, now or later
};

// Facts and faults of a target. Changed at any time by the test, which lives outside the
// simulation.
struct FakeOptions {
  bool any_nqn = false;
  uint32_t h2c_data_max = 65536;
  uint8_t data_alignment = 0;      // CPDA
  uint32_t in_capsule_max = 8192;  // IOCCSZ
  uint32_t r2t_bytes = 32768;      // asked for at once
  uint32_t c2h_bytes = 0;          // per C2HData; 0: all
  bool success_flag = true;        // with the last C2HData
  uint16_t entries_max = 1023;     // MQES
  uint16_t queues_max = 8;
  uint8_t mdts = 0;
  uint16_t oncs = 0xffff;
  uint16_t fuses = 1;
  uint8_t write_cache = 1;
  uint8_t deallocate = 9;          // DLFEAT
  uint16_t atomic_power_fail = 7;  // NAWUPF
  bool ana = false;
  nvme::AnaState ana_state = nvme::AnaState::kOptimized;
  uint32_t never_ready = 0;  // so many reads of CSTS before RDY
  std::vector<nvme::DiscoveryEntry> discovery;
  uint64_t generation = 1;
  uint8_t header_flip = 0;  // xor into the first byte of header digests sent
  uint8_t data_flip = 0;    // the same of data digests
  Duration latency;         // of each answer
  // Asked for each command that arrived in full but for its R2T data.
  std::function<Verdict(FakeConnection&, const nvme::Sqe&)> on_command;
  // Asked for each connection: false refuses it.
  std::function<bool()> on_accept;
  // Asked in place of the answer to ICReq.
  std::function<std::vector<std::byte>(const nvme::IcReq&)> on_ic_req;
};

class FakeTarget {
 public:
  explicit FakeTarget(std::shared_ptr<FakeMedium> medium = std::make_shared<FakeMedium>())
      : medium(std::move(medium)) {}

  // The program of a node: serves until stopped.
  env::Program program(uint16_t port = kPort);
  // Sends an event to every host that waits for one.
  void notify(const nvme::AsynchronousEvent& event);
  // Ends every connection.
  void drop_all();

  uint64_t count(nvme::IoOpcode opcode) const { return io_count[static_cast<uint8_t>(opcode)]; }
  uint64_t count(nvme::AdminOpcode opcode) const {
    return admin_count[static_cast<uint8_t>(opcode)];
  }

  FakeOptions options;
  std::shared_ptr<FakeMedium> medium;
  std::array<uint64_t, 256> io_count{};
  std::array<uint64_t, 256> admin_count{};
  uint64_t connects = 0;     // admin queues connected
  uint64_t io_connects = 0;  // I/O queues connected
  uint64_t r2ts = 0;
  uint64_t in_capsule = 0;  // commands with data in their capsule
  uint64_t term_reqs = 0;   // received
  uint16_t last_term_error = 0;
  uint32_t shutdowns = 0;
  uint32_t data_errors = 0;  // data digests that did not match
  nvme::ConnectData last_connect;
  nvme::ConnectCommand last_command;
  List<FakeConnection> connections;
};

// One connection, used by hooks to answer in their own way.
class FakeConnection : public ListHook<> {
 public:
  FakeConnection(env::Env& env, FakeTarget& target, std::unique_ptr<env::Stream> stream)
      : env_(env), target_(target), stream_(std::move(stream)), receiver_(*stream_, 128 * 1024) {}

  task::Task<void> run();

  bool is_admin() const { return queue_id_ == 0; }
  uint16_t queue_id() const { return queue_id_; }
  FakeTarget& target() { return target_; }
  const nvme::PduStyle& style() const { return style_; }

  // Queues bytes to be sent in order.
  void send(Bytes bytes);
  void respond(uint16_t cid, nvme::Status status, uint64_t result = 0);
  // C2HData of all of `data` as the options say, and the answer.
  void send_data(uint16_t cid, Bytes data);
  void send_c2h(const nvme::DataPiece& piece, Bytes data, nvme::C2hEnd end);
  void send_r2t(const nvme::DataPiece& piece);
  void reset() { stream_->reset(); }

  std::vector<uint16_t> event_requests;  // command ids of waiting event requests

 private:
  struct PendingWrite {
    nvme::Sqe sqe;
    std::vector<std::byte> data;
    nvme::TransferWindow window;
    Verdict verdict{};
  };
  task::Task<Result<void>> take_one();
  task::Task<void> write_loop();
  bool take(const nvme::Pdu& pdu, Bytes whole);
  void greet(const nvme::IcReq& request);
  bool take_capsule(const nvme::Pdu& pdu, Bytes whole);
  bool take_data(const nvme::Pdu& pdu, Bytes whole);
  void ask(uint16_t ttag);
  void execute(const nvme::Sqe& sqe, MutableBytes data, bool answer);
  void fabrics(const nvme::Sqe& sqe, Bytes data);
  void admin(const nvme::Sqe& sqe);
  void identify(const nvme::Sqe& sqe);
  void log_page(const nvme::Sqe& sqe);
  void io(const nvme::Sqe& sqe, MutableBytes data, bool answer);

  env::Env& env_;
  FakeTarget& target_;
  std::unique_ptr<env::Stream> stream_;
  stream::Receiver receiver_;
  nvme::PduRules rules_{.receiver = nvme::End::kController};
  nvme::PduStyle style_;
  uint16_t queue_id_ = 0;
  uint32_t csts_reads_ = 0;
  uint32_t configuration_ = 0;
  std::map<uint16_t, PendingWrite> writes_;  // by TTAG
  uint16_t next_ttag_ = 7;
  bool fused_failed_ = false;
  std::vector<std::byte> out_;
  task::Event out_ready_;
  bool ended_ = false;
};

}  // namespace cairn::host_tests
