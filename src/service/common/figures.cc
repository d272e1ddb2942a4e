// SPDX-License-Identifier: Apache-2.0
#include "service/common/figures.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace cairn::drive {

uint64_t LayerFigures::done() const {
  return std::accumulate(requests.begin(), requests.end(), uint64_t{0});
}

void Figures::clear(Window& window, Time now) {
  window.since = now;
  window.requests = window.at_once = window.bytes = 0;
  if (window.latency != nullptr) window.latency->clear();
}

void Figures::turn_windows(Time now) {
  const Duration age = now - newer_.since;
  if (age < kWindow) return;
  std::swap(newer_, older_);
  if (age >= kWindow + kWindow) clear(older_, now);
  clear(newer_, now);
}

void Figures::count(const Request& request, uint64_t bytes, const Result<void>& result, Time now) {
  using Kind = Request::Kind;
  turn_windows(now);
  ++totals_.requests[static_cast<size_t>(request.kind)];
  ++newer_.requests;
  if (!result) {
    const Errc why = result.error().code();
    const bool is_error =
        why != Errc::kMismatch && why != Errc::kCancelled && why != Errc::kTimedOut;
    totals_.errors += is_error ? 1 : 0;
    return;
  }
  if (request.kind == Kind::kDiscard || request.kind == Kind::kWriteZeroes) {
    totals_.cleared_bytes += bytes;
    return;
  }
  (request.writes() ? totals_.written_bytes : totals_.read_bytes) += bytes;
  newer_.bytes += bytes;
}

void Figures::done(const Request& request, uint64_t bytes, const Result<void>& result,
                   Duration took, Time now) {
  --totals_.in_flight;
  count(request, bytes, result, now);
  totals_.latency.record(took);
  if (newer_.latency == nullptr) newer_.latency = std::make_unique<Histogram>();
  newer_.latency->record(static_cast<uint64_t>(std::max<int64_t>(took.ns, 0)));
}

void Figures::done_at_once(const Request& request, uint64_t bytes, const Result<void>& result,
                           Time now) {
  count(request, bytes, result, now);
  totals_.latency.record({});
  ++newer_.at_once;
}

LayerFigures Figures::at(Time now) {
  turn_windows(now);
  LayerFigures figures = totals_;
  Histogram latency;
  for (const Window* window : {&newer_, &older_}) {
    if (window->latency != nullptr) latency.merge(*window->latency);
    if (window->at_once > 0) latency.record_many(0, window->at_once);
  }
  const Time since = std::min(older_.since, newer_.since);
  const double seconds = static_cast<double>(std::max<int64_t>((now - since).ns, 1)) / 1e9;
  figures.requests_per_second = static_cast<double>(newer_.requests + older_.requests) / seconds;
  figures.bytes_per_second = static_cast<double>(newer_.bytes + older_.bytes) / seconds;
  figures.p50 = Duration{static_cast<int64_t>(latency.p50())};
  figures.p99 = Duration{static_cast<int64_t>(latency.p99())};
  figures.longest = Duration{static_cast<int64_t>(latency.max())};
  return figures;
}

}  // namespace cairn::drive
