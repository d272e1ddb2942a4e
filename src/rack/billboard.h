// SPDX-License-Identifier: Apache-2.0
// The billboard: where boxes say in the metadata store what they have to spare, and others read it.
//
// An offer is bound to a lease, so that it goes when its box does, and says itself until when it
// counts: where a lease ends late, readers pass it over all the same.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "meta/held_lease.h"
#include "meta/store.h"
#include "rack/types.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::rack {

std::string offer_key(std::string_view box, std::string_view shelf);

struct Board {
  std::vector<Offer> offers;  // by box and shelf
  std::vector<Offer> stale;   // expired, and still there
  size_t unreadable = 0;
};
// `now_ms`: the reader's wall clock, since 1970.
task::Task<Result<Board>> read_board(meta::Store& store, uint64_t now_ms, task::CancelToken token);
uint64_t wall_ms(const env::Env& env);

// Keeps a box's offers on the billboard. One core; the store outlives it.
class Publisher {
 public:
  struct Options {
    Duration expiry = 15_s;  // offers are put anew three times in this
    // What is to be read of this box now, without expiry. At most kShelvesMax.
    std::function<std::vector<Offer>()> offers;
    // Told when the store could not be reached, and when it could again.
    std::function<void(const Result<void>&)> report;
  };
  Publisher(env::Env& env, meta::Store& store, Options options);
  ~Publisher();

  void start();
  // What is offered has changed: it is put at once.
  void changed() { changed_.set(); }
  // Takes the offers away, if the store can be reached; else they expire. Once.
  task::Task<void> close();

 private:
  task::Task<void> run();
  task::Task<Result<void>> publish();
  void tell(const Result<void>& published);

  env::Env& env_;
  meta::Store& store_;
  Options options_;
  std::unique_ptr<meta::HeldLease> lease_;
  bool is_failing_ = false;
  task::Event changed_;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::rack
