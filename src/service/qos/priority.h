// SPDX-License-Identifier: Apache-2.0
// priority: who waits for an answer goes before who works through a batch.
//
//   priority(DRIVE, depth=1024, batch_depth=2, floor=10, quiet_ms=10)
//
// Requests of low priority are batch, all others interactive. At most `depth` of both are below at
// once. Interactive ones go first, in the order they came. Batch ones have at most `batch_depth`
// below, and go only in a *trough*: while no more of the others are below than those usually find
// there. So batch adds nothing to a crest. When none of the others was there for `quiet_ms` batch
// has the whole depth.
//
// Yet batch always gets `floor` percent of the blocks that go while it waits, before others that
// wait: in troughs, or after `quiet_ms` even in a crest. With a `batch_depth` of 0 it gets no more
// than that. A flush counts as one block, and is what its own priority says.
//
// `depth` is large because a drive answers out of order: requests that wait for a busy part of it
// must not keep others from its idle ones.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kPriority;

}  // namespace cairn::drive
