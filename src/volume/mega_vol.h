// SPDX-License-Identifier: Apache-2.0
// MegaVol: a whole drive of a box as a member of a pool, known by the label on it.
//
//   extent 0         the label (service/common/label.h, mega_vol_format.h); the rest of it is
//   unused extent 1 to N-1  extents of volumes
//
// An extent that belongs to no volume reads as zeroes, so that whoever gets it next never sees what
// was there before: it is cleared when it is given back, durably, before it counts as free.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "drive/drive.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/task.h"
#include "volume/types.h"

namespace cairn::volume {

// Opens drives of a pool. Whoever knows the protocols of boxes implements it. It outlives what it
// opened.
class MegaVolSource {
 public:
  virtual ~MegaVolSource() = default;
  // The drive at a URI, whatever is on it, for somebody whom its box knows as `host`: by that name
  // they can be fenced, and all that they do with this drive then fails with kDenied. Each opening
  // makes the host known again, also one that was fenced: so whoever opens drives for the sake of a
  // right that others can take away makes sure afterwards that it still has the right, before it
  // changes anything. kUnreachable, kNotFound, kDenied, kInvalid; kUnsupported: nobody can be
  // fenced there.
  virtual task::Task<Result<std::unique_ptr<drive::Drive>>> open(std::string uri, std::string host,
                                                                 task::CancelToken token = {}) = 0;
};

struct MegaVolPool {
  Uuid uuid{};
  uint64_t extent_bytes = kExtentBytes;
};

// Makes a drive a member of the pool: clears all of it and writes a label with a new uuid, which
// with the number of extents is filled in. Nothing is changed unless the drive is blank or
// `may_format`, or its making was interrupted.
// kInvalid: it holds something else (drive::is_not_blank), or blocks that are too large; kExists:
// it is a member of a pool already, of this one or another; kNoSpace: it is too small for two
// extents.
task::Task<Result<void>> make_mega_vol(env::Env& env, drive::Drive& drive, MegaVolPool pool,
                                       MegaVolInfo& info, bool may_format,
                                       task::CancelToken token = {});

// Whether it would be made, or with which of these errors it would be refused.
task::Task<Result<void>> may_make_mega_vol(env::Env& env, drive::Drive& drive, MegaVolPool pool,
                                           bool may_format);

// Whether the drive is the one that the pool knows. kNotFound: it is blank, it was emptied;
// kMismatch: it is another drive, another pool's, or smaller than it was; kCorrupt, kUnsupported
// (another version), and errors of the drive.
task::Task<Result<void>> check_mega_vol(env::Env& env, drive::Drive& drive, MegaVolPool pool,
                                        const MegaVolInfo& info, task::CancelToken token = {});

// Whether such an error of check_mega_vol() says that what the drive held is gone, or elsewhere:
// trying again is no use.
bool is_other_drive(const Error& error);

// The drive of a member, which was checked. Errors of both.
task::Task<Result<std::unique_ptr<drive::Drive>>> open_mega_vol(env::Env& env,
                                                                MegaVolSource& source,
                                                                std::string host, MegaVolPool pool,
                                                                MegaVolInfo info,
                                                                task::CancelToken token = {});

// By which a drive is known that has a label of this pool. Otherwise as check_mega_vol().
task::Task<Result<Uuid>> read_uuid(env::Env& env, drive::Drive& drive, MegaVolPool pool,
                                   task::CancelToken token = {});

// Takes a member out of its pool: its label goes. Errors of the drive.
task::Task<Result<void>> forget_mega_vol(env::Env& env, drive::Drive& drive,
                                         task::CancelToken token = {});

}  // namespace cairn::volume
