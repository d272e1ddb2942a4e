// SPDX-License-Identifier: Apache-2.0
// SimStream: a program's end of a connection, on one core. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "env/address.h"
#include "env/stream.h"
#include "world/sim/byte_queue.h"
#include "world/sim/circuit.h"

namespace cairn::sim {

class Core;

class SimStream final : public env::Stream, public env::Chunk::Owner, public Endpoint::User {
 public:
  static std::unique_ptr<env::Stream> open(Core& core, env::Connection connection);
  SimStream(Core& core, Endpoint& endpoint);
  ~SimStream() override;

  Result<size_t> write_now(std::span<const Bytes> from) override;
  Result<void> finish() override;
  void reset() override;
  env::Address local() const override { return endpoint_.local(); }
  env::Address peer() const override { return endpoint_.peer(); }
  void take_back(uint64_t id) override;

  void on_readable() override;
  void on_room() override;
  void on_error() override;

 private:
  enum class ReadBy : uint8_t { kNobodyYet, kRead, kReceive };
  struct HeldChunk {
    ByteBlock* block = nullptr;
    size_t size = 0;
  };

  void start_read(env::ReadOp& op) override;
  void cancel_read(env::ReadOp& op) override;
  void start_write(env::WriteOp& op) override;
  void cancel_write(env::WriteOp& op) override;
  void start_receive(env::ReceiveOp& op) override;
  void cancel_receive(env::ReceiveOp& op) override;

  void begin_reading(ReadBy by);
  bool can_answer_reader();
  Result<size_t> read_now(env::ReadOp& op);
  Result<env::Chunk> receive_now();
  Result<void> can_write() const;
  // Goes on with pieces from where the write got. True when all was accepted.
  bool write_some(std::span<const Bytes> pieces);

  Core& core_;
  Endpoint& endpoint_;
  ReadBy read_by_ = ReadBy::kNobodyYet;
  env::ReadOp* reading_ = nullptr;
  env::ReceiveOp* receiving_ = nullptr;
  env::WriteOp* writing_ = nullptr;
  size_t piece_ = 0;  // of writing_, how far it got
  size_t offset_ = 0;
  bool was_write_cut_short_ = false;
  bool was_reset_here_ = false;
  std::vector<HeldChunk> chunks_;  // by id
  std::vector<uint64_t> free_ids_;
};

}  // namespace cairn::sim
