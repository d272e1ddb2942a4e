// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/split_notes.h"
#include "env/shared_word.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace cairn::door::vhost_user {

void SplitNotes::set_inflight(uint16_t head, uint8_t value) {
  env::store_shared<uint8_t>(&state_bytes(head)[offsetof(SplitState, inflight)], value);
  env::crash_fence();
}

Result<SplitNotes::Found> SplitNotes::recover(uint16_t used_index) {
  SplitRegionHeader header = this->header();
  if (header.version == 0) {
    std::ranges::fill(bytes_, std::byte{0});
    header = {.features = 0,
              .version = 0,
              .desc_num = size_,
              .last_batch_head = 0,
              .used_idx = used_index};
    set_header(header);
    env::crash_fence();
    header.version = kInflightVersion;
    set_header(header);
    return Found{};
  }
  if (header.version != kInflightVersion || header.desc_num != size_) {
    return fail(Errc::kInvalid, "notes of what is in flight are of another version or queue size");
  }
  const auto batch = static_cast<uint16_t>(used_index - header.used_idx);
  if (batch > size_) return fail(Errc::kInvalid, "notes of what is in flight are of another queue");
  last_batch_head_ = header.last_batch_head;
  uint16_t head = header.last_batch_head;
  for (uint16_t i = 0; i < batch; ++i) {
    if (head >= size_) return fail(Errc::kInvalid, "notes of what is in flight name no descriptor");
    set_inflight(head, 0);
    head = state(head).next;
  }
  header.used_idx = used_index;
  set_header(header);

  Found found{.is_new = false, .heads = {}};
  std::vector<std::pair<uint64_t, uint16_t>> order;
  for (uint16_t i = 0; i < size_; ++i) {
    const SplitState each = state(i);
    if (each.inflight == 0) continue;
    order.emplace_back(each.counter, i);
    counter_ = std::max(counter_, each.counter + 1);
  }
  std::ranges::sort(order);
  for (const auto& each : order) found.heads.push_back(each.second);
  return found;
}

void SplitNotes::taken(uint16_t head) {
  store(state_bytes(head).subspan(offsetof(SplitState, counter)), counter_++);
  env::crash_fence();
  set_inflight(head, 1);
}

void SplitNotes::put(uint16_t head) {
  store(state_bytes(head).subspan(offsetof(SplitState, next)), last_batch_head_);
  env::crash_fence();
  store(bytes_.subspan(offsetof(SplitRegionHeader, last_batch_head)), head);
  env::crash_fence();
  last_batch_head_ = head;
  batch_.push_back(head);
}

void SplitNotes::published(uint16_t used_index) {
  env::crash_fence();
  for (const uint16_t head : batch_) set_inflight(head, 0);
  batch_.clear();
  store(bytes_.subspan(offsetof(SplitRegionHeader, used_idx)), used_index);
  env::crash_fence();
}

void SplitNotes::forget() {
  store(bytes_.subspan(offsetof(SplitRegionHeader, version)), uint16_t{0});
  env::crash_fence();
}

}  // namespace cairn::door::vhost_user
