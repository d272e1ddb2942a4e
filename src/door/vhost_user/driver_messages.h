// SPDX-License-Identifier: Apache-2.0
// DriverMessages: what a driver asks of a server, message by message, over one connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/vhost_user/message.h"
#include "door/vhost_user/wire_format.h"
#include "env/sharing.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::door::vhost_user {

// On one core; one message at a time. Errors: those of the stream; kClosed: the server has gone;
// kInvalid: its answer is none to the question.
class DriverMessages {
 public:
  void begin(std::unique_ptr<env::LocalStream> stream) { stream_ = std::move(stream); }
  void end() { stream_.reset(); }
  // Null before begin() and after end().
  env::LocalStream* stream() const { return stream_.get(); }

  task::Task<Result<void>> write(Request request, uint32_t flags, Bytes payload,
                                 std::span<const env::Descriptor* const> descriptors,
                                 task::CancelToken token);
  // The payload of the answer; `came` takes the descriptor that comes with it, if not null.
  task::Task<Result<std::vector<std::byte>>> read(Request request, env::Descriptor* came,
                                                  task::CancelToken token);

  // A question whose answer is a number.
  task::Task<Result<uint64_t>> ask(Request request, task::CancelToken token);
  // A message whose answer says whether it was carried out: 0, or a number other than that.
  task::Task<Result<uint64_t>> send(Request request, Bytes payload,
                                    const env::Descriptor* descriptor, task::CancelToken token);
  // The same with a number; kInvalid also when the server refused.
  task::Task<Result<uint64_t>> tell(Request request, uint64_t value, task::CancelToken token);

 private:
  std::unique_ptr<env::LocalStream> stream_;
};

}  // namespace cairn::door::vhost_user
