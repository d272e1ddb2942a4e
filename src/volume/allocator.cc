// SPDX-License-Identifier: Apache-2.0
#include "volume/allocator.h"

#include <algorithm>

#include "task/deadline.h"

namespace cairn::volume {

using task::CancelToken;
using task::Task;

Task<Result<void>> Allocator::map(uint32_t extent, CancelToken token) {
  while (!table_[extent].is_mapped()) {
    if (stop_.requested()) co_return fail(Errc::kClosed, "the volume is being closed");
    Waiter waiter;
    waiter.extent = extent;
    waiters_.push_back(waiter);
    if (!is_working_) {
      is_working_ = true;
      gate_.spawn(work());
    }
    const Result<void> waited = co_await waiter.done.wait(token);
    waiter.unlink();
    if (!waited) co_return waited;
    if (!waiter.result) co_return waiter.result;
  }
  co_return Result<void>();
}

Task<void> Allocator::work() {
  while (!waiters_.empty()) co_await serve_once();
  is_working_ = false;
}

// Extents that somebody waits for, and those behind them that a forward writer needs next.
std::vector<uint32_t> Allocator::batch(bool with_ahead) {
  std::vector<uint32_t> extents;
  waiters_.for_each([&](Waiter& waiter) {
    if (extents.size() < kMappingsMax) extents.push_back(waiter.extent);
  });
  std::ranges::sort(extents);
  const auto same = std::ranges::unique(extents);
  extents.erase(same.begin(), same.end());
  if (!with_ahead || extents.front() == kLogExtent) return extents;
  const bool is_forward = std::ranges::find(extents, next_) != extents.end();
  ahead_ = is_forward ? std::min(std::max(ahead_ * 2, 1U), options_.ahead_max) : 0;
  const uint32_t last = extents.back();
  for (uint32_t extent = last + 1;
       extent <= last + ahead_ && extent < table_.extents() && extents.size() < kMappingsMax;
       ++extent) {
    if (table_[extent].is_mapped()) break;
    extents.push_back(extent);
  }
  next_ = extents.back() + 1;
  return extents;
}

Task<void> Allocator::serve_once() {
  bool with_ahead = true;
  while (!waiters_.empty()) {
    const std::vector<uint32_t> extents = batch(with_ahead);
    ++calls_;
    task::Deadline deadline(env_, env_.now() + options_.call_limit, stop_.token());
    const Result<std::vector<Mapping>> got =
        co_await link_.allocate(lease_.session(), extents, deadline.token());
    if (got) {
      waiting_since_ = Time::never();
      for (const Mapping& mapping : *got) table_.apply(mapping);
      co_return answer(extents, {});
    }
    const Error why = got.error();
    if (why == Errc::kDenied || why == Errc::kNotFound) lease_.lose();
    if (stop_.requested() || !lease_.is_held()) {
      co_return answer(extents, fail(Errc::kDenied, "the lease of the volume is lost"));
    }
    if (why == Errc::kNoSpace && with_ahead) {
      // What nobody asked for may be what does not fit.
      with_ahead = false;
      continue;
    }
    if (why == Errc::kNoSpace || why == Errc::kInvalid) co_return answer(extents, fail(why));
    waiting_since_ = std::min(waiting_since_, env_.now());
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, options_.retry, stop_.token());
  }
}

void Allocator::answer(const std::vector<uint32_t>& extents, const Result<void>& result) {
  waiters_.for_each([&](Waiter& waiter) {
    if (!std::ranges::binary_search(extents, waiter.extent)) return;
    waiter.unlink();
    waiter.result = result;
    waiter.done.set();
  });
}

Task<void> Allocator::close() {
  stop_.request();
  co_await gate_.close();
}

}  // namespace cairn::volume
