// SPDX-License-Identifier: Apache-2.0
#include "door/resp/client.h"

#include <fmt/format.h>

#include <utility>

#include "base/bytes.h"

namespace cairn::door::resp {

std::string encode_request(std::span<const std::string_view> args) {
  std::string bytes = fmt::format("*{}\r\n", args.size());
  for (const std::string_view word : args) {
    bytes += fmt::format("${}\r\n", word.size());
    bytes += word;
    bytes += kLineEnd;
  }
  return bytes;
}

task::Task<Result<Value>> RespClient::call(std::span<const std::string_view> args,
                                           task::CancelToken token) {
  const std::string request = encode_request(args);
  const Result<void> sent = co_await send(request, token);
  if (!sent) co_return fail(sent.error());
  Result<Value> reply = co_await receive(token);
  co_return reply;
}

task::Task<Result<void>> RespClient::send(std::string_view requests, task::CancelToken token) {
  const Result<void> sent = co_await stream_->write(as_bytes(requests), token);
  co_return sent;
}

task::Task<Result<Value>> RespClient::receive(task::CancelToken token) {
  Value value;
  for (;;) {
    const Result<bool> whole = decoder_.take(left_, value);
    if (!whole) co_return fail(whole.error());
    if (*whole) co_return value;
    chunk_.release();
    Result<env::Chunk> chunk = co_await stream_->receive(token);
    if (!chunk) co_return fail(chunk.error());
    if (chunk->empty()) co_return fail(Errc::kClosed, "the server has ended the connection");
    chunk_ = std::move(*chunk);
    left_ = as_text(chunk_.bytes());
  }
}

}  // namespace cairn::door::resp
