// SPDX-License-Identifier: Apache-2.0
// Connection: objects asked for, put and removed, one after the other on one stream.
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
#include "http/connection.h"
#include "http/response.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::rest {

using http::ContentRange;
using http::ResponseHead;

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
  // False: not sent again once an attempt was given up, because both may be carried out, in any
  // order.
  bool may_repeat = true;

  bool changes() const { return method == Method::kPut || method == Method::kDelete; }
};

struct HttpAnswer {
  ResponseHead head;
  uint64_t body_size = 0;  // all bytes of the body
  uint64_t stored = 0;     // those that went to `into`
  uint16_t status() const { return head.status; }
};

// A body is longer than any object, and no answer of a server that is asked for one.
inline constexpr uint64_t kBodyMax = uint64_t{4} << 20;

class Connection {
 public:
  // `host` is for the Host field.
  Connection(std::unique_ptr<env::Stream> stream, std::string host)
      : http_(std::move(stream)), host_(std::move(host)) {}

  // Errors as http::Connection; kCorrupt: a body too long. After an error only the connection's end
  // may follow.
  task::Task<Result<HttpAnswer>> exchange(const HttpRequest& request, task::CancelToken token);
  // Whether another request may follow.
  bool is_reusable() const { return http_.is_reusable(); }
  // Whether anything of the last answer arrived.
  bool has_heard() const { return http_.has_heard(); }

 private:
  std::string head_of(const HttpRequest& request) const;

  http::Connection http_;
  std::string host_;
};

}  // namespace cairn::rest
