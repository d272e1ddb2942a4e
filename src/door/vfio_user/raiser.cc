// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/raiser.h"

#include <algorithm>

namespace cairn::door::vfio_user {

Time Raiser::due(const CompletionQueue& queue) const {
  const bool waits = coalescing_.time_100us > 0 && queue.news <= coalescing_.threshold &&
                     queue.fields().id != 0 && !at_once_.contains(queue.fields().vector);
  return waits ? queue.since + Duration{coalescing_.time_100us * int64_t{100'000}} : queue.since;
}

void Raiser::flush() {
  if (with_news_.empty()) return;
  const Time now = env_.now();
  Time next = Time::never();
  List<CompletionQueue, CompletionQueue> waiting;
  while (CompletionQueue* queue = with_news_.pop_front()) {
    if (const Time when = due(*queue); when > now) {
      next = std::min(next, when);
      waiting.push_back(*queue);
      continue;
    }
    queue->news = 0;
    ++raised_;
    raise_(queue->fields().vector);
  }
  while (CompletionQueue* queue = waiting.pop_front()) with_news_.push_back(*queue);
  env_.disarm(timer_);
  if (next != Time::never()) env_.arm(timer_, next);
}

void Raiser::set_vector(nvme::InterruptVector vector) {
  if (vector.at_once) {
    at_once_.insert(vector.vector);
  } else {
    at_once_.erase(vector.vector);
  }
}

void Raiser::reset() {
  coalescing_ = {};
  at_once_.clear();
  env_.disarm(timer_);
}

}  // namespace cairn::door::vfio_user
