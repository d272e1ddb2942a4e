// SPDX-License-Identifier: Apache-2.0
// Doorbells: the words by which a driver says how far it got with each queue. They are in a page of
// the device, and, once the driver has named them, for I/O queues in a page of the guest: a shadow
// that costs the guest nothing to write, beside a page of event indexes that says which value it
// should ring the real doorbell for (NVMe Base 2.0, 5.8 and annex B.5).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "door/vfio_user/guest_ring.h"
#include "env/shared_word.h"
#include "nvme/format/pci_format.h"

namespace cairn::door::vfio_user {

// Which word: tail of a submission queue, or head of a completion queue.
struct Doorbell {
  static constexpr uint32_t kPageSize = 4096;
  static constexpr uint16_t kQueuesMax = kPageSize / (2 * nvme::kDoorbellSize) - 1;

  static constexpr Doorbell tail_of(uint16_t queue) { return Doorbell(2u * queue); }
  static constexpr Doorbell head_of(uint16_t queue) { return Doorbell(2u * queue + 1); }
  size_t offset() const { return size_t{index} * nvme::kDoorbellSize; }
  bool is_admin() const { return index < 2; }

  explicit constexpr Doorbell(uint32_t at) : index(at) {}
  uint32_t index;
};

class Doorbells {
 public:
  // `page` is the device's; the guest writes to it at any time.
  explicit Doorbells(MutableBytes page) : page_(page) {}

  // None: the guest has taken its page away.
  std::optional<uint32_t> read(Doorbell doorbell) {
    if (!shadow_ || doorbell.is_admin()) {
      return env::load_shared<uint32_t>(page_.data() + doorbell.offset());
    }
    if (!shadow_->is_there()) return std::nullopt;
    return env::load_shared<uint32_t>(shadow_->at(doorbell.offset()));
  }
  // A queue begins: whatever its predecessor left is gone.
  void clear(Doorbell doorbell) {
    if (is_kept_) return;
    env::store_shared<uint32_t>(page_.data() + doorbell.offset(), 0);
    if (!shadow_ || doorbell.is_admin()) return;
    if (shadow_->is_there()) env::store_shared<uint32_t>(shadow_->at(doorbell.offset()), 0);
    if (events_->is_there()) env::store_shared<uint32_t>(events_->at(doorbell.offset()), 0);
  }
  // Asks the driver to ring when it goes beyond `value`. Who waits for that reads once more after
  // this: the driver may have gone there before it saw it.
  void ask_to_ring(Doorbell doorbell, uint32_t value) {
    if (!shadow_ || doorbell.is_admin() || !events_->is_there()) return;
    env::store_shared<uint32_t>(events_->at(doorbell.offset()), value);
    env::shared_fence();
  }
  // The device's own word, and nobody's shadow.
  uint32_t real(Doorbell doorbell) const {
    return env::load_shared<uint32_t>(page_.data() + doorbell.offset());
  }
  void set_real(Doorbell doorbell, uint32_t value) {
    env::store_shared<uint32_t>(page_.data() + doorbell.offset(), value);
  }

  // False: these are not pages of the guest.
  bool use_shadow(door::GuestMemory& memory, const nvme::DoorbellBuffers& buffers) {
    GuestRing shadow(memory, buffers.doorbells, Doorbell::kPageSize);
    GuestRing events(memory, buffers.event_indexes, Doorbell::kPageSize);
    if (!shadow.is_there() || !events.is_there()) return false;
    shadow_.emplace(shadow);
    events_.emplace(events);
    return true;
  }
  nvme::DoorbellBuffers shadow() const {
    if (!shadow_) return {};
    return {.doorbells = shadow_->address(), .event_indexes = events_->address()};
  }
  // As after power on.
  void reset() {
    shadow_.reset();
    events_.reset();
    if (!is_kept_) std::ranges::fill(page_, std::byte{0});
  }
  // While kept, what the guest has rung stays as it is: queues that begin are a predecessor's.
  void keep(bool is_kept) { is_kept_ = is_kept; }

 private:
  MutableBytes page_;
  std::optional<GuestRing> shadow_;
  std::optional<GuestRing> events_;
  bool is_kept_ = false;
};

}  // namespace cairn::door::vfio_user
