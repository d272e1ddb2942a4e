// SPDX-License-Identifier: Apache-2.0
// SplitNotes: which chains of a split virtqueue are out, in memory that outlives this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/vhost_user/inflight_format.h"

namespace cairn::door::vhost_user {

// The memory is shared with the front end, which may write anything there; only recover() reads it,
// once. Every state in between is one from which recover() finds what is true.
class SplitNotes {
 public:
  // `bytes` has inflight_region_size() bytes.
  SplitNotes(MutableBytes bytes, uint16_t queue_size) : bytes_(bytes), size_(queue_size) {}

  struct Found {
    bool is_new = true;           // nothing was noted yet
    std::vector<uint16_t> heads;  // of chains that were out, in the order they were taken
  };
  // `used_index` stands in the used ring. kInvalid: these are no such notes.
  Result<Found> recover(uint16_t used_index);

  void taken(uint16_t head);
  // It is about to be published.
  void put(uint16_t head);
  // All that were put are, and the used ring's index is this.
  void published(uint16_t used_index);
  void forget();

 private:
  SplitRegionHeader header() const { return load<SplitRegionHeader>(bytes_); }
  void set_header(const SplitRegionHeader& header) { store(bytes_, header); }
  MutableBytes state_bytes(uint16_t head) const {
    return bytes_.subspan(sizeof(SplitRegionHeader) + head * sizeof(SplitState));
  }
  SplitState state(uint16_t head) const { return load<SplitState>(state_bytes(head)); }
  void set_inflight(uint16_t head, uint8_t value);

  MutableBytes bytes_;
  uint16_t size_;
  uint16_t last_batch_head_ = 0;
  uint64_t counter_ = 0;
  std::vector<uint16_t> batch_;
};

}  // namespace cairn::door::vhost_user
