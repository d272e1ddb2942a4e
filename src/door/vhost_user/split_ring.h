// SPDX-License-Identifier: Apache-2.0
// SplitRing: a virtqueue of three parts (virtio 1.2, section 2.7).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "door/vhost_user/ring.h"
#include "door/vhost_user/split_notes.h"

namespace cairn::door::vhost_user {

class SplitRing final : public Ring {
 public:
  static Result<std::unique_ptr<Ring>> make(const RingOptions& options, GuestMemory& memory);

  Got take(Chain& chain) override;
  bool has_recovered() const override { return !again_.empty(); }
  void put(const Chain& chain, uint32_t written) override;
  bool publish() override;
  void pause_kicks() override;
  bool resume_kicks() override;
  RingBase base() const override { return {.available = next_, .used = used_index_}; }
  void forget_inflight() override;

 private:
  SplitRing(const RingOptions& options, GuestMemory& memory)
      : Ring(options), options_(options), memory_(memory) {}
  Result<void> find_parts();
  Result<void> recover();
  bool wants_notice(uint16_t before) const;
  uint16_t available_index() const;

  const RingOptions options_;
  GuestMemory& memory_;
  Bytes table_;
  std::byte* available_ = nullptr;
  std::byte* used_ = nullptr;
  uint16_t next_ = 0;        // to take
  uint16_t used_index_ = 0;  // as published
  uint16_t batch_ = 0;       // put and not published
  std::optional<SplitNotes> notes_;
  std::vector<uint16_t> again_;  // heads that another process had taken, last one first
};

}  // namespace cairn::door::vhost_user
