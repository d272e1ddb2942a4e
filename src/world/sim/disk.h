// SPDX-License-Identifier: Apache-2.0
// SimDisk: a program's handle of a medium, and its requests in flight. Internal.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/list.h"
#include "env/disk.h"
#include "env/disk_identity.h"
#include "world/sim/event_queue.h"
#include "world/sim/medium.h"
#include "world/sim/process.h"

namespace cairn::sim {

class Core;

class SimDisk final : public env::Disk, public env::DiskIdentity, public Mortal {
 public:
  static Result<std::unique_ptr<env::Disk>> open(Core& core, const env::DiskOptions& options);
  SimDisk(Core& core, Medium& medium, const env::DiskOptions& options);
  ~SimDisk() override;

  uint64_t size() const override { return medium_.size(); }
  uint32_t block_size() const override { return medium_.block_size(); }
  Extent next_data(uint64_t offset) const override { return medium_.next_data(offset); }
  uint64_t medium_id() const override { return medium_id_; }

  // Power failed: what is in flight changes any subset of its blocks.
  void die(Death death) override;
  const char* what() const override { return "disk"; }

 private:
  struct Pending;
  static const EventKind kComplete;
  static void on_complete(Event& event);

  void start_disk_op(env::DiskOp& op) override;
  void cancel_disk_op(env::DiskOp& op) override;
  void finish(Pending& pending, Result<void> result);

  Core& core_;
  Medium& medium_;
  const bool is_read_only_;
  const uint64_t medium_id_;
  bool is_dead_ = false;
  std::vector<std::unique_ptr<Pending>> pool_;
  Pending* free_ = nullptr;
  List<Pending, SimDisk> in_flight_;  // in the order they were started
};

}  // namespace cairn::sim
