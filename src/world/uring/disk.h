// SPDX-License-Identifier: Apache-2.0
// Disks on io_uring: each operation is one request, or a few when the kernel cuts it short.
#pragma once

#include <cstdint>
#include <utility>

#include "env/disk.h"
#include "env/disk_identity.h"
#include "world/posix/file.h"
#include "world/uring/core.h"

namespace cairn::uring {

class UringDisk final : public env::Disk, public env::DiskIdentity {
 public:
  UringDisk(UringCore& core, posix::DiskFile file) : core_(core), file_(std::move(file)) {}
  ~UringDisk() override;

  uint64_t size() const override { return file_.size; }
  uint32_t block_size() const override { return file_.block_size; }
  Extent next_data(uint64_t offset) const override { return posix::next_data(file_, offset); }
  uint64_t medium_id() const override { return file_.medium_id; }

 private:
  class Job;
  void start_disk_op(env::DiskOp& op) override;
  void cancel_disk_op(env::DiskOp& op) override;
  void finish(env::DiskOp& op, Result<void> result);

  UringCore& core_;
  posix::DiskFile file_;
  size_t in_flight_ = 0;
};

}  // namespace cairn::uring
