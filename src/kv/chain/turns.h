// SPDX-License-Identifier: Apache-2.0
// Turns: whoever works on a key waits until those before it have done so.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::kv::chain {

// One core.
class Turns {
 public:
  // Give it back by done(), whatever the result is.
  task::Task<Result<void>> take(const std::string& key, task::CancelToken token) {
    Turn& turn = turns_[key];
    ++turn.users;
    const Result<void> mine = co_await turn.one.acquire(1, token);
    co_return mine;
  }
  // `mine`: what take() gave.
  void done(const std::string& key, const Result<void>& mine) {
    const auto found = turns_.find(key);
    if (mine) found->second.one.release();
    if (--found->second.users == 0) turns_.erase(found);
  }

 private:
  struct Turn {
    task::Semaphore one{1};
    size_t users = 0;
  };
  std::map<std::string, Turn> turns_;
};

}  // namespace cairn::kv::chain
