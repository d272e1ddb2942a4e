// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/completion_queue.h"

#include <cstring>

#include "env/shared_word.h"

namespace cairn::door::vfio_user {

CompletionQueue::Pushed CompletionQueue::push(nvme::Cqe cqe) {
  if (!ring_.is_there()) return Pushed::kBroken;
  if (next(position_.tail) == position_.head) {
    const std::optional<uint32_t> head = doorbells_.read(Doorbell::head_of(fields_.id));
    if (!head || *head > fields_.size) return Pushed::kBroken;
    position_.head = static_cast<uint16_t>(*head);
    if (next(position_.tail) == position_.head) return Pushed::kFull;
  }
  cqe.status = static_cast<uint16_t>((cqe.status & ~1u) | (position_.phase ? 1 : 0));
  // The driver looks at the phase in the last word, so that one is written last.
  constexpr size_t kLast = sizeof(cqe) - sizeof(uint32_t);
  std::byte* const entry = ring_.at(position_.tail * sizeof(cqe));
  const Bytes bytes = nvme::bytes_of(cqe);
  std::memcpy(entry, bytes.data(), kLast);
  env::store_shared(entry + kLast, load<uint32_t>(bytes.subspan(kLast)));
  position_.tail = next(position_.tail);
  if (position_.tail == 0) position_.phase = !position_.phase;
  return Pushed::kDone;
}

bool CompletionQueue::set_position(const Position& position) {
  if (position.head > fields_.size || position.tail > fields_.size) return false;
  position_ = position;
  return true;
}

}  // namespace cairn::door::vfio_user
