// SPDX-License-Identifier: Apache-2.0
#include "rest/connection.h"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::rest {

namespace {

const char* name(Method method) {
  constexpr const char* kNames[] = {"GET", "HEAD", "PUT", "DELETE"};
  return kNames[static_cast<size_t>(method)];
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
  const http::Request asked{
      .head = head_of(request), .body = request.body, .is_head = request.method == Method::kHead};
  Result<ResponseHead> head = co_await http_.send(asked, token);
  if (!head) co_return fail(head.error());
  HttpAnswer answer{.head = std::move(*head)};
  Sink sink(request, answer);
  while (answer.body_size <= kBodyMax) {
    const Result<Bytes> data = co_await http_.receive(token);
    if (!data) co_return fail(data.error());
    if (data->empty()) break;
    sink.put(*data);
  }
  http_.release();
  if (answer.body_size <= kBodyMax) co_return answer;
  co_return fail(Errc::kCorrupt, "an HTTP body that is longer than any object");
}

}  // namespace cairn::rest
