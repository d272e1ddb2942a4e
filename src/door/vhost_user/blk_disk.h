// SPDX-License-Identifier: Apache-2.0
// BlkDisk: a drive as a guest sees it, a virtio block device with sectors of 512 bytes.
//
// The guest sees the drive's block size as its physical one, and may use any sectors: firmware
// reads single ones. Requests of whole blocks go to the drive with the guest's own memory. Those of
// parts of blocks are copied once, and a write of a part of a block has exclusive access to the
// block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "door/common/export.h"
#include "door/vhost_user/blk_request.h"
#include "door/vhost_user/virtio_format.h"
#include "drive/drive.h"
#include "env/env.h"
#include "stream/buffer_queue.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::door::vhost_user {

// On one core.
class BlkDisk {
 public:
  // `exported` outlives it.
  BlkDisk(env::Env& env, Export& exported);

  // Those of the device; not of the ring or the protocol.
  uint64_t features() const;
  BlkConfig config(bool writeback) const;

  struct Outcome {
    BlkStatus status = BlkStatus::kOk;
    size_t written = 0;   // bytes of the data, from its front
    bool is_done = true;  // false: it was stopped, and is to be done again by whoever comes next
  };
  // A request that needs no waiting. None: run() it.
  std::optional<Outcome> try_now(const BlkRequest& request, bool durable);
  // `request` and its memory are lent until it is done.
  task::Task<Outcome> run(const BlkRequest& request, bool durable, task::CancelToken token);

  Export& exported() { return export_; }
  // Drawn when it was made: by which a front end that comes again finds it unchanged.
  uint64_t opening() const { return opening_; }
  struct Figures {
    uint64_t requests = 0;
    uint64_t errors = 0;
    uint64_t copied_bytes = 0;  // of data that could not go straight to the drive
  };
  const Figures& figures() const { return figures_; }

 private:
  bool is_whole(const BlkRequest& request) const;
  std::optional<BlkStatus> refuse(const BlkRequest& request) const;
  task::Task<Result<void>> transfer(const BlkRequest& request, bool durable,
                                    task::CancelToken token);
  task::Task<Result<void>> transfer_whole(const BlkRequest& request, bool durable,
                                          task::CancelToken token);
  task::Task<Result<void>> submit(drive::Request request, std::span<const MutableBytes> data,
                                  task::CancelToken token);
  task::Task<Result<void>> read_part(const BlkRequest& request, uint64_t at, size_t size);
  task::Task<Result<void>> write_part(const BlkRequest& request, uint64_t at, size_t size,
                                      bool durable);
  task::Task<Outcome> run_ranges(const BlkRequest& request, bool durable);
  task::Task<Result<void>> run_range(BlkRange range, bool discards, bool durable);
  Outcome get_id(const BlkRequest& request) const;
  Outcome outcome_of(const BlkRequest& request, const Result<void>& done);

  env::Env& env_;
  Export& export_;
  const uint64_t opening_;
  stream::BufferQueue buffers_;
  Figures figures_;
};

}  // namespace cairn::door::vhost_user
