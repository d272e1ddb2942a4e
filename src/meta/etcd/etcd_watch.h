// SPDX-License-Identifier: Apache-2.0
// EtcdWatch: a watch on etcd, over a connection of its own that is made again when it breaks.
//
// It asks etcd for the changes from the revision before its position on and skips that one: then
// etcd tells for certain when the history it needs was compacted. A commit is given out when all of
// it has arrived, and the position moves with it; so nothing is lost or doubled by a broken
// connection.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "env/address.h"
#include "env/env.h"
#include "http/connection.h"
#include "meta/etcd/lines.h"
#include "meta/etcd/messages.h"
#include "meta/store.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::meta::etcd {

class EtcdWatch final : public Watch {
 public:
  // `watchers` counts those of the store, this one included, until it is closed. Both it and
  // `lines` outlive the watch.
  EtcdWatch(env::Env& env, Lines& lines, size_t& watchers, Range range, Revision from);
  ~EtcdWatch() override;

  task::Task<Result<std::vector<Change>>> next(task::CancelToken token) override;
  Revision position() const override { return from_; }
  task::Task<void> close() override;

 private:
  task::Task<Result<std::vector<Change>>> next_inside(task::CancelToken token);
  task::Task<Result<void>> connect(task::CancelToken token);
  // One message, without its end.
  task::Task<Result<std::string>> read_line(task::CancelToken token);
  // What became whole by it.
  Result<std::vector<Change>> take(etcd::WatchMessage message);
  void disconnect();

  env::Env& env_;
  Lines& lines_;
  size_t& watchers_;
  Range range_;
  Revision from_;
  env::Address server_;
  std::unique_ptr<http::Connection> connection_;
  std::string unread_;             // the beginning of a message
  std::optional<Change> partial_;  // of a commit
  std::optional<Error> ended_;
  bool closed_ = false;
};

}  // namespace cairn::meta::etcd
