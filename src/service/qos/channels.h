// SPDX-License-Identifier: Apache-2.0
// channels: a tenant's own part of a modelled drive's flash parallelism.
//
//   channels(flash:profile=dct983,size=8G, first=0, count=4)
//
// The drive has the pages that lie on `count` of the modelled drive's channels from `first` on, in
// their order, and no others: its share of the capacity, and all of those channels' chips and
// buses. What others do on other channels of the same drive does not wait for it, nor it for them,
// but for what all share: the link to the host, the controller with its memory, and the table that
// tells where pages are, parts of which lie on all channels unless the controller keeps it whole.
//
// Several may stand on one leaf, in one stack or in the stacks of one process: the leaf is opened
// once for all of them. Everything passes as it is, a request for each run of pages that follow
// each other below; a compare-and-write of several runs is alone with its blocks.
//
// It does not open (kInvalid) over anything but a modelled drive, when the channels are past the
// last one, when blocks are larger than a flash page or cross one, and when the modelled drive
// writes pages to whichever channel is least busy; kExists when another has one of the channels.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kChannels;

}  // namespace cairn::drive
