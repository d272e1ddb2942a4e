// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/authenticate.h"

#include <array>
#include <memory>

#include "base/check.h"
#include "fabric/host/status_error.h"
#include "nvme/auth/auth_initiator.h"
#include "nvme/format/fabrics_format.h"

namespace cairn::fabric {

namespace {

struct Rooms {
  std::array<std::byte, nvme::kAuthMessageMax> out{};
  std::array<std::byte, nvme::kAuthMessageMax> in{};
};

Error refusal(nvme::Status status) {
  const Error error = error_of(status, nvme::StatusContext::kFabrics);
  if (status == nvme::StatusCode::kInvalidOpcode || status == nvme::StatusCode::kInvalidField) {
    return {Errc::kUnsupported, "the target does not authenticate this host", error.detail()};
  }
  return {error.code(), "an authentication command was refused", error.detail()};
}

// One way of one message: to the target, or from it.
task::Task<Result<void>> carry(HostSession& session, HostQueue& queue, nvme::FabricsType type,
                               MutableBytes message, task::CancelToken token) {
  nvme::AuthenticationCommand command;
  command.type = type;
  command.length = static_cast<uint32_t>(message.size());
  CommandOp carried(session, &queue, nvme::to_sqe(command), message, token);
  const Result<nvme::Cqe> answer = co_await carried;
  if (!answer) co_return fail(answer.error());
  if (!answer->get_status().ok()) co_return fail(refusal(answer->get_status()));
  co_return Result<void>{};
}

task::Task<Result<void>> send(HostSession& session, HostQueue& queue, MutableBytes message,
                              task::CancelToken token) {
  return carry(session, queue, nvme::FabricsType::kAuthenticationSend, message, token);
}
task::Task<Result<void>> receive(HostSession& session, HostQueue& queue, MutableBytes room,
                                 task::CancelToken token) {
  return carry(session, queue, nvme::FabricsType::kAuthenticationReceive, room, token);
}

// A target that has seen the host's proof may hang up before its verdict is read: Linux does so at
// times. The code stays, because a target that crashed looks the same and is worth another attempt.
Error after_proof(const Error& error) {
  if (error != Errc::kClosed && error != Errc::kReset) return error;
  return {error.code(), "it hung up on this host's proof: is its key the right one?",
          error.detail()};
}

}  // namespace

task::Task<Result<void>> authenticate(HostSession& session, HostQueue& queue,
                                      task::CancelToken token) {
  const std::shared_ptr<const HostCredentials> credentials = session.options().credentials;
  CHECK(credentials != nullptr, "nobody authenticates without a key");
  const nvme::AuthDraw draw = nvme::AuthDraw::from(session.env());
  nvme::AuthInitiator initiator(
      {.keys = credentials->keys,
       .means = credentials->means,
       .names = {.host = session.options().host_nqn, .subsystem = session.nqn()},
       .draw = draw});
  const auto rooms = std::make_unique<Rooms>();
  const MutableBytes out = rooms->out;

  Result<void> done = co_await send(session, queue, out.first(initiator.negotiate(out)), token);
  if (done) done = co_await receive(session, queue, rooms->in, token);
  if (!done) co_return done;
  Result<size_t> next = initiator.reply(rooms->in, out);
  if (next) {
    done = co_await send(session, queue, out.first(*next), token);
    rooms->in.fill(std::byte{0});
    if (done) done = co_await receive(session, queue, rooms->in, token);
    if (!done) co_return fail(after_proof(done.error()));
    next = initiator.finish(rooms->in, out);
  }
  if (!next) {
    // The target is told why; whether it hears does not matter any more.
    if (const auto size = initiator.failure(out)) {
      done = co_await send(session, queue, out.first(*size), token);
    }
    co_return fail(next.error());
  }
  if (*next > 0) done = co_await send(session, queue, out.first(*next), token);
  co_return done;
}

}  // namespace cairn::fabric
