// SPDX-License-Identifier: Apache-2.0
// Authentication of queues (NVMe Base 2.0, 8.13).
#include <utility>

#include "nvme/auth/auth_draw.h"
#include "nvme/controller/registry_parts.h"
#include "nvme/controller/subsystem.h"

namespace cairn::nvme {

namespace {

// A host that has failed gets the time to hear why; then its connection ends.
constexpr Duration kFarewell = 1_s;

bool is_sound(const AuthenticationCommand& command, size_t data_size) {
  return command.security_protocol == kAuthSecurityProtocol &&
         command.protocol_specific0 == kAuthProtocolSpecific &&
         command.protocol_specific1 == kAuthProtocolSpecific && command.length > 0 &&
         command.length <= kAuthMessageMax && command.length <= data_size;
}

}  // namespace

bool Authentication::demand(Controller& controller, uint16_t queue_id, const env::Address& peer) {
  const std::shared_ptr<const AuthPolicy>& policy = controller.subsystem().authentication;
  if (policy == nullptr || !policy->hosts.contains(controller.host_nqn())) return false;
  AuthResponder responder(policy, controller.host_nqn(), controller.subsystem().options().nqn);
  auto auth = std::make_unique<QueueAuth>(
      env_, std::move(responder), peer, [this, &controller](QueueAuth& its) {
        if (!its.has_failed) note_failure(controller, its, "it took too long");
        controller.disconnect_queue(its, "authentication failed");
      });
  auth->finish_within(policy->timeout);
  controller.set_auth(queue_id, std::move(auth));
  return true;
}

void Authentication::note_failure(Controller& controller, QueueAuth& auth, const char* why) {
  auth.has_failed = true;
  auth.is_open = false;
  auth.finish_within(kFarewell);
  strangers_.failed({.peer = auth.peer, .host_nqn = controller.host_nqn()});
  ++controller.subsystem().authenticated.failed;
  strangers_.note({.nqn = controller.subsystem().options().nqn,
                   .host_nqn = controller.host_nqn(),
                   .peer = auth.peer,
                   .why = why});
}

// After each message: opens the queue on success, closes it on failure. The queue's core knows of
// it before the host does.
task::Task<void> Authentication::settle(Controller& controller, Controller::Queue& queue) {
  QueueAuth& auth = *queue.auth;
  const AuthResponder::Step step = auth.responder.step();
  const bool failed =
      step == AuthResponder::Step::kGiveFailure1 || step == AuthResponder::Step::kFailed;
  if (auth.responder.take_success() && !auth.has_failed) {
    auth.is_open = true;
    auth.finished();
    strangers_.succeeded({.peer = auth.peer, .host_nqn = controller.host_nqn()});
    ++controller.subsystem().authenticated.succeeded;
    co_await controller.open_queue(queue, true);
  } else if (failed && !auth.has_failed) {
    note_failure(controller, auth, auth.responder.why_failed());
    co_await controller.open_queue(queue, false);
  }
}

task::Task<Answer> Authentication::take(Controller& controller, Controller::Queue& queue,
                                        Bytes message, task::CancelToken token) {
  QueueAuth& auth = *queue.auth;
  if (!auth.has_failed && !auth.responder.is_under_way()) {
    const std::shared_ptr<const AuthPolicy>& policy = controller.subsystem().authentication;
    const Result<void> turn =
        co_await strangers_.take_turn({.nqn = controller.subsystem().options().nqn,
                                       .host_nqn = controller.host_nqn(),
                                       .peer = auth.peer},
                                      policy->timeout / 2, token);
    if (!turn) {
      // It may come again: it has not failed, and a queue that works goes on.
      co_return Answer{.status = turn.error() == Errc::kLimit ? StatusCode::kAuthenticationRequired
                                                              : StatusCode::kAbortRequested};
    }
    if (policy->hosts.contains(controller.host_nqn())) auth.responder.set_policy(policy);
    if (!auth.has_failed) auth.finish_within(policy->timeout);
  }
  // Perhaps in the meantime.
  if (auth.has_failed) co_return refused(StatusCode::kAuthenticationRequired);
  auth.responder.take(message, AuthDraw::from(env_));
  co_await settle(controller, queue);
  co_return answered();
}

task::Task<Answer> Authentication::execute(Controller& controller, uint16_t queue_id,
                                           const Sqe& sqe, MutableBytes data,
                                           task::CancelToken token) {
  const auto command = fabrics_cast<AuthenticationCommand>(sqe);
  if (!is_sound(command, data.size())) co_return refused(StatusCode::kInvalidField);
  Controller::Queue* queue = controller.hold(queue_id);
  if (queue == nullptr) co_return Answer{.status = StatusCode::kAbortedQueueDeletion};
  Answer answer = answered();
  if (std::exchange(queue->auth->is_busy, true)) {
    answer = refused(StatusCode::kCommandSequenceError);
  } else if (command.type == FabricsType::kAuthenticationSend) {
    const Bytes message = data.first(command.length);
    answer = co_await take(controller, *queue, message, token);
    queue->auth->is_busy = false;
  } else {
    const AuthResponder& responder = queue->auth->responder;
    const bool has_message = responder.is_under_way();
    if (queue->auth->responder.give(data.first(command.length)) == 0) {
      answer = refused(has_message ? StatusCode::kInvalidField : StatusCode::kCommandSequenceError);
    }
    co_await settle(controller, *queue);
    queue->auth->is_busy = false;
  }
  Controller::release(*queue);
  co_return answer;
}

}  // namespace cairn::nvme
