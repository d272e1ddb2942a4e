// SPDX-License-Identifier: Apache-2.0
// Authentication of queues (NVMe Base 2.0, 8.13): who has to, the messages in their commands, and
// what success and failure lead to.
#include <utility>

#include "nvme/auth/auth_draw.h"
#include "nvme/controller/queue_auth.h"
#include "nvme/controller/registry_state.h"
#include "task/deadline.h"

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

Result<void> Registry::set_authentication(std::string_view nqn, AuthPolicy policy) {
  Subsystem* subsystem = state_->find(nqn);
  if (subsystem == nullptr) return fail(Errc::kNotFound, "there is no such subsystem");
  if (policy.means.hashes.empty() || policy.means.groups.empty() || policy.timeout <= 0_s) {
    return fail(Errc::kInvalid, "authentication needs a hash, a DH group and some time");
  }
  subsystem->authentication = std::make_shared<const AuthPolicy>(std::move(policy));
  return {};
}

void Registry::on_authentication(AuthenticationHook hook) {
  state_->authentication_hook = std::move(hook);
}

void Registry::on_refused_host(RefusedHostHook hook) {
  state_->refused_host_hook = std::move(hook);
}

uint64_t Registry::refused_hosts(std::string_view nqn) const {
  const Subsystem* subsystem = state_->find(nqn);
  return subsystem == nullptr ? 0 : subsystem->refused_hosts;
}

AuthTotals Registry::authentication_totals(std::string_view nqn) const {
  const Subsystem* subsystem = state_->find(nqn);
  return subsystem == nullptr ? AuthTotals{} : subsystem->authenticated;
}

// Called when a queue was connected. True: it has to authenticate before anything else.
bool Registry::State::demand_authentication(Controller& controller, uint16_t queue_id,
                                            const env::Address& peer) {
  const std::shared_ptr<const AuthPolicy>& policy = controller.subsystem().authentication;
  if (policy == nullptr || !policy->hosts.contains(controller.host_nqn())) return false;
  AuthResponder responder(policy, controller.host_nqn(), controller.subsystem().options().nqn);
  auto auth = std::make_unique<QueueAuth>(
      env, std::move(responder), peer, [this, &controller](QueueAuth& its) {
        if (!its.has_failed) note_failure(controller, its, "it took too long");
        controller.disconnect_queue(its, "authentication failed");
      });
  auth->finish_within(policy->timeout);
  controller.set_auth(queue_id, std::move(auth));
  return true;
}

void Registry::State::note_failure(Controller& controller, QueueAuth& auth, const char* why) {
  auth.has_failed = true;
  auth.is_open = false;
  auth.finish_within(kFarewell);
  limiter.failed({.peer = auth.peer, .host_nqn = controller.host_nqn()}, env.now());
  ++controller.subsystem().authenticated.failed;
  note_stranger({.nqn = controller.subsystem().options().nqn,
                 .host_nqn = controller.host_nqn(),
                 .peer = auth.peer,
                 .why = why});
}

// After each message: opens the queue on success, closes it on failure. The queue's core knows of
// it before the host does.
task::Task<void> Registry::State::settle(Controller& controller, Controller::Queue& queue) {
  QueueAuth& auth = *queue.auth;
  const AuthResponder::Step step = auth.responder.step();
  const bool failed =
      step == AuthResponder::Step::kGiveFailure1 || step == AuthResponder::Step::kFailed;
  if (auth.responder.take_success() && !auth.has_failed) {
    auth.is_open = true;
    auth.finished();
    limiter.succeeded({.peer = auth.peer, .host_nqn = controller.host_nqn()});
    ++controller.subsystem().authenticated.succeeded;
    co_await controller.open_queue(queue, true);
  } else if (failed && !auth.has_failed) {
    note_failure(controller, auth, auth.responder.why_failed());
    co_await controller.open_queue(queue, false);
  }
}

task::Task<Result<void>> Registry::State::take_turn(Controller& controller, const QueueAuth& auth,
                                                    Duration wait_max, task::CancelToken token) {
  const AuthLimiter::Who who{.peer = auth.peer, .host_nqn = controller.host_nqn()};
  const Result<Time> turn = limiter.take_turn(who, env.now(), wait_max);
  if (!turn) {
    note_stranger({.nqn = controller.subsystem().options().nqn,
                   .host_nqn = who.host_nqn,
                   .peer = auth.peer,
                   .why = turn.error().what()});
    co_return fail(turn.error());
  }
  Result<void> slept = co_await task::sleep_until(env, *turn, token);
  co_return slept;
}

task::Task<Answer> Registry::State::take_authentication(Controller& controller,
                                                        Controller::Queue& queue, Bytes message,
                                                        task::CancelToken token) {
  QueueAuth& auth = *queue.auth;
  if (!auth.has_failed && !auth.responder.is_under_way()) {
    const std::shared_ptr<const AuthPolicy>& policy = controller.subsystem().authentication;
    const Result<void> turn = co_await take_turn(controller, auth, policy->timeout / 2, token);
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
  auth.responder.take(message, AuthDraw::from(env));
  co_await settle(controller, queue);
  co_return answered();
}

task::Task<Answer> Registry::State::authenticate(Controller& controller, uint16_t queue_id,
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
    answer = co_await take_authentication(controller, *queue, message, token);
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
