// SPDX-License-Identifier: Apache-2.0
// A drive out of the rack's spare space: found on the billboard, agreed on with each box itself,
// recorded, and given back.
#pragma once

#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "env/env.h"
#include "meta/store.h"
#include "rack/choose.h"
#include "rack/types.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::rack {

// How a box is asked, face to face.
class Peers {
 public:
  // What Lender::ask answers. kUnsupported: the box gives no space away. Other errors: it cannot
  // be reached, or its answer was lost; asking again with the same id does no harm.
  virtual task::Task<Result<uint32_t>> ask(Endpoint place, SpaceRequest request,
                                           task::CancelToken token) = 0;

 protected:
  ~Peers() = default;
};

struct DriveWish {
  std::string name;
  Wish wish;
  std::string owner;    // a host NQN: who connects to the legs, and may release them
  std::string connect;  // as DriveRecord's
};

// What is wrong, for people.
template <class T>
using Outcome = std::expected<T, std::string>;

// Asks one offer's box after the other. An offer that is stale is passed over; a box that refuses,
// or does not answer, too, and the next best takes its place. All legs or none: what was reserved
// for a drive that does not come to be is given back now, or by its box at the end of the term.
// `store` and `peers` outlive the task.
task::Task<Outcome<DriveRecord>> create_drive(env::Env& env, meta::Store& store, Peers& peers,
                                              DriveWish wish, task::CancelToken token);

// Gives the space back: on success nothing is left of the drive. First all boxes are asked; unless
// it is by force, nothing is done when one says that the drive is in use, or does not answer: then
// what the others have may be the only current copy. By force, a box that is away is named, its leg
// stays in the record, and the call can be repeated; the drive is not to be used from then on.
enum class Release : uint8_t { kUnused, kByForce };
task::Task<Outcome<void>> release_drive(meta::Store& store, Peers& peers, std::string name,
                                        Release how, task::CancelToken token);

// The drive as `cairn serve` takes it, or what is wrong with its connect options.
Outcome<std::string> stack_of(const DriveRecord& drive);

}  // namespace cairn::rack
