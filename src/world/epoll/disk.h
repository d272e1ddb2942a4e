// SPDX-License-Identifier: Apache-2.0
// A disk whose calls block on helper threads instead of the core.
#pragma once

#include <cstdint>
#include <utility>

#include "env/disk.h"
#include "env/disk_identity.h"
#include "world/epoll/core.h"
#include "world/posix/file.h"

namespace cairn::epoll {

class EpollDisk final : public env::Disk, public env::DiskIdentity {
 public:
  EpollDisk(EpollCore& core, posix::DiskFile file) : core_(core), file_(std::move(file)) {}
  ~EpollDisk() override;

  uint64_t size() const override { return file_.size; }
  uint32_t block_size() const override { return file_.block_size; }
  Extent next_data(uint64_t offset) const override { return posix::next_data(file_, offset); }
  uint64_t medium_id() const override { return file_.medium_id; }

 private:
  class Job;
  void start_disk_op(env::DiskOp& op) override;
  void cancel_disk_op(env::DiskOp& op) override;
  void finish(env::DiskOp& op, Result<void> result);

  EpollCore& core_;
  posix::DiskFile file_;
  size_t in_flight_ = 0;
};

}  // namespace cairn::epoll
