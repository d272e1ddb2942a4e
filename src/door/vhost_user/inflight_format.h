// SPDX-License-Identifier: Apache-2.0
// The buffer in which a back end notes what is in flight, so that another process can go on after
// it was killed. Names follow "Inflight I/O tracking" of the vhost-user specification: a region per
// queue, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace cairn::door::vhost_user {

inline constexpr uint16_t kInflightVersion = 1;  // 0: nothing was noted yet

struct SplitRegionHeader {
  uint64_t features;
  uint16_t version;
  uint16_t desc_num;
  uint16_t last_batch_head;  // the list of the batch that was published last, or is being
  uint16_t used_idx;
};
static_assert(sizeof(SplitRegionHeader) == 16);

struct SplitState {
  uint8_t inflight;
  uint8_t padding[5];
  uint16_t next;
  uint64_t counter;  // the order in which chains were taken
};
static_assert(sizeof(SplitState) == 16);

struct PackedRegionHeader {
  uint64_t features;
  uint16_t version;
  uint16_t desc_num;
  uint16_t free_head;  // of the list of free states
  uint16_t old_free_head;
  uint16_t used_idx;
  uint16_t old_used_idx;
  uint8_t used_wrap_counter;
  uint8_t old_used_wrap_counter;
  uint8_t padding[10];
};
static_assert(sizeof(PackedRegionHeader) == 32);

struct PackedState {
  uint8_t inflight;
  uint8_t padding;
  uint16_t next;  // in the free list, or in the chain
  uint16_t last;  // of the chain; in its first state
  uint16_t num;   // how many the chain has; in its first state
  uint64_t counter;
  uint16_t id;
  uint16_t flags;
  uint32_t len;
  uint64_t addr;
};
static_assert(sizeof(PackedState) == 32);

// Behind the regions of all queues, in the last bytes of a buffer that we made: what the guest
// counts on (loss_note.h). The specification says nothing of bytes there; other back ends, and ours
// of long ago, left zeroes.
struct LossRecord {
  uint64_t magic;          // kLossMagic; anything else: nothing was noted
  uint64_t server;         // drawn by whoever wrote this
  uint64_t medium;         // of the drive: Incarnation, as long as `state` is what it is
  uint64_t local_opening;  // likewise
  uint64_t state;          // a LossState, written last
  uint64_t is_through;     // not 0: the guest has turned the cache off
  uint64_t reserved[2];
};
static_assert(sizeof(LossRecord) == 64);

inline constexpr uint64_t kLossMagic = 0x314e53534f4c4d53;
enum class LossState : uint64_t {
  kFlushed = 0,    // a flush covers all that completed
  kUnflushed = 1,  // not all of it
  kLost = 2,       // some of it is lost perhaps, and the guest was not told
};

// Regions begin at whole cache lines.
inline constexpr size_t kInflightAlignment = 64;

constexpr size_t inflight_region_size(uint16_t queue_size, bool is_packed) {
  const size_t size = is_packed ? sizeof(PackedRegionHeader) + queue_size * sizeof(PackedState)
                                : sizeof(SplitRegionHeader) + queue_size * sizeof(SplitState);
  return align_up(size, kInflightAlignment);
}

}  // namespace cairn::door::vhost_user
