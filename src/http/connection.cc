// SPDX-License-Identifier: Apache-2.0
#include "http/connection.h"

#include <algorithm>
#include <optional>

namespace cairn::http {

task::Task<Result<ResponseHead>> Connection::send(const Request& request, task::CancelToken token) {
  reusable_ = false;
  heard_ = false;
  std::vector<Bytes> pieces{as_bytes(request.head)};
  pieces.insert(pieces.end(), request.body.begin(), request.body.end());
  const Result<void> sent = co_await stream_->write(pieces, token);
  if (!sent && sent.error() != Errc::kReset) co_return fail(sent.error());

  // A server that refuses a body says so and hangs up: its answer is there though not all was sent.
  ResponseHead head;
  do {
    Result<ResponseHead> read = co_await read_head(token);
    // Through TLS a server may also refuse the client itself, and hang up.
    const bool says_more = sent || (!read && read.error() == Errc::kDenied);
    if (!read) co_return fail(says_more ? read.error() : sent.error());
    head = std::move(*read);
  } while (head.status < 200);
  keep_alive_ = sent && head.keep_alive;
  begin_body(request, head);
  co_return head;
}

void Connection::begin_body(const Request& request, const ResponseHead& head) {
  const bool has_body = !request.is_head && head.status != 204 && head.status != 304;
  is_chunked_ = head.is_chunked;
  until_end_ = !head.is_chunked && !head.length;
  left_ = head.length.value_or(0);
  chunked_ = {};
  in_body_ = true;
  if (!has_body || (head.length && left_ == 0)) end_body();
}

void Connection::end_body() {
  in_body_ = false;
  reusable_ = keep_alive_ && unused_.empty();
}

task::Task<Result<void>> Connection::fill(task::CancelToken token) {
  if (!unused_.empty()) co_return Result<void>{};
  chunk_.release();
  Result<env::Chunk> chunk = co_await stream_->receive(token);
  if (!chunk) co_return fail(chunk.error());
  if (chunk->empty()) co_return fail(Errc::kClosed, "the HTTP server hung up");
  heard_ = true;
  chunk_ = std::move(*chunk);
  unused_ = chunk_.bytes();
  co_return Result<void>{};
}

task::Task<Result<ResponseHead>> Connection::read_head(task::CancelToken token) {
  std::vector<std::byte> bytes;
  while (true) {
    const Result<void> filled = co_await fill(token);
    if (!filled) co_return fail(filled.error());
    const size_t before = bytes.size();
    const Bytes more = unused_.first(std::min(unused_.size(), kHeadMax - before));
    bytes.insert(bytes.end(), more.begin(), more.end());
    Result<std::optional<ResponseHead>> head = parse_head(bytes);
    if (!head) co_return fail(head.error());
    if (*head) {
      drop((*head)->size - before);
      co_return std::move(**head);
    }
    drop(more.size());
  }
}

void Connection::release() {
  if (chunk_.empty()) return;
  kept_.assign(unused_.begin(), unused_.end());
  unused_ = kept_;
  chunk_.release();
}

task::Task<Result<Bytes>> Connection::receive(task::CancelToken token) {
  while (in_body_) {
    const Result<void> filled = co_await fill(token);
    if (!filled && until_end_ && filled.error() == Errc::kClosed) {
      keep_alive_ = false;
      end_body();
      break;
    }
    if (!filled) co_return fail(filled.error());
    Bytes data;
    if (is_chunked_) {
      const Result<Bytes> found = chunked_.take(unused_);
      if (!found) co_return fail(found.error());
      data = *found;
      if (chunked_.is_over()) end_body();
    } else if (until_end_) {
      data = unused_;
      drop(data.size());
    } else {
      data = unused_.first(std::min<uint64_t>(unused_.size(), left_));
      drop(data.size());
      left_ -= data.size();
      if (left_ == 0) end_body();
    }
    if (!data.empty()) co_return data;
  }
  co_return Bytes();
}

}  // namespace cairn::http
