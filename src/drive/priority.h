// SPDX-License-Identifier: Apache-2.0
// priority: who waits for an answer goes before who works through a batch.
//
//   priority(DRIVE, depth=1024, batch_depth=1, floor=10, quiet_ms=10)
//
// Requests of low priority are batch, all others interactive. At most `depth` of both are below at
// once. Interactive ones go first, in the order they came. Batch ones have at most `batch_depth`
// below until none of the others was there for `quiet_ms`, so that those find the drive free;
// yet batch always gets `floor` percent of the blocks that go while it waits. A flush counts as one
// block, and is what its own priority says. `depth` is large because a drive answers out of order:
// requests that wait for a busy part of it must not keep others from its idle ones.
#pragma once

#include "drive/services.h"

namespace cairn::drive {

extern const Service kPriority;

}  // namespace cairn::drive
