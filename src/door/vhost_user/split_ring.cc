// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/split_ring.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "door/vhost_user/virtio_format.h"
#include "env/shared_word.h"

namespace cairn::door::vhost_user {

Result<std::unique_ptr<Ring>> SplitRing::make(const RingOptions& options, GuestMemory& memory) {
  if (options.size == 0 || options.size > kQueueSizeMax || !std::has_single_bit(options.size)) {
    return fail(Errc::kInvalid, "the size of a split virtqueue is a power of two up to 32768",
                options.size);
  }
  std::unique_ptr<SplitRing> ring(new SplitRing(options, memory));
  if (const Result<void> found = ring->find_parts(); !found) return fail(found.error());
  if (const Result<void> recovered = ring->recover(); !recovered) return fail(recovered.error());
  return std::unique_ptr<Ring>(std::move(ring));
}

Result<void> SplitRing::find_parts() {
  const size_t size = options_.size;
  if (!is_aligned(options_.descriptors, 16) || !is_aligned(options_.driver, 2) ||
      !is_aligned(options_.device, 4)) {
    return fail(Errc::kInvalid, "a virtqueue at an address that is not aligned");
  }
  const auto table = memory_.find(options_.descriptors, size * sizeof(SplitDescriptor), false);
  const auto available = memory_.find(options_.driver, available_size(size), false);
  const auto used = memory_.find(options_.device, used_size(size), true);
  if (!table.is_valid() || !available.is_valid() || !used.is_valid()) {
    return fail(Errc::kInvalid, "a virtqueue outside guest memory");
  }
  table_ = table.bytes;
  available_ = available.bytes.data();
  used_ = used.bytes.data();
  return {};
}

Result<void> SplitRing::recover() {
  used_index_ = env::load_shared<uint16_t>(used_ + kRingIndex);
  next_ = options_.base.available;
  if (options_.inflight.empty()) return {};
  notes_.emplace(options_.inflight, options_.size);
  Result<SplitNotes::Found> found = notes_->recover(used_index_);
  if (!found) return fail(found.error());
  if (found->is_new) return {};
  next_ = static_cast<uint16_t>(used_index_ + found->heads.size());
  again_ = std::move(found->heads);
  std::ranges::reverse(again_);
  return {};
}

uint16_t SplitRing::available_index() const {
  return env::load_shared<uint16_t>(available_ + kRingIndex);
}

Ring::Got SplitRing::take(Chain& chain) {
  if (problem_ != nullptr) return Got::kBroken;
  uint16_t head = 0;
  const bool is_again = !again_.empty();
  if (is_again) {
    head = again_.back();
    again_.pop_back();
  } else {
    const auto ready = static_cast<uint16_t>(available_index() - next_);
    if (ready == 0) return Got::kNothing;
    if (ready > options_.size) return break_off("more chains are available than there can be");
    head = env::load_shared<uint16_t>(available_ + kRingEntries + 2 * (next_ % options_.size));
    if (head >= options_.size) return break_off("a chain begins beyond the descriptors");
  }
  const Result<void> read = read_split_chain(table_, head, options_.has_indirect, memory_, chain);
  if (!read) return break_off(read.error().what());
  if (is_again) return Got::kChain;
  if (notes_) notes_->taken(head);
  ++next_;
  return Got::kChain;
}

void SplitRing::put(const Chain& chain, uint32_t written) {
  const auto place = static_cast<uint16_t>(used_index_ + batch_++);
  const size_t offset = kRingEntries + sizeof(UsedElement) * (place % options_.size);
  store(MutableBytes(used_ + offset, sizeof(UsedElement)),
        UsedElement{.id = chain.id, .length = written});
  mark_used(offset, sizeof(UsedElement));
  if (notes_) notes_->put(chain.id);
}

bool SplitRing::publish() {
  if (batch_ == 0) return false;
  const uint16_t before = used_index_;
  used_index_ = static_cast<uint16_t>(used_index_ + std::exchange(batch_, uint16_t{0}));
  env::store_shared(used_ + kRingIndex, used_index_);
  mark_used(kRingIndex, sizeof(uint16_t));
  if (notes_) notes_->published(used_index_);
  env::shared_fence();
  return wants_notice(before);
}

bool SplitRing::wants_notice(uint16_t before) const {
  if (!options_.has_event_index) {
    return (env::load_shared<uint16_t>(available_ + kRingFlags) & kAvailableNoInterrupt) == 0;
  }
  const auto event = env::load_shared<uint16_t>(available_ + kRingEntries + 2 * options_.size);
  const auto past = static_cast<uint16_t>(used_index_ - event - 1);
  return past < static_cast<uint16_t>(used_index_ - before);
}

void SplitRing::pause_kicks() {
  // With the event index, one that stays behind asks for nothing.
  if (options_.has_event_index) return;
  env::store_shared(used_ + kRingFlags, kUsedNoNotify);
  mark_used(kRingFlags, sizeof(uint16_t));
}

bool SplitRing::resume_kicks() {
  if (options_.has_event_index) {
    const size_t offset = kRingEntries + sizeof(UsedElement) * options_.size;
    env::store_shared(used_ + offset, next_);
    mark_used(offset, sizeof(uint16_t));
  } else {
    env::store_shared(used_ + kRingFlags, uint16_t{0});
    mark_used(kRingFlags, sizeof(uint16_t));
  }
  env::shared_fence();
  return problem_ == nullptr && (!again_.empty() || available_index() != next_);
}

void SplitRing::forget_inflight() {
  if (notes_) notes_->forget();
}

}  // namespace cairn::door::vhost_user
