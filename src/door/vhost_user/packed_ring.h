// SPDX-License-Identifier: Apache-2.0
// PackedRing: a virtqueue of one descriptor ring that both sides write (virtio 1.2, section 2.8).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "door/vhost_user/packed_notes.h"
#include "door/vhost_user/ring.h"

namespace cairn::door::vhost_user {

class PackedRing final : public Ring {
 public:
  static Result<std::unique_ptr<Ring>> make(const RingOptions& options, GuestMemory& memory);

  Got take(Chain& chain) override;
  bool has_recovered() const override { return !again_.empty(); }
  void put(const Chain& chain, uint32_t written) override;
  bool publish() override;
  void pause_kicks() override;
  bool resume_kicks() override;
  RingBase base() const override;
  void forget_inflight() override;

 private:
  struct Used {
    PackedPlace place;
    uint16_t id = 0;
    uint32_t written = 0;
  };

  PackedRing(const RingOptions& options, GuestMemory& memory)
      : Ring(options), options_(options), memory_(memory) {}
  Result<void> find_parts();
  Result<void> recover();
  std::byte* at(uint16_t offset) const { return ring_.data() + offset * sizeof(PackedDescriptor); }
  bool is_available() const;
  Result<void> read_descriptors();
  Result<void> read_segments(Chain& chain);
  void write_used(const Used& used);
  bool wants_notice(PackedPlace before, PackedPlace after) const;
  void set_event(uint16_t offset, uint16_t flags);
  void mark_descriptor(uint16_t offset);

  const RingOptions options_;
  GuestMemory& memory_;
  MutableBytes ring_;
  std::byte* driver_event_ = nullptr;
  std::byte* device_event_ = nullptr;
  PackedPlace next_;  // to take
  PackedPlace used_;  // to publish
  PackedPlace put_;   // used_, and what was put
  std::vector<Used> batch_;
  std::vector<uint16_t> batch_notes_;
  std::optional<PackedNotes> notes_;
  std::vector<PackedNotes::Out> again_;        // what another process had taken, last one first
  std::vector<PackedDescriptor> descriptors_;  // of the chain that is being taken
};

}  // namespace cairn::door::vhost_user
