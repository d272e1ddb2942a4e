// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/packed_notes.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "env/shared_word.h"

namespace cairn::door::vhost_user {

namespace {

// Whether the descriptor at `place` is as its driver made it available, that is not used yet.
bool is_as_available(Bytes ring, PackedPlace place) {
  const auto descriptor =
      load<PackedDescriptor>(ring.subspan(place.offset * sizeof(PackedDescriptor)));
  const bool available = (descriptor.flags & kDescriptorAvailable) != 0;
  const bool used = (descriptor.flags & kDescriptorUsed) != 0;
  return available == place.wrap && used != place.wrap;
}

}  // namespace

PackedNotes::PackedNotes(MutableBytes bytes, uint16_t queue_size)
    : bytes_(bytes), size_(queue_size), held_(queue_size) {
  free_.reserve(queue_size);
}

void PackedNotes::set_next(uint16_t index, uint16_t next) {
  store(state_bytes(index).subspan(offsetof(PackedState, next)), next);
  env::crash_fence();
}

void PackedNotes::set_inflight(uint16_t index, uint8_t value) {
  env::store_shared<uint8_t>(&state_bytes(index)[offsetof(PackedState, inflight)], value);
  env::crash_fence();
}

void PackedNotes::set_header_number(size_t offset, uint16_t value) {
  store(bytes_.subspan(offset), value);
  env::crash_fence();
}

void PackedNotes::begin(PackedPlace used) {
  std::ranges::fill(bytes_, std::byte{0});
  free_.clear();
  for (uint16_t i = 0; i < size_; ++i) {
    store(state_bytes(i).subspan(offsetof(PackedState, next)), static_cast<uint16_t>(i + 1));
    free_.push_back(static_cast<uint16_t>(size_ - 1 - i));
  }
  PackedRegionHeader header{};
  header.desc_num = size_;
  header.used_idx = header.old_used_idx = used.offset;
  header.used_wrap_counter = header.old_used_wrap_counter = used.wrap ? 1 : 0;
  store(bytes_, header);
  env::crash_fence();
  set_header_number(offsetof(PackedRegionHeader, version), kInflightVersion);
}

Result<PackedNotes::Found> PackedNotes::recover(Bytes ring, PackedPlace used) {
  auto header = load<PackedRegionHeader>(bytes_);
  if (header.version == 0) {
    used_ = used;
    begin(used);
    return Found{};
  }
  if (header.version != kInflightVersion || header.desc_num != size_) {
    return fail(Errc::kInvalid, "notes of what is in flight are of another version or queue size");
  }
  const PackedPlace next{.offset = header.used_idx, .wrap = header.used_wrap_counter != 0};
  const PackedPlace old{.offset = header.old_used_idx, .wrap = header.old_used_wrap_counter != 0};
  if (next.offset >= size_ || old.offset >= size_) {
    return fail(Errc::kInvalid, "notes of what is in flight are of another queue");
  }
  // A batch was being published: its first descriptor says whether the driver has got it.
  if (next != old && !is_as_available(ring, old)) {
    header.old_free_head = header.free_head;
    header.old_used_idx = header.used_idx;
    header.old_used_wrap_counter = header.used_wrap_counter;
  }
  header.free_head = header.old_free_head;
  header.used_idx = header.old_used_idx;
  header.used_wrap_counter = header.old_used_wrap_counter;
  store(bytes_, header);
  env::crash_fence();
  if (const Result<void> read = read_free_list(header.free_head); !read) return fail(read.error());

  Found found{.is_new = false,
              .used = {.offset = header.used_idx, .wrap = header.used_wrap_counter != 0},
              .outs = {}};
  used_ = found.used;
  std::vector<std::pair<uint64_t, uint16_t>> order;
  for (uint16_t i = 0; i < size_; ++i) {
    const PackedState each = state(i);
    if (each.inflight == 0) continue;
    order.emplace_back(each.counter, i);
    counter_ = std::max(counter_, each.counter + 1);
  }
  std::ranges::sort(order);
  size_t held = free_.size();
  for (const auto& each : order) {
    Result<Out> out = read_out(each.second);
    if (!out) return fail(out.error());
    held += out->descriptors.size();
    if (held > size_) return fail(Errc::kInvalid, "notes of what is in flight overlap");
    found.outs.push_back(std::move(*out));
  }
  return found;
}

// What is free is not in flight, whatever it says.
Result<void> PackedNotes::read_free_list(uint16_t head) {
  std::vector<uint16_t> list;
  for (uint16_t index = head; index < size_; index = state(index).next) {
    if (list.size() == size_) return fail(Errc::kInvalid, "free notes of what is in flight loop");
    set_inflight(index, 0);
    list.push_back(index);
  }
  free_.assign(list.rbegin(), list.rend());
  return {};
}

Result<PackedNotes::Out> PackedNotes::read_out(uint16_t head) {
  const PackedState first = state(head);
  if (first.num == 0 || first.num > size_) {
    return fail(Errc::kInvalid, "a note of what is in flight has no descriptors");
  }
  Out out{.note = head, .descriptors = {}};
  held_[head].clear();
  uint16_t index = head;
  for (uint16_t i = 0; i < first.num; ++i) {
    if (index >= size_) return fail(Errc::kInvalid, "a note of what is in flight leads nowhere");
    const PackedState each = state(index);
    out.descriptors.push_back(
        {.address = each.addr, .length = each.len, .id = each.id, .flags = each.flags});
    held_[head].push_back(index);
    index = each.next;
  }
  return out;
}

uint16_t PackedNotes::taken(std::span<const PackedDescriptor> descriptors) {
  CHECK(has_room(descriptors.size()) && !descriptors.empty(), "the ring asked for room");
  const uint16_t note = free_.back();
  std::vector<uint16_t>& held = held_[note];
  held.clear();
  for (const PackedDescriptor& each : descriptors) {
    const uint16_t index = free_.back();
    free_.pop_back();
    held.push_back(index);
    PackedState noted{};
    noted.next = free_head();
    noted.id = each.id;
    noted.flags = each.flags;
    noted.len = each.length;
    noted.addr = each.address;
    store(state_bytes(index), noted);
  }
  auto first = state(note);
  first.last = held.back();
  first.num = static_cast<uint16_t>(held.size());
  first.counter = counter_++;
  store(state_bytes(note), first);
  env::crash_fence();
  set_inflight(note, 1);
  set_header_number(offsetof(PackedRegionHeader, free_head), free_head());
  set_header_number(offsetof(PackedRegionHeader, old_free_head), free_head());
  return note;
}

// All four numbers at once, so that no crash leaves an offset with the wrap counter of another.
void PackedNotes::set_places(PackedPlace used, PackedPlace old) {
  static_assert(offsetof(PackedRegionHeader, used_idx) == 16);
  static_assert(offsetof(PackedRegionHeader, old_used_idx) == 18);
  static_assert(offsetof(PackedRegionHeader, used_wrap_counter) == 20);
  static_assert(offsetof(PackedRegionHeader, old_used_wrap_counter) == 21);
  const uint64_t wraps = (used.wrap ? 1u : 0u) | (old.wrap ? 1u << 8 : 0u);
  env::store_shared<uint64_t>(&bytes_[offsetof(PackedRegionHeader, used_idx)],
                              used.offset | uint64_t{old.offset} << 16 | wraps << 32);
  env::crash_fence();
}

void PackedNotes::publishing(std::span<const uint16_t> notes, PackedPlace used) {
  for (const uint16_t note : notes) {
    const std::vector<uint16_t>& held = held_[note];
    set_next(held.back(), free_head());
    for (size_t i = held.size(); i-- > 0;) free_.push_back(held[i]);
    set_header_number(offsetof(PackedRegionHeader, free_head), note);
  }
  set_places(used, used_);
}

void PackedNotes::published(std::span<const uint16_t> notes, PackedPlace used) {
  env::crash_fence();
  for (const uint16_t note : notes) set_inflight(note, 0);
  set_header_number(offsetof(PackedRegionHeader, old_free_head), free_head());
  set_places(used, used);
  used_ = used;
}

void PackedNotes::forget() { set_header_number(offsetof(PackedRegionHeader, version), 0); }

}  // namespace cairn::door::vhost_user
