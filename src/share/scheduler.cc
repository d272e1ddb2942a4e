// SPDX-License-Identifier: Apache-2.0
#include "share/scheduler.h"

#include <functional>

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
  stream.waiting.push(entry);
  ++size_;
  return {};
}

void Scheduler::put_head(StreamId stream, const Entry& entry) {
  std::vector<Head>& heads = drives_[entry.request.drive].heads;
  const Head head{.rank = entry.rank, .arrival = entry.arrival, .stream = stream};
  heads.insert(std::ranges::lower_bound(heads, head, std::greater()), head);
}

void Scheduler::Queue::push(const Entry& entry) {
  // Room that was used is used again before there is more.
  if (entries_.size() == entries_.capacity() && first_ > entries_.size() / 2) {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  entries_.push_back(entry);
}

void Scheduler::Queue::pop() {
  if (++first_ < entries_.size()) return;
  entries_.clear();
  first_ = 0;
}

bool Scheduler::Queue::remove(uint64_t tag) {
  const auto found =
      std::find_if(entries_.begin() + static_cast<std::ptrdiff_t>(first_), entries_.end(),
                   [tag](const Entry& entry) { return entry.request.tag == tag; });
  if (found == entries_.end()) return false;
  entries_.erase(found);
  return true;
}

bool Scheduler::remove(StreamId id, uint64_t tag) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || found->second.waiting.empty()) return false;
  Queue& waiting = found->second.waiting;
  const bool is_first = waiting.front().request.tag == tag;
  const DriveId drive = waiting.front().request.drive;
  if (is_first) {
    waiting.pop();
  } else if (!waiting.remove(tag)) {
    return false;
  }
  --size_;
  if (!is_first) return true;
  std::erase_if(drives_.at(drive).heads, [id](const Head& head) { return head.stream == id; });
  if (!waiting.empty()) put_head(id, waiting.front());
  return true;
}

void Scheduler::order_drives() {
  best_.clear();
  for (auto& [id, drive] : drives_) {
    if (drive.heads.empty()) continue;
    const Head& head = drive.heads.back();
    best_.push_back(
        {.rank = head.rank + drive.congestion.ns, .arrival = head.arrival, .drive = &drive});
  }
  std::ranges::sort(best_, {}, [](const Best& best) { return std::pair(best.rank, best.arrival); });
}

const Pending& Scheduler::front_of(const Drive& drive) const {
  return streams_.at(drive.heads.back().stream).waiting.front().request;
}

Pending Scheduler::take(Drive& drive) {
  const StreamId id = drive.heads.back().stream;
  drive.heads.pop_back();
  Stream& stream = streams_.at(id);
  const Pending request = stream.waiting.front().request;
  stream.waiting.pop();
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
