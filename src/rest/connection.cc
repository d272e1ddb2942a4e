// SPDX-License-Identifier: Apache-2.0
#include "rest/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace cairn::rest {

namespace {

const char* name(Method method) {
  constexpr const char* kNames[] = {"GET", "HEAD", "PUT", "DELETE"};
  return kNames[static_cast<size_t>(method)];
}

bool has_body(const HttpRequest& request, const ResponseHead& head) {
  return request.method != Method::kHead && head.status != 204 && head.status != 304;
}

// Puts bytes of a body where they belong, by their place in it.
class Sink {
 public:
  Sink(const HttpRequest& request, HttpAnswer& answer)
      : into_(answer.status() == 200 || answer.status() == 206 ? request.into
                                                               : decltype(request.into)()),
        skip_(answer.status() == 200 ? request.skip : 0),
        answer_(answer) {}

  void put(Bytes data) {
    answer_.body_size += data.size();
    const uint64_t skipped = std::min<uint64_t>(skip_, data.size());
    skip_ -= skipped;
    data = data.subspan(skipped);
    while (!data.empty() && piece_ < into_.size()) {
      const MutableBytes room = into_[piece_].subspan(at_);
      const size_t here = std::min(room.size(), data.size());
      std::ranges::copy(data.first(here), room.begin());
      data = data.subspan(here);
      answer_.stored += here;
      at_ += here;
      if (at_ == into_[piece_].size()) {
        ++piece_;
        at_ = 0;
      }
    }
  }

 private:
  std::span<const MutableBytes> into_;
  uint64_t skip_;
  HttpAnswer& answer_;
  size_t piece_ = 0;
  size_t at_ = 0;  // in that piece
};

}  // namespace

std::string Connection::head_of(const HttpRequest& request) const {
  std::string head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nAccept-Encoding: identity\r\n{}",
                                 name(request.method), request.target, host_, request.fields);
  if (request.method == Method::kPut) {
    head += fmt::format("Content-Length: {}\r\n", total_size(request.body));
  }
  return head + "\r\n";
}

task::Task<Result<HttpAnswer>> Connection::exchange(const HttpRequest& request,
                                                    task::CancelToken token) {
  reusable_ = false;
  heard_ = false;
  const std::string head = head_of(request);
  std::vector<Bytes> pieces{as_bytes(head)};
  pieces.insert(pieces.end(), request.body.begin(), request.body.end());
  const Result<void> sent = co_await stream_->write(pieces, token);
  if (!sent && sent.error() != Errc::kReset) co_return fail(sent.error());

  // A server that refuses a body says so and hangs up: its answer is there though not all was sent.
  HttpAnswer answer;
  do {
    Result<ResponseHead> read = co_await read_head(token);
    if (!read) co_return fail(sent ? read.error() : sent.error());
    answer.head = std::move(*read);
  } while (answer.status() < 200);
  const Result<void> body = co_await read_body(request, answer, token);
  if (!body) co_return fail(body.error());
  reusable_ = sent && answer.head.keep_alive && left_.empty();
  co_return answer;
}

task::Task<Result<void>> Connection::fill(task::CancelToken token) {
  if (!left_.empty()) co_return Result<void>{};
  chunk_.release();
  Result<env::Chunk> chunk = co_await stream_->receive(token);
  if (!chunk) co_return fail(chunk.error());
  if (chunk->empty()) co_return fail(Errc::kClosed, "the HTTP server hung up");
  heard_ = true;
  chunk_ = std::move(*chunk);
  left_ = chunk_.bytes();
  co_return Result<void>{};
}

task::Task<Result<ResponseHead>> Connection::read_head(task::CancelToken token) {
  std::vector<std::byte> bytes;
  while (true) {
    const Result<void> filled = co_await fill(token);
    if (!filled) co_return fail(filled.error());
    const size_t before = bytes.size();
    const Bytes more = left_.first(std::min(left_.size(), kHeadMax - before));
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

task::Task<Result<void>> Connection::read_body(const HttpRequest& request, HttpAnswer& answer,
                                               task::CancelToken token) {
  if (!has_body(request, answer.head)) co_return Result<void>{};
  Sink sink(request, answer);
  ChunkedBody chunked;
  const bool until_end = !answer.head.is_chunked && !answer.head.length;
  if (until_end) answer.head.keep_alive = false;
  const uint64_t length = answer.head.length.value_or(kBodyMax + 1);
  if (answer.head.length && length > kBodyMax) {
    co_return fail(Errc::kCorrupt, "an HTTP body that is longer than any object");
  }
  while (answer.head.is_chunked ? !chunked.is_over() : answer.body_size < length) {
    const Result<void> filled = co_await fill(token);
    if (!filled && until_end && filled.error() == Errc::kClosed) break;
    if (!filled) co_return fail(filled.error());
    Bytes data;
    if (answer.head.is_chunked) {
      const Result<Bytes> found = chunked.take(left_);
      if (!found) co_return fail(found.error());
      data = *found;
    } else {
      data = left_.first(std::min<uint64_t>(left_.size(), length - answer.body_size));
      drop(data.size());
    }
    sink.put(data);
    if (answer.body_size > kBodyMax) {
      co_return fail(Errc::kCorrupt, "an HTTP body that is longer than any object");
    }
  }
  co_return Result<void>{};
}

}  // namespace cairn::rest
