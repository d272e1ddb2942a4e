// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/packed_ring.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "door/vhost_user/virtio_format.h"
#include "env/shared_word.h"

namespace cairn::door::vhost_user {

namespace {

constexpr size_t kFlags = offsetof(PackedDescriptor, flags);

PackedPlace place_of(uint16_t base) {
  return {.offset = static_cast<uint16_t>(base & ~kWrapBit), .wrap = (base & kWrapBit) != 0};
}
uint16_t base_of(PackedPlace place) {
  return static_cast<uint16_t>(place.offset | (place.wrap ? kWrapBit : 0));
}

}  // namespace

Result<std::unique_ptr<Ring>> PackedRing::make(const RingOptions& options, GuestMemory& memory) {
  if (options.size == 0 || options.size > kQueueSizeMax) {
    return fail(Errc::kInvalid, "the size of a packed virtqueue is 1 to 32768", options.size);
  }
  std::unique_ptr<PackedRing> ring(new PackedRing(options, memory));
  if (const Result<void> found = ring->find_parts(); !found) return fail(found.error());
  if (const Result<void> recovered = ring->recover(); !recovered) return fail(recovered.error());
  return std::unique_ptr<Ring>(std::move(ring));
}

Result<void> PackedRing::find_parts() {
  if (!is_aligned(options_.descriptors, 16) || !is_aligned(options_.driver, 4) ||
      !is_aligned(options_.device, 4)) {
    return fail(Errc::kInvalid, "a virtqueue at an address that is not aligned");
  }
  const auto ring =
      memory_.find(options_.descriptors, options_.size * sizeof(PackedDescriptor), true);
  const auto driver = memory_.find(options_.driver, kEventSize, false);
  const auto device = memory_.find(options_.device, kEventSize, true);
  if (!ring.is_valid() || !driver.is_valid() || !device.is_valid()) {
    return fail(Errc::kInvalid, "a virtqueue outside guest memory");
  }
  ring_ = ring.bytes;
  driver_event_ = driver.bytes.data();
  device_event_ = device.bytes.data();
  return {};
}

Result<void> PackedRing::recover() {
  next_ = place_of(options_.base.available);
  used_ = place_of(options_.base.used);
  if (next_.offset >= options_.size || used_.offset >= options_.size) {
    return fail(Errc::kInvalid, "the base of a packed virtqueue is beyond its end");
  }
  if (!options_.inflight.empty()) {
    notes_.emplace(options_.inflight, options_.size);
    Result<PackedNotes::Found> found = notes_->recover(ring_, used_);
    if (!found) return fail(found.error());
    if (!found->is_new) {
      used_ = next_ = found->used;
      for (const auto& out : found->outs) {
        next_.advance(static_cast<uint16_t>(out.descriptors.size()), options_.size);
      }
      again_ = std::move(found->outs);
      std::ranges::reverse(again_);
    }
  }
  put_ = used_;
  return {};
}

bool PackedRing::is_available() const {
  const auto flags = env::load_shared<uint16_t>(at(next_.offset) + kFlags);
  const bool available = (flags & kDescriptorAvailable) != 0;
  const bool used = (flags & kDescriptorUsed) != 0;
  return available == next_.wrap && used != next_.wrap;
}

// The chain that begins at next_, which is available: each descriptor of it once.
Result<void> PackedRing::read_descriptors() {
  descriptors_.clear();
  uint16_t offset = next_.offset;
  for (;;) {
    if (descriptors_.size() == std::min<size_t>(options_.size, kSegmentsMax)) {
      return fail(Errc::kInvalid, "a chain of too many descriptors, or a loop");
    }
    const auto each = load<PackedDescriptor>(MutableBytes(at(offset), sizeof(PackedDescriptor)));
    descriptors_.push_back(each);
    if ((each.flags & kDescriptorNext) == 0) return {};
    if (++offset == options_.size) offset = 0;
  }
}

Result<void> PackedRing::read_segments(Chain& chain) {
  chain.segments.clear();
  chain.entries = static_cast<uint16_t>(descriptors_.size());
  chain.id = descriptors_.back().id;
  for (const PackedDescriptor& each : descriptors_) {
    if ((each.flags & kDescriptorIndirect) == 0) {
      chain.segments.push_back({.address = each.address,
                                .length = each.length,
                                .is_writable = (each.flags & kDescriptorWrite) != 0});
      continue;
    }
    if (!options_.has_indirect || descriptors_.size() != 1) {
      return fail(Errc::kInvalid, "an indirect descriptor where none may be");
    }
    const Result<void> added = add_packed_table(each.address, each.length, memory_, chain);
    if (!added) return added;
  }
  return {};
}

Ring::Got PackedRing::take(Chain& chain) {
  if (problem_ != nullptr) return Got::kBroken;
  const bool is_again = !again_.empty();
  if (is_again) {
    chain.note = again_.back().note;
    descriptors_ = std::move(again_.back().descriptors);
    again_.pop_back();
  } else {
    if (!is_available()) return Got::kNothing;
    const Result<void> read = read_descriptors();
    if (!read) return break_off(read.error().what());
  }
  if (const Result<void> read = read_segments(chain); !read) {
    return break_off(read.error().what());
  }
  if (is_again) return Got::kChain;
  if (notes_) {
    if (!notes_->has_room(descriptors_.size())) {
      return break_off("more descriptors are available than the ring has");
    }
    chain.note = notes_->taken(descriptors_);
  }
  next_.advance(chain.entries, options_.size);
  return Got::kChain;
}

void PackedRing::put(const Chain& chain, uint32_t written) {
  batch_.push_back({.place = put_, .id = chain.id, .written = written});
  if (notes_) batch_notes_.push_back(chain.note);
  put_.advance(chain.entries, options_.size);
}

void PackedRing::write_used(const Used& used) {
  std::byte* const descriptor = at(used.place.offset);
  store(MutableBytes(descriptor + offsetof(PackedDescriptor, id), 2), used.id);
  store(MutableBytes(descriptor + offsetof(PackedDescriptor, length), 4), used.written);
  const uint16_t both = kDescriptorAvailable | kDescriptorUsed;
  env::store_shared<uint16_t>(descriptor + kFlags, used.place.wrap ? both : uint16_t{0});
  mark_descriptor(used.place.offset);
}

// The driver looks at the first of them first, and sees none before that is there.
bool PackedRing::publish() {
  if (batch_.empty()) return false;
  const PackedPlace before = used_;
  if (notes_) notes_->publishing(batch_notes_, put_);
  for (size_t i = batch_.size(); i-- > 0;) write_used(batch_[i]);
  used_ = put_;
  if (notes_) notes_->published(batch_notes_, used_);
  batch_.clear();
  batch_notes_.clear();
  env::shared_fence();
  return wants_notice(before, used_);
}

bool PackedRing::wants_notice(PackedPlace before, PackedPlace after) const {
  const auto flags = env::load_shared<uint16_t>(driver_event_ + kEventFlags);
  if (flags == kEventDisable) return false;
  if (flags != kEventAtOffset || !options_.has_event_index) return true;
  const PackedPlace event = place_of(env::load_shared<uint16_t>(driver_event_ + kEventOffset));
  // As if the ring went on without end: the lap of `after` is the later one.
  const auto size = static_cast<int32_t>(options_.size);
  const int32_t to = after.offset;
  const int32_t from = before.wrap == after.wrap ? before.offset : before.offset - size;
  const int32_t wanted = event.wrap == after.wrap ? event.offset : event.offset - size;
  return wanted >= from && wanted < to;
}

void PackedRing::set_event(uint16_t offset, uint16_t flags) {
  env::store_shared(device_event_ + kEventOffset, offset);
  env::store_shared(device_event_ + kEventFlags, flags);
  mark_used(0, kEventSize);
}

void PackedRing::pause_kicks() { set_event(0, kEventDisable); }

bool PackedRing::resume_kicks() {
  if (options_.has_event_index) {
    set_event(base_of(next_), kEventAtOffset);
  } else {
    set_event(0, kEventEnable);
  }
  env::shared_fence();
  return problem_ == nullptr && (!again_.empty() || is_available());
}

RingBase PackedRing::base() const { return {.available = base_of(next_), .used = base_of(used_)}; }

void PackedRing::forget_inflight() {
  if (notes_) notes_->forget();
}

// Descriptors are of the log as any memory: they are not in the part that only the device writes.
void PackedRing::mark_descriptor(uint16_t offset) {
  if (log_ == nullptr) return;
  log_->mark(options_.descriptors + offset * sizeof(PackedDescriptor), sizeof(PackedDescriptor));
}

}  // namespace cairn::door::vhost_user
