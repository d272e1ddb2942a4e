// SPDX-License-Identifier: Apache-2.0
#include "view/view_service.h"

#include <utility>
#include <vector>

#include "task/deadline.h"

namespace cairn::view {

using task::CancelToken;
using task::Task;

namespace {

std::string full_name(const std::string& client, const rpc::Caller& caller) {
  return caller.client == nullptr ? client : caller.client->name + "/" + client;
}

}  // namespace

std::optional<rpc::Method> ViewService::find(uint16_t method) const {
  switch (static_cast<ViewCall>(method)) {
    case ViewCall::kAttach:
      return rpc::Method{.verb = "attach", .needs = rpc::Role::kWriter};
    case ViewCall::kReport:
      return rpc::Method{.verb = "report", .needs = rpc::Role::kWriter};
    case ViewCall::kSync:
      return rpc::Method{.verb = "sync", .needs = rpc::Role::kReader};
    case ViewCall::kQuery:
      return rpc::Method{.verb = "query", .needs = rpc::Role::kReader};
    case ViewCall::kWatch:
      return rpc::Method{.verb = "watch", .needs = rpc::Role::kReader, .pushes = true};
  }
  return std::nullopt;
}

Result<std::string> ViewService::attach(Controller& to, Bytes body, const rpc::Caller& caller) {
  const Result<AttachRequest> request = decode<AttachRequest>(body);
  if (!request) return fail(request.error());
  const Result<AttachReply> reply =
      to.attach(full_name(request->client, caller), *request, env_.now());
  if (!reply) return fail(reply.error());
  return encode(*reply);
}

Result<std::string> ViewService::report(Controller& to, Bytes body, const rpc::Caller& caller) {
  const Result<ReportRequest> request = decode<ReportRequest>(body);
  if (!request) return fail(request.error());
  const Result<ReportReply> reply =
      to.report(full_name(request->client, caller), *request, env_.now());
  if (!reply) return fail(reply.error());
  return encode(*reply);
}

Result<std::string> ViewService::sync(Controller& of, Bytes body) {
  const Result<SyncRequest> request = decode<SyncRequest>(body);
  if (!request) return fail(request.error());
  if (request->components.size() > kSyncMax) {
    return fail(Errc::kInvalid, "1024 components are asked for at most");
  }
  return encode(of.sync(*request, env_.now()));
}

Result<std::string> ViewService::query(Controller& of, Bytes body) {
  const Result<QueryRequest> request = decode<QueryRequest>(body);
  if (!request) return fail(request.error());
  return encode(of.view(env_.now(), request->volume));
}

Task<Result<std::string>> ViewService::call(uint16_t method, std::string body, rpc::Caller caller,
                                            CancelToken /*token*/) {
  const Bytes bytes = as_bytes(body);
  Controller* controller = find_();
  if (controller == nullptr) co_return fail(kElsewhere, "another process has the view");
  switch (static_cast<ViewCall>(method)) {
    case ViewCall::kAttach:
      co_return attach(*controller, bytes, caller);
    case ViewCall::kReport:
      co_return report(*controller, bytes, caller);
    case ViewCall::kSync:
      co_return sync(*controller, bytes);
    case ViewCall::kQuery:
      co_return query(*controller, bytes);
    case ViewCall::kWatch:
      break;
  }
  co_return fail(Errc::kUnsupported, "no such call");
}

Task<Result<void>> ViewService::subscribe(uint16_t /*method*/, std::string body,
                                          rpc::Caller /*caller*/, rpc::Pushes& pushes,
                                          CancelToken token) {
  const Result<WatchRequest> request = decode<WatchRequest>(as_bytes(body));
  if (!request) co_return fail(request.error());
  Controller* controller = find_();
  if (controller == nullptr) co_return fail(kElsewhere, "another process has the view");
  const uint64_t incarnation = controller->incarnation();
  const Result<Controller::WatcherId> watcher = controller->watch(*request);
  if (!watcher) co_return fail(watcher.error());
  Result<void> result;
  while (result) {
    controller->advance(env_.now());
    const std::vector<Event> events = controller->take_events(*watcher, env_.now());
    for (size_t i = 0; i < events.size() && result; ++i) {
      result = co_await pushes.push(encode(events[i]), token);
    }
    if (result) result = co_await task::sleep_for(env_, kEpoch, token);
    controller = find_();
    if (controller == nullptr || controller->incarnation() != incarnation) {
      co_return fail(Errc::kReset, "the view began anew");
    }
  }
  controller->unwatch(*watcher);
  co_return result;
}

}  // namespace cairn::view
