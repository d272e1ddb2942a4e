// SPDX-License-Identifier: Apache-2.0
// Mutants: commands that are nearly right, of every opcode and with any field, as bytes to send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "nvme/format/command_format.h"
#include "nvme/format/pdu_build.h"
#include "nvme/format/tcp_format.h"

namespace cairn::live_fuzz {

// Makes them from a seed. A command gets exactly one answer, unless it asks for events or ends the
// connection.
class Mutants {
 public:
  enum class Queue : uint8_t { kAdmin, kIo };
  Mutants(uint64_t seed, Queue queue, nvme::PduStyle style);

  // Appends a capsule with valid digests; now and then one with a damaged header.
  void add_command(std::vector<std::byte>& to);
  // Appends data for an R2T; now and then wrong ones.
  void add_data(std::vector<std::byte>& to, const nvme::R2t& r2t);

 private:
  uint32_t draw_dword();
  uint32_t draw_nsid();
  void draw_opcode(nvme::Sqe& sqe);
  void draw_fabrics(nvme::Sqe& sqe);
  // Gives it a data pointer; the bytes that come in its capsule.
  uint32_t draw_data(nvme::Sqe& sqe);
  void append(std::vector<std::byte>& to, Bytes data) const;
  bool seldom(uint64_t one_in) { return rng_.below(one_in) == 0; }

  Rng rng_;
  Queue queue_;
  nvme::PduStyle style_;
  uint16_t cid_ = 0;
  std::vector<std::byte> noise_;  // what data consist of
};

}  // namespace cairn::live_fuzz
