// SPDX-License-Identifier: Apache-2.0
#include "snis/phases.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::snis {

namespace {

constexpr size_t kToldEvery = 256;  // completions

class KeepServed final : public DriveSink {
 public:
  explicit KeepServed(std::vector<Nanos>& into) : into_(into) {}
  void served(RequestNumber request, Nanos at) override { into_[request] = at; }

 private:
  std::vector<Nanos>& into_;
};

class KeepCarried final : public FabricSink {
 public:
  KeepCarried(std::vector<Picos>& into, const std::function<void(double)>& told)
      : into_(into), told_(told) {}
  void carried(RequestNumber request, Picos at) override {
    into_[request] = at;
    if (++done_ % kToldEvery == 0 && told_) {
      told_(static_cast<double>(done_) / static_cast<double>(into_.size()));
    }
  }

 private:
  std::vector<Picos>& into_;
  const std::function<void(double)>& told_;
  size_t done_ = 0;
};

// Requests in order of time, those of one moment in order of number.
void sort_by_time(std::vector<RequestNumber>& numbers, std::span<const int64_t> times) {
  std::ranges::sort(numbers, [&](RequestNumber a, RequestNumber b) {
    return times[a] != times[b] ? times[a] < times[b] : a < b;
  });
}

}  // namespace

void one_by_one(size_t count, const std::function<void(size_t)>& job) {
  for (size_t i = 0; i < count; ++i) job(i);
}

LocalStorage::LocalStorage(const Models& models, std::span<const trace::Record> requests,
                           Share share)
    : models_(models), requests_(requests), share_(std::move(share)), by_target_(models.targets()) {
  for (size_t i = 0; i < requests.size(); ++i) {
    CHECK(requests[i].target < by_target_.size(), "requests go to targets that there are");
    by_target_[requests[i].target].push_back(static_cast<RequestNumber>(i));
  }
}

std::vector<Nanos> LocalStorage::run(std::span<const Nanos> arrivals) {
  std::vector<Nanos> departures(requests_.size(), kNever);
  share_(by_target_.size(),
         [&](size_t target) { run_target(static_cast<uint32_t>(target), arrivals, departures); });
  return departures;
}

void LocalStorage::run_target(uint32_t target, std::span<const Nanos> arrivals,
                              std::vector<Nanos>& departures) const {
  std::vector<RequestNumber> numbers = by_target_[target];
  std::erase_if(numbers, [&](RequestNumber number) { return arrivals[number] == kNever; });
  if (numbers.empty()) return;
  sort_by_time(numbers, arrivals);
  const std::unique_ptr<Drive> drive = models_.make_drive(target);
  KeepServed sink(departures);
  Nanos now = -1;
  for (const RequestNumber number : numbers) {
    const Nanos at = arrivals[number];
    if (at > now) drive->advance(at - 1, sink);
    now = at;
    drive->submit(number, requests_[number], at);
  }
  drive->advance(kNever, sink);
}

Carried run_network(const Models& models, std::span<const trace::Record> requests,
                    std::span<const Picos> arrivals, const std::function<void(double)>& told) {
  std::vector<RequestNumber> numbers;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (arrivals[i] != kNever) numbers.push_back(static_cast<RequestNumber>(i));
  }
  sort_by_time(numbers, arrivals);
  Carried result{.departures = std::vector<Picos>(requests.size(), kNever), .facts = {}};
  const std::unique_ptr<Fabric> fabric = models.make_fabric();
  KeepCarried sink(result.departures, told);
  Picos now = -1;
  for (const RequestNumber number : numbers) {
    const Picos at = arrivals[number];
    if (at > now) fabric->advance(at - 1, sink);
    now = at;
    fabric->start(number, requests[number], at);
  }
  fabric->advance(kNever, sink);
  result.facts = fabric->facts();
  return result;
}

}  // namespace cairn::snis
