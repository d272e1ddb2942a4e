// SPDX-License-Identifier: Apache-2.0
// RestDrive: a drive whose blocks are kept by an HTTP server, read by GET and written by PUT.
//
// Its range is divided into objects, PATH/00000000 and on; an absent one reads as zeroes. Reads
// request just their range. A write of whole objects puts them; a write of a part fetches the
// object first, and has exclusive access to it. Discards and zeroes of whole objects delete them.
// The server replaces an object atomically, so a write within one object is atomic. It has to keep
// everything that it has acknowledged, because HTTP has no flush: this drive has no volatile cache.
// A write that was sent is not cancelled by its token, but completes within the deadline of its
// request.
//
// Only one process at a time changes the drive: the last that opened it (rest/object_store.h).
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "drive/local_opening.h"
#include "drive/ranges.h"
#include "env/env.h"
#include "rest/client.h"
#include "rest/endpoint.h"
#include "rest/object_label_format.h"
#include "rest/object_store.h"
#include "service/common/service_drive.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::rest {

class RestDrive final : public drive::ServiceDrive {
 public:
  using Opened = std::expected<std::unique_ptr<drive::Drive>, std::string>;
  // The drive at that place, whose address is known; a new one where there is none and a size was
  // given. Why not, as a sentence; then nothing was written.
  static task::Task<Opened> open(env::Env& env, Endpoint place);

  // What completed, the server keeps; more is not known.
  drive::Incarnation incarnation() const override { return {.local_opening = drive::kKernelKeeps}; }
  std::vector<drive::Fact> facts() const override;
  std::vector<drive::Concern> concerns() const override;

 private:
  // A part of a request, inside one object.
  struct Part {
    uint64_t object = 0;
    uint64_t offset = 0;  // in the object
    uint64_t length = 0;
    uint64_t at = 0;  // in the request
  };
  using Memory = std::span<const MutableBytes>;

  RestDrive(env::Env& env, const Endpoint& place);
  task::Task<std::expected<ObjectLabel, std::string>> find_label(const Endpoint& place);
  void shape(const ObjectLabel& label);

  task::Task<Result<void>> run(drive::DriveOp& op) override;
  task::Task<Result<void>> flush();
  task::Task<Result<void>> change(drive::DriveOp& op);
  task::Task<Result<void>> compare(const drive::DriveOp& op);
  // Runs `each` for every part of the request, some at a time; the first error ends it.
  using ForPart = task::Task<Result<void>> (RestDrive::*)(drive::DriveOp&, Part);
  task::Task<Result<void>> spread(drive::DriveOp& op, ForPart each);
  task::Task<Result<void>> read_part(drive::DriveOp& op, Part part);
  task::Task<Result<void>> change_part(drive::DriveOp& op, Part part);
  task::Task<Result<void>> edit_part(drive::DriveOp& op, Part part);
  task::Task<Result<void>> put_part(const drive::DriveOp& op, Part part);
  task::Task<Result<void>> put_zeroes(const drive::DriveOp& op, Part part);

  Part part_of(const drive::Request& request, uint64_t at) const;
  uint64_t object_bytes(uint64_t object) const;

  env::Env& env_;
  Client client_;
  ObjectStore store_;
  uint32_t object_size_ = 0;
  drive::Ranges objects_;  // who changes which
  task::Semaphore edits_;  // so that they do not take all buffers
};

}  // namespace cairn::rest
