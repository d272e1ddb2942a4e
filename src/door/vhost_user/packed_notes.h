// SPDX-License-Identifier: Apache-2.0
// PackedNotes: which chains of a packed virtqueue are out, in memory that outlives this process.
// Their descriptors are kept there too, because the ring's own are overwritten out of order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/vhost_user/inflight_format.h"
#include "door/vhost_user/virtio_format.h"

namespace cairn::door::vhost_user {

// An offset in the descriptor ring and how often it was passed, as one bit.
struct PackedPlace {
  uint16_t offset = 0;
  bool wrap = true;

  void advance(uint16_t entries, uint16_t size) {
    offset = static_cast<uint16_t>(offset + entries);
    if (offset < size) return;
    offset = static_cast<uint16_t>(offset - size);
    wrap = !wrap;
  }
  friend bool operator==(const PackedPlace&, const PackedPlace&) = default;
};

// The memory is shared with the front end, which may write anything there; only recover() reads it.
class PackedNotes {
 public:
  // `bytes` has inflight_region_size() bytes.
  PackedNotes(MutableBytes bytes, uint16_t queue_size);

  struct Out {
    uint16_t note = 0;
    std::vector<PackedDescriptor> descriptors;
  };
  struct Found {
    bool is_new = true;     // nothing was noted yet
    PackedPlace used;       // otherwise: where the next is published
    std::vector<Out> outs;  // chains that were out, in the order they were taken
  };
  // `ring`: the descriptors of the virtqueue. `used`: where it begins when nothing was noted.
  // kInvalid: these are no such notes.
  Result<Found> recover(Bytes ring, PackedPlace used);

  // Whether as many descriptors can be noted; always, unless the driver makes more available than
  // its ring has.
  bool has_room(size_t descriptors) const { return free_.size() >= descriptors; }
  // Returns the note.
  uint16_t taken(std::span<const PackedDescriptor> descriptors);
  // These are about to be published, after which the ring goes on at `used`.
  void publishing(std::span<const uint16_t> notes, PackedPlace used);
  // They are.
  void published(std::span<const uint16_t> notes, PackedPlace used);
  void forget();

 private:
  MutableBytes state_bytes(uint16_t index) const {
    return bytes_.subspan(sizeof(PackedRegionHeader) + index * sizeof(PackedState));
  }
  PackedState state(uint16_t index) const { return load<PackedState>(state_bytes(index)); }
  void set_next(uint16_t index, uint16_t next);
  void set_inflight(uint16_t index, uint8_t value);
  void set_header_number(size_t offset, uint16_t value);
  void set_places(PackedPlace used, PackedPlace old);
  void begin(PackedPlace used);
  uint16_t free_head() const { return free_.empty() ? size_ : free_.back(); }
  Result<void> read_free_list(uint16_t head);
  Result<Out> read_out(uint16_t head);

  MutableBytes bytes_;
  uint16_t size_;
  uint64_t counter_ = 0;
  PackedPlace used_;                         // as published
  std::vector<uint16_t> free_;               // the free list as we know it, its head last
  std::vector<std::vector<uint16_t>> held_;  // by note: the states of the chain, in order
};

}  // namespace cairn::door::vhost_user
