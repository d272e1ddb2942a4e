// SPDX-License-Identifier: Apache-2.0
#include "rack/space_command.h"

#include <span>
#include <utility>

#include "fabric/host/controller.h"
#include "fabric/host/session.h"
#include "fabric/host/status_error.h"
#include "rack/record_format.h"

namespace cairn::rack {

namespace {

using nvme::StatusCode;

// Nobody needs to hear of a session that is used for one question.
class Silent final : public fabric::HostSession::User {
 public:
  void session_lost(const Error&) override {}
  void session_event(const nvme::AsynchronousEvent&) override {}
};

task::Task<Result<uint32_t>> ask_session(fabric::HostSession& session, SpaceRequest request,
                                         task::CancelToken token) {
  std::string bytes = encode(request);
  const nvme::Sqe sqe = nvme::Sqe::make(kSpaceOpcode);
  fabric::CommandOp op =
      session.admin(sqe, std::as_writable_bytes(std::span(bytes.data(), bytes.size())), token);
  const Result<nvme::Cqe> answer = co_await op;
  if (!answer) co_return fail(answer.error());
  co_return outcome_of(answer->get_status(), answer->dw0.value());
}

}  // namespace

nvme::Answer answer_of(const Result<uint32_t>& outcome) {
  if (outcome) return nvme::answered(*outcome);
  switch (outcome.error().code()) {
    case Errc::kNoSpace:
      return nvme::refused(StatusCode::kNamespaceInsufficientCapacity);
    case Errc::kLimit:
      return nvme::refused(StatusCode::kNamespaceIdUnavailable);
    case Errc::kDenied:
      return nvme::refused(StatusCode::kOperationDenied);
    case Errc::kExists:
      return nvme::refused(StatusCode::kIdentifierUnavailable);
    case Errc::kNotFound:
      return nvme::refused(StatusCode::kInvalidResourceId);
    case Errc::kMismatch:
      return nvme::refused(StatusCode::kNamespaceAlreadyAttached);
    case Errc::kCorrupt:
    case Errc::kUnsupported:
    case Errc::kInvalid:
      return nvme::refused(StatusCode::kInvalidField);
    case Errc::kClosed:
      return {.status = StatusCode::kAbortRequested};
    default:
      return {.status = StatusCode::kInternalError};
  }
}

Result<uint32_t> outcome_of(nvme::Status status, uint32_t dword0) {
  if (status.ok()) return dword0;
  switch (status.code()) {
    case StatusCode::kNamespaceInsufficientCapacity:
      return fail(Errc::kNoSpace, "the shelf has not so much to spare any more");
    case StatusCode::kNamespaceIdUnavailable:
      return fail(Errc::kLimit, "the box can serve no more namespaces");
    case StatusCode::kOperationDenied:
      return fail(Errc::kDenied, "the box does not do this for this host");
    case StatusCode::kIdentifierUnavailable:
      return fail(Errc::kExists, "another contract has this id");
    case StatusCode::kInvalidResourceId:
      return fail(Errc::kNotFound, "the box has no such shelf any more");
    case StatusCode::kNamespaceAlreadyAttached:
      return fail(Errc::kMismatch, "its owner is connected, and may be using it");
    case StatusCode::kInvalidField:
      return fail(Errc::kInvalid, "the box does not understand the request");
    case StatusCode::kInvalidOpcode:
      return fail(Errc::kUnsupported, "the box gives no space away");
    case StatusCode::kAbortRequested:
      return fail(Errc::kClosed, "the box is about to end");
    case StatusCode::kInternalError:
      return fail(Errc::kIo, "the box could not do it: its log says why");
    default:
      return fail(fabric::error_of(status));
  }
}

task::Task<Result<uint32_t>> NvmePeers::ask(Endpoint place, SpaceRequest request,
                                            task::CancelToken token) {
  const Result<env::Address> address = env::Address::parse(place.address);
  if (!address) co_return fail(address.error());
  fabric::HostSession::Options options{.address = *address, .nqn = place.nqn, .host = host_};
  options.host.tls = place.tls;
  options.host.queues = 0;
  options.host.lanes.clear();
  fabric::name_host(env_, options.host);
  Silent silent;
  fabric::HostSession session(env_, options, silent);
  const Result<void> opened = co_await session.open(token);
  Result<uint32_t> answer = 0u;
  if (opened) {
    answer = co_await ask_session(session, std::move(request), token);
  } else {
    answer = fail(opened.error());
  }
  co_await session.close();
  co_return answer;
}

}  // namespace cairn::rack
