// SPDX-License-Identifier: Apache-2.0
#include "meta/etcd/etcd_watch.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "meta/etcd/post.h"
#include "task/deadline.h"
#include "task/either.h"

namespace cairn::meta::etcd {

namespace {

// etcd cuts messages at its request size, 1.5 MiB by default.
constexpr size_t kLineMax = 16_MiB;
constexpr Duration kPause = 100_ms;
constexpr Duration kAnswerTimeout = 5_s;
// A connection that is silent for so long may be dead: another one costs little and loses nothing.
constexpr Duration kSilenceMax = 30_s;
// In a row; fewer may come of bytes that were damaged on the way.
constexpr size_t kRefusalsMax = 3;

}  // namespace

EtcdWatch::EtcdWatch(env::Env& env, Lines& lines, size_t& watchers, Range range, Revision from)
    : env_(env), lines_(lines), watchers_(watchers), range_(std::move(range)), from_(from) {}

EtcdWatch::~EtcdWatch() { CHECK(closed_, "a watch is closed before it is destroyed"); }

task::Task<void> EtcdWatch::close() {
  if (!std::exchange(closed_, true)) --watchers_;
  disconnect();
  co_return;
}

void EtcdWatch::disconnect() {
  connection_.reset();
  unread_.clear();
  partial_.reset();
}

task::Task<Result<void>> EtcdWatch::connect(task::CancelToken token) {
  Result<std::unique_ptr<env::Stream>> stream = co_await lines_.connect(server_, token);
  if (!stream) co_return fail(stream.error());
  auto connection = std::make_unique<http::Connection>(std::move(*stream));
  const std::string body =
      etcd::watch_request(range_, Revision(std::max<uint64_t>(from_.value(), 2) - 1));
  const std::array<Bytes, 1> pieces = {as_bytes(body)};
  const http::Request request = etcd::post(server_.text(), "/v3/watch", pieces);
  task::Deadline deadline(env_, env_.now() + kAnswerTimeout, token);
  const Result<http::ResponseHead> head = co_await connection->send(request, deadline.token());
  if (!head) co_return fail(head.error());
  if (head->status != 200) co_return fail(Errc::kReset, "etcd refuses a watch", head->status);
  connection_ = std::move(connection);
  co_return Result<void>{};
}

task::Task<Result<std::string>> EtcdWatch::read_line(task::CancelToken token) {
  while (true) {
    if (const size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      co_return line;
    }
    if (unread_.size() > kLineMax) co_return fail(Errc::kCorrupt, "an endless message of etcd");
    task::Deadline deadline(env_, env_.now() + kSilenceMax, token);
    const Result<Bytes> data = co_await connection_->receive(deadline.token());
    if (!data) co_return fail(data.error());
    if (data->empty()) co_return fail(Errc::kReset, "etcd ended a watch");
    unread_ += as_text(*data);
    connection_->release();
  }
}

Result<std::vector<Change>> EtcdWatch::take(etcd::WatchMessage message) {
  if (message.is_compacted) {
    return fail(Errc::kNotFound, "the history to watch from was compacted: list, then watch again");
  }
  if (message.is_cancelled) return fail(Errc::kReset, "etcd ended a watch");
  std::vector<Change> whole;
  for (Change& change : message.changes) {
    if (change.revision < from_) continue;
    if (partial_ && partial_->revision > change.revision) {
      return fail(Errc::kReset, "etcd tells changes out of order");
    }
    if (partial_ && partial_->revision == change.revision) {
      for (Event& event : change.events) partial_->events.push_back(std::move(event));
    } else {
      if (partial_) whole.push_back(std::move(*partial_));
      partial_ = std::move(change);
    }
  }
  if (partial_ && !message.is_fragment) whole.push_back(*std::exchange(partial_, std::nullopt));
  if (!whole.empty()) {
    from_ = meta::next(whole.back().revision);
  } else if (message.changes.empty() && !message.is_created && !partial_) {
    // Progress: nothing of the range happened up to here.
    from_ = std::max(from_, meta::next(message.revision));
  }
  return whole;
}

task::Task<Result<std::vector<Change>>> EtcdWatch::next_inside(task::CancelToken token) {
  size_t refusals = 0;
  while (true) {
    Error trouble(Errc::kReset, "etcd ended a watch");
    if (connection_ == nullptr) {
      const Result<void> connected = co_await connect(token);
      if (!connected) trouble = connected.error();
    }
    if (connection_ != nullptr) {
      const Result<std::string> line = co_await read_line(token);
      if (!line && token.requested()) co_return fail(token.error());
      Result<etcd::WatchMessage> message =
          line ? etcd::read_watch(*line) : Result<etcd::WatchMessage>(fail(line.error()));
      Result<std::vector<Change>> whole =
          message ? take(std::move(*message)) : fail(message.error());
      if (whole && !whole->empty()) co_return whole;
      if (whole) continue;
      trouble = whole.error();
    }
    if (token.requested()) co_return fail(token.error());
    disconnect();
    if (trouble == Errc::kNotFound) {
      ended_ = trouble;
      co_return fail(trouble);
    }
    const bool is_refused = trouble == Errc::kDenied || trouble == Errc::kUnsupported;
    refusals = is_refused ? refusals + 1 : 0;
    if (refusals == kRefusalsMax) co_return fail(trouble);
    lines_.leave(server_);
    [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env_, kPause, token);
  }
}

task::Task<Result<std::vector<Change>>> EtcdWatch::next(task::CancelToken token) {
  if (ended_) co_return fail(*ended_);
  if (lines_.is_closed()) co_return fail(Errc::kClosed, "the metadata store was closed");
  task::Either both(token, lines_.stop_token());
  Result<std::vector<Change>> changes = co_await next_inside(both.token());
  co_return changes;
}

}  // namespace cairn::meta::etcd
