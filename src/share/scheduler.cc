// SPDX-License-Identifier: Apache-2.0
#include "share/scheduler.h"

#include "base/check.h"

namespace cairn::share {

Result<void> Scheduler::enqueue(const Pending& request, Time now) {
  if (size_ >= kPendingMax) return fail(Errc::kLimit, "65536 requests wait to be sent");
  Stream& stream = streams_[request.stream];
  const Drive& drive = drives_[request.drive];
  const uint64_t kib = weighted(request.type, request.bytes, drive.write_cost_x10) / 1024;
  const auto cost = static_cast<int64_t>(kib * static_cast<uint64_t>(kCostOfKiB.ns) * 1000 /
                                         stream.share_permille);
  const Entry entry{
      .request = request, .rank = now.ns + std::min(cost, kCostMax.ns), .arrival = arrivals_++};
  if (stream.waiting.empty()) put_head(request.stream, entry);
  stream.waiting.push_back(entry);
  ++size_;
  return {};
}

void Scheduler::put_head(StreamId stream, const Entry& entry) {
  drives_[entry.request.drive].heads.insert(
      {.rank = entry.rank, .arrival = entry.arrival, .stream = stream});
}

void Scheduler::order_drives() {
  best_.clear();
  for (auto& [id, drive] : drives_) {
    if (drive.heads.empty()) continue;
    const Head& head = *drive.heads.begin();
    best_.push_back(
        {.rank = head.rank + drive.congestion.ns, .arrival = head.arrival, .drive = &drive});
  }
  std::ranges::sort(best_, {}, [](const Best& best) { return std::pair(best.rank, best.arrival); });
}

const Pending& Scheduler::front_of(const Drive& drive) const {
  return streams_.at(drive.heads.begin()->stream).waiting.front().request;
}

Pending Scheduler::take(Drive& drive) {
  const StreamId id = drive.heads.begin()->stream;
  drive.heads.erase(drive.heads.begin());
  Stream& stream = streams_.at(id);
  const Pending request = stream.waiting.front().request;
  stream.waiting.pop_front();
  if (!stream.waiting.empty()) put_head(id, stream.waiting.front());
  --size_;
  return request;
}

void Scheduler::set_share(StreamId stream, uint32_t permille) {
  CHECK(permille >= 1);
  CHECK(permille <= 1000);
  streams_[stream].share_permille = permille;
}

void Scheduler::set_write_cost(DriveId drive, uint32_t write_cost_x10) {
  drives_[drive].write_cost_x10 = write_cost_x10;
}

void Scheduler::set_congestion(DriveId drive, Duration delay) {
  drives_[drive].congestion = std::clamp(delay, Duration{}, kCongestionMax);
}

}  // namespace cairn::share
