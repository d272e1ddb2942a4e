// SPDX-License-Identifier: Apache-2.0
// Journal: where a store of this process (local_store.h) keeps what happened to its state.
#pragma once

#include <span>

#include "base/error.h"
#include "meta/state.h"
#include "task/task.h"

namespace cairn::meta {

class Journal {
 public:
  virtual ~Journal() = default;
  // Durable when answered: all of them, in order, or none. Borrowed until then; one call at a time.
  // After an error nothing more is written: what is there of it shows at the next start.
  virtual task::Task<Result<void>> write(std::span<const Mutation> mutations) = 0;
  // Once, at the end.
  virtual task::Task<void> close() = 0;
};

}  // namespace cairn::meta
