// SPDX-License-Identifier: Apache-2.0
#include "view/remote_view.h"

#include <utility>

#include "task/deadline.h"
#include "view/view_wire_format.h"

namespace cairn::view {

using task::CancelToken;
using task::Task;

namespace {

rpc::ClientOptions of_view(rpc::ClientOptions options) {
  options.session.service = kServiceName;
  options.session.service_version = {.major = kServiceMajor};
  return options;
}

}  // namespace

RemoteView::RemoteView(env::Env& env, RemoteViewOptions options)
    : env_(env),
      name_(std::move(options.name)),
      pulls_(options.pulls),
      elsewhere_(options.elsewhere),
      agent_(env.rng().next()),
      client_(env, of_view(std::move(options.client))) {
  gate_.spawn(run());
}

Task<void> RemoteView::close() {
  stop_.request(Errc::kClosed);
  co_await gate_.close();
  co_await client_.close();
}

Result<SessionId> RemoteView::open_session(SessionInfo info) {
  wake_.set();
  return agent_.open_session(std::move(info));
}

void RemoteView::close_session(SessionId id) {
  agent_.close_session(id);
  wake_.set();
}

Task<Result<std::string>> RemoteView::ask(uint16_t method, std::string body, Duration limit,
                                          CancelToken token) {
  // A batch that is heard twice is counted once, so all calls may be repeated.
  const rpc::CallOptions options{.repeatable = true, .timeout = limit, .elsewhere = elsewhere_};
  Result<rpc::Reply> reply =
      co_await client_.call({.method = method, .body = std::move(body)}, options, token);
  if (!reply) co_return fail(reply.error());
  if (reply->refusal) co_return fail(*reply->refusal, "the view's controller refuses");
  co_return std::move(reply->body);
}

Task<Result<void>> RemoteView::attach() {
  AttachRequest request = agent_.attach_request();
  request.client = name_;
  const Result<std::string> body = co_await ask(static_cast<uint16_t>(ViewCall::kAttach),
                                                encode(request), kCallLimit, stop_.token());
  if (!body) co_return fail(body.error());
  const Result<AttachReply> reply = decode<AttachReply>(as_bytes(*body));
  if (!reply) co_return fail(reply.error());
  agent_.attached(*reply);
  co_return Result<void>();
}

Task<Result<void>> RemoteView::report(ReportRequest request) {
  request.client = name_;
  const Result<std::string> body = co_await ask(static_cast<uint16_t>(ViewCall::kReport),
                                                encode(request), kCallLimit, stop_.token());
  if (!body) {
    const Errc code = body.error().code();
    // A controller that is another one, or does not understand it; all else is the way there.
    if (code == Errc::kNotFound || code == Errc::kInvalid) agent_.refused(code);
    co_return fail(body.error());
  }
  const Result<ReportReply> reply = decode<ReportReply>(as_bytes(*body));
  if (!reply) co_return fail(reply.error());
  agent_.reported(*reply);
  co_return Result<void>();
}

Task<Result<void>> RemoteView::pull() {
  const SyncRequest request = agent_.stale();
  if (request.components.empty()) co_return Result<void>();
  const Result<std::string> body = co_await ask(static_cast<uint16_t>(ViewCall::kSync),
                                                encode(request), kCallLimit, stop_.token());
  if (!body) co_return fail(body.error());
  const Result<SyncReply> reply = decode<SyncReply>(as_bytes(*body));
  if (!reply) co_return fail(reply.error());
  agent_.synced(*reply);
  co_return Result<void>();
}

Task<void> RemoteView::run() {
  Time pulled{};
  while (!stop_.requested()) {
    wake_.reset();
    if (env_.now() < agent_.due_at()) {
      task::Deadline due(env_, agent_.due_at(), stop_.token());
      [[maybe_unused]] const Result<void> woken = co_await wake_.wait(due.token());
      continue;
    }
    Result<void> done;
    if (agent_.must_attach()) {
      done = co_await attach();
    } else if (std::optional<ReportRequest> batch = agent_.report_request(env_.now())) {
      done = co_await report(*std::move(batch));
    }
    // At most ten times a second, however many others there are.
    if (done && pulls_ && env_.now() - pulled >= kBatchAge) {
      pulled = env_.now();
      done = co_await pull();
    }
    if (!done && !stop_.requested()) {
      [[maybe_unused]] const Result<void> slept =
          co_await task::sleep_for(env_, kRetry, stop_.token());
    }
  }
}

Task<Result<View>> RemoteView::query(std::string volume, CancelToken token) {
  const Result<std::string> body = co_await ask(
      static_cast<uint16_t>(ViewCall::kQuery), encode(QueryRequest{std::move(volume)}), 5_s, token);
  if (!body) co_return fail(body.error());
  Result<View> view = decode<View>(as_bytes(*body));
  co_return view;
}

Task<Result<std::unique_ptr<rpc::Subscription>>> RemoteView::watch(WatchRequest request,
                                                                   CancelToken token) {
  auto subscription = co_await client_.subscribe(
      {.method = static_cast<uint16_t>(ViewCall::kWatch), .body = encode(request)}, token);
  co_return subscription;
}

}  // namespace cairn::view
