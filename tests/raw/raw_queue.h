// SPDX-License-Identifier: Apache-2.0
// RawQueue: an I/O queue that asks for anything a host may, in any order a host may, and knows
// which answers are right.
//
// Many commands at once over the same few blocks: reads, writes by capsule and by R2T, compares,
// fused pairs, firsts without a second, copies and flushes. Others abort them or fence the host off
// meanwhile. Data is sent late, in pieces, and sometimes after its command has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "env/env.h"
#include "nvme/format/command_format.h"
#include "raw/history.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "testing/target/raw_host.h"

namespace cairn::raw_tests {

// Where commands go: writes to the first part of the drive, copies from there to the second.
inline constexpr uint64_t kWrittenBlocks = 512;
inline constexpr uint64_t kCopyAt = 1024;
inline constexpr uint64_t kDriveBlocks = 2048;

struct RawQueueOptions {
  uint32_t host = 1;  // its number, which is that of its reservations too
  uint32_t rounds = 100;
  uint32_t depth = 60;       // commands at once
  uint32_t pair_blocks = 1;  // of a fused pair at most
  bool only_pairs = false;   // by R2T, as many at once as there is room for
};

class RawQueue {
 public:
  RawQueue(env::Env& env, History& history, Rng rng, const RawQueueOptions& options)
      : env_(env), history_(history), rng_(rng), options_(options), host_(env) {}

  // As queue `id` of the controller of `admin`.
  task::Task<void> connect(env::Address to, const target_tests::RawHost& admin, uint16_t id,
                           std::string nqn, nvme::IcReqOptions style);
  // So many rounds of commands to the last answer, then the end of the connection.
  task::Task<void> run();
  // While held, it asks for nothing new.
  void hold(bool held) {
    is_held_ = held;
    changed_.set();
  }
  bool is_idle() const { return pending_.empty(); }
  bool has_ended() const { return has_ended_; }
  // One that is under way, if there are any.
  std::optional<uint16_t> any_command();
  uint64_t answers() const { return answers_; }

 private:
  enum class Kind : uint8_t {
    kRead,
    kReadCopy,
    kWrite,
    kCompare,
    kFirst,
    kSecond,
    kLone,
    kCopy,
    kFlush
  };
  struct Pending {
    Kind kind{};
    History::Range range;
    uint64_t begun = 0;
    uint64_t value = 0;                  // that it writes, or expects
    std::vector<std::byte> data;         // to the target, or from it
    uint16_t partner = 0;                // of a pair: the other's id
    bool in_capsule = false;             // its data went with it
    std::optional<nvme::Status> status;  // of a half whose other is not answered
  };

  task::Task<void> receive_all();
  task::Task<void> send(std::vector<std::byte> bytes);
  // Waits until there is room for `commands` more.
  task::Task<void> wait_for_room(uint32_t commands);
  task::Task<void> answer_r2t(nvme::R2t r2t, std::vector<std::byte> data, uint64_t begun,
                              Duration delay);

  std::vector<std::byte> random_command();
  std::vector<std::byte> read();
  std::vector<std::byte> write();
  std::vector<std::byte> compare();
  std::vector<std::byte> pair();
  std::vector<std::byte> lone_first();
  std::vector<std::byte> copy();
  std::vector<std::byte> flush();
  History::Range random_range(uint32_t max);
  // A capsule with its data, or with a pointer to data that is to be asked for.
  std::vector<std::byte> with_data(nvme::Sqe sqe, Pending pending);

  void take(const target_tests::Received& pdu);
  void take_r2t(const nvme::R2t& r2t);
  void take_data(const target_tests::Received& pdu);
  void complete(uint16_t cid, nvme::Status status);
  void judge(const Pending& pending, nvme::Status status);
  void judge_pair(const Pending& first, const Pending& second);
  void unexpected(const char* what, nvme::Status status);

  env::Env& env_;
  History& history_;
  Rng rng_;
  const RawQueueOptions options_;
  target_tests::RawHost host_;
  std::map<uint16_t, Pending> pending_;
  task::Semaphore sending_{1};
  task::Event changed_;
  task::Gate answering_;
  bool is_held_ = false;
  bool is_ending_ = false;
  bool has_ended_ = false;
  uint64_t answers_ = 0;
};

}  // namespace cairn::raw_tests
