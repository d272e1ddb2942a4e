// SPDX-License-Identifier: Apache-2.0
// FlashDisk: simulated disks that take as long as a modelled SSD.
//
//   ClusterOptions options;
//   options.disk.model = flash_disks(parameters);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "model/flash/model.h"
#include "world/sim/model/model.h"

namespace cairn::sim {

// Requests wait for each other in the drive's queues, dies and channels, and for its collector. A
// disk larger than the drive uses its pages several times.
class FlashDisk final : public DiskModel, private flash::CompletionSink {
 public:
  // `parameters` passed flash::check() and are not compat = "mqsim", which loses requests.
  explicit FlashDisk(const flash::Parameters& parameters);

  std::optional<Time> start(Time now, const env::DiskOp::Request& request, uint64_t tag) override;
  Time next_event() const override;
  void advance(Time now, std::vector<uint64_t>& completed) override;

  const flash::FlashModel& drive() const { return drive_; }

 private:
  void completed(const flash::Completion& completion) override {
    done_.push_back(completion.cookie);
  }

  flash::FlashModel drive_;
  std::vector<uint64_t> done_;
};

// For ClusterOptions::disk.model: each disk is such a drive, with a seed of its own.
std::function<std::unique_ptr<DiskModel>(uint64_t seed)> flash_disks(flash::Parameters parameters);

}  // namespace cairn::sim
