// SPDX-License-Identifier: Apache-2.0
// Connection: one request and its response after the other on one stream (HTTP/1.1, no pipelining).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "env/stream.h"
#include "rest/response.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::rest {

enum class Method : uint8_t { kGet, kHead, kPut, kDelete };

// Borrowed until the answer is there.
struct HttpRequest {
  Method method = Method::kGet;
  std::string target;           // "/volume/0000000a"
  std::string fields;           // more header lines, each with its CR LF
  std::span<const Bytes> body;  // of a PUT
  // Where the body of a 200 or 206 goes, as far as it fits. Of a 200 to a request for a range, the
  // bytes from `skip` on: such a server sends the whole object.
  std::span<const MutableBytes> into;
  uint64_t skip = 0;

  bool changes() const { return method == Method::kPut || method == Method::kDelete; }
};

struct HttpAnswer {
  ResponseHead head;
  uint64_t body_size = 0;     // all bytes of the body
  uint64_t stored = 0;        // those that went to `into`
  bool was_repeated = false;  // an earlier attempt may have been carried out too
  uint16_t status() const { return head.status; }
};

// A body is longer than any object, and no answer of a server that is asked for one.
inline constexpr uint64_t kBodyMax = uint64_t{4} << 20;

class Connection {
 public:
  // `host` is for the Host field.
  Connection(std::unique_ptr<env::Stream> stream, std::string host)
      : stream_(std::move(stream)), host_(std::move(host)) {}

  // Errors of the stream; kClosed: it ended before the answer did; kCorrupt, kUnsupported: as
  // parse_head(), or a body too long. After an error only the connection's end may follow.
  task::Task<Result<HttpAnswer>> exchange(const HttpRequest& request, task::CancelToken token);
  // Whether another request may follow.
  bool is_reusable() const { return reusable_; }
  // Whether anything of the last answer arrived.
  bool has_heard() const { return heard_; }

 private:
  std::string head_of(const HttpRequest& request) const;
  // What arrived and is not used up yet, at least one byte. kClosed at the end.
  task::Task<Result<void>> fill(task::CancelToken token);
  task::Task<Result<ResponseHead>> read_head(task::CancelToken token);
  task::Task<Result<void>> read_body(const HttpRequest& request, HttpAnswer& answer,
                                     task::CancelToken token);
  void drop(size_t count) { left_ = left_.subspan(count); }

  std::unique_ptr<env::Stream> stream_;
  std::string host_;
  env::Chunk chunk_;
  Bytes left_;  // of chunk_
  bool reusable_ = false;
  bool heard_ = false;
};

}  // namespace cairn::rest
