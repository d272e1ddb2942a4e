// SPDX-License-Identifier: Apache-2.0
// RespClient: the other end of a door: commands to a server, and its replies.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "door/resp/reply_decoder.h"
#include "env/env.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::door::resp {

// The words of a command as a server takes them.
std::string encode_request(std::span<const std::string_view> args);

// One command after the other; or many are sent, and their replies received after that.
class RespClient {
 public:
  explicit RespClient(std::unique_ptr<env::Stream> stream) : stream_(std::move(stream)) {}

  // The reply, which may be an error of the server's. Errors of the stream; kCorrupt, kLimit: as
  // ReplyDecoder. After an error only the connection's end may follow.
  task::Task<Result<Value>> call(std::span<const std::string_view> args, task::CancelToken token);
  task::Task<Result<Value>> call(std::initializer_list<std::string_view> args,
                                 task::CancelToken token) {
    return call(std::span(args.begin(), args.size()), token);
  }

  // Requests as bytes; lent until it is done.
  task::Task<Result<void>> send(std::string_view requests, task::CancelToken token);
  task::Task<Result<Value>> receive(task::CancelToken token);

  env::Stream& stream() { return *stream_; }

 private:
  std::unique_ptr<env::Stream> stream_;
  ReplyDecoder decoder_;
  env::Chunk chunk_;
  std::string_view left_;  // of the chunk
};

}  // namespace cairn::door::resp
