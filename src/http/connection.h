// SPDX-License-Identifier: Apache-2.0
// Connection: one request and its response after the other on one stream (HTTP/1.1, no pipelining).
// The body of a response is given out as it arrives, so it may also be one without an end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "env/stream.h"
#include "http/response.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::http {

// Borrowed until the head of the answer is there.
struct Request {
  std::string head;             // all lines with their CR LF, the empty one too
  std::span<const Bytes> body;  // as long as the head says
  bool is_head = false;         // the method is HEAD: the answer has no body
};

class Connection {
 public:
  explicit Connection(std::unique_ptr<env::Stream> stream) : stream_(std::move(stream)) {}

  // Sends the request and reads the head of its answer; its body follows by receive(), to its end,
  // before another request. Errors of the stream; kClosed: it ended before the answer did;
  // kCorrupt, kUnsupported: as parse_head(). After an error only the connection's end may follow.
  task::Task<Result<ResponseHead>> send(const Request& request, task::CancelToken token);

  // The next bytes of the body, good until the next call; empty: it is over. Errors as send(); one
  // by the token alone leaves the body where it is.
  task::Task<Result<Bytes>> receive(task::CancelToken token);

  // Gives back the memory in which bytes arrived; what is unused is kept elsewhere. For those who
  // have used what receive() gave them and may not come again soon.
  void release();

  // Whether another request may follow.
  bool is_reusable() const { return reusable_; }
  // Whether anything of the last answer arrived.
  bool has_heard() const { return heard_; }

 private:
  // At least one byte that is not used up yet. kClosed at the end.
  task::Task<Result<void>> fill(task::CancelToken token);
  task::Task<Result<ResponseHead>> read_head(task::CancelToken token);
  void begin_body(const Request& request, const ResponseHead& head);
  void end_body();
  void drop(size_t count) { unused_ = unused_.subspan(count); }

  std::unique_ptr<env::Stream> stream_;
  env::Chunk chunk_;
  std::vector<std::byte> kept_;  // what was unused when the chunk was released
  Bytes unused_;                 // of chunk_ or kept_

  // The body that is being received.
  bool in_body_ = false;
  bool is_chunked_ = false;
  bool until_end_ = false;  // of the connection
  uint64_t left_ = 0;       // of one with a length
  ChunkedBody chunked_;

  bool keep_alive_ = false;  // as far as the server, and what was sent, allow
  bool reusable_ = false;
  bool heard_ = false;
};

}  // namespace cairn::http
