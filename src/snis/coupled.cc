// SPDX-License-Identifier: Apache-2.0
#include "snis/coupled.h"

#include <algorithm>
#include <queue>

#include "base/check.h"

namespace cairn::snis {

namespace {

constexpr size_t kToldEvery = 256;  // requests

// A request that is on its way to a simulator. The earliest first, then the lowest number.
struct Coming {
  int64_t at;
  RequestNumber number;
  friend bool operator>(const Coming& a, const Coming& b) {
    return a.at != b.at ? a.at > b.at : a.number > b.number;
  }
};
using Comings = std::priority_queue<Coming, std::vector<Coming>, std::greater<>>;

class Loop final : DriveSink, FabricSink {
 public:
  Loop(const Models& models, std::span<const trace::Record> requests,
       const std::function<void(double)>& told)
      : requests_(requests),
        told_(told),
        to_drives_(models.targets()),
        fabric_(models.make_fabric()),
        result_{.times = Times(requests.size()), .network = {}} {
    for (uint32_t target = 0; target < models.targets(); ++target) {
      drives_.push_back(models.make_drive(target));
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      const trace::Record& request = requests[i];
      const auto number = static_cast<RequestNumber>(i);
      CHECK(request.target < drives_.size(), "requests go to targets that there are");
      if (request.write) {
        to_network(number, network_time(request.arrival));
      } else {
        to_drive(number, request.arrival);
      }
    }
  }

  Iteration run() {
    for (;;) {
      const Nanos storage = next_storage();
      const Picos network = next_network();
      if (storage == kNever && network == kNever) break;
      // Storage goes first at the same moment.
      if (storage != kNever && network_time(storage) <= network) {
        step_storage(storage);
      } else {
        step_network(network);
      }
    }
    result_.network = fabric_->facts();
    return std::move(result_);
  }

 private:
  Times& times() { return result_.times; }

  void to_drive(RequestNumber number, Nanos at) {
    const uint32_t target = requests_[number].target;
    times().storage_arrival[number] = at;
    to_drives_[target].push({at, number});
    wake(target);
  }
  void to_network(RequestNumber number, Picos at) {
    times().network_arrival[number] = at;
    to_network_.push({at, number});
  }

  void served(RequestNumber number, Nanos at) override {
    times().storage_departure[number] = at;
    if (requests_[number].write) {
      count();
    } else {
      to_network(number, network_time(at));
    }
  }
  void carried(RequestNumber number, Picos at) override {
    times().network_departure[number] = at;
    if (requests_[number].write) {
      to_drive(number, storage_time(at));
    } else {
      count();
    }
  }
  void count() {
    if (++done_ % kToldEvery == 0 && told_) {
      told_(static_cast<double>(done_) / static_cast<double>(requests_.size()));
    }
  }

  Nanos next_of(uint32_t target) const {
    const Nanos coming = to_drives_[target].empty() ? Nanos{kNever} : to_drives_[target].top().at;
    return std::min(coming, drives_[target]->next_event());
  }
  void wake(uint32_t target) {
    const Nanos next = next_of(target);
    if (next != kNever) wakes_.push({next, target});
  }
  // Wakes whose time is no longer their target's next are old.
  Nanos next_storage() {
    while (!wakes_.empty() && next_of(wakes_.top().number) != wakes_.top().at) wakes_.pop();
    return wakes_.empty() ? Nanos{kNever} : wakes_.top().at;
  }
  Picos next_network() const {
    const Picos coming = to_network_.empty() ? Picos{kNever} : to_network_.top().at;
    return std::min(coming, fabric_->next_event());
  }

  void step_storage(Nanos at) {
    while (next_storage() == at) {
      const uint32_t target = wakes_.top().number;
      wakes_.pop();
      Drive& drive = *drives_[target];
      Comings& comings = to_drives_[target];
      if (!comings.empty() && comings.top().at == at) drive.advance(at - 1, *this);
      while (!comings.empty() && comings.top().at == at) {
        const RequestNumber number = comings.top().number;
        comings.pop();
        drive.submit(number, requests_[number], at);
      }
      drive.advance(at, *this);
      wake(target);
    }
  }

  void step_network(Picos at) {
    if (!to_network_.empty() && to_network_.top().at == at) fabric_->advance(at - 1, *this);
    while (!to_network_.empty() && to_network_.top().at == at) {
      const RequestNumber number = to_network_.top().number;
      to_network_.pop();
      fabric_->start(number, requests_[number], at);
    }
    fabric_->advance(at, *this);
  }

  std::span<const trace::Record> requests_;
  const std::function<void(double)>& told_;
  std::vector<std::unique_ptr<Drive>> drives_;
  std::vector<Comings> to_drives_;
  std::unique_ptr<Fabric> fabric_;
  Comings to_network_;
  Comings wakes_;  // number is a target
  Iteration result_;
  size_t done_ = 0;
};

}  // namespace

Iteration run_coupled(const Models& models, std::span<const trace::Record> requests,
                      const std::function<void(double)>& told) {
  return Loop(models, requests, told).run();
}

}  // namespace cairn::snis
