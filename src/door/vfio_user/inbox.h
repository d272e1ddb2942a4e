// SPDX-License-Identifier: Apache-2.0
// Inbox: a client's messages, read ahead of the one that is being obeyed, so that its leaving is
// noticed whatever that one waits for.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>

#include "base/error.h"
#include "door/vfio_user/message.h"
#include "env/sharing.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::door::vfio_user {

// On one core.
class Inbox {
 public:
  // `on_end` is called once, when nothing more will come.
  Inbox(env::LocalStream& stream, std::function<void()> on_end)
      : stream_(stream), on_end_(std::move(on_end)) {}

  // Reads until the client leaves, what comes is no message, or `token`. While kAhead messages have
  // not been taken it reads no further; a client that leaves then is noticed all the same.
  task::Task<void> fill(task::CancelToken token);

  // The oldest message, until drop(). Errors as read_message. Once the end has come, what was sent
  // before and not taken yet comes no more: what it begins nobody would end.
  task::Task<Result<Message*>> next();
  void drop();

 private:
  static constexpr size_t kAhead = 8;
  void end(const Error& why);
  task::Task<Result<void>> wait_for_room(task::CancelToken token);

  env::LocalStream& stream_;
  std::function<void()> on_end_;
  std::array<Message, kAhead> slots_;
  size_t first_ = 0;
  size_t count_ = 0;
  std::optional<Error> end_;
  task::Event came_;                    // a message, or the end
  task::CancelSource* room_ = nullptr;  // ends the wait for it
};

}  // namespace cairn::door::vfio_user
