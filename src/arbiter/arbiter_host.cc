// SPDX-License-Identifier: Apache-2.0
#include "arbiter/arbiter_host.h"

#include "base/check.h"
#include "task/deadline.h"
#include "task/either.h"

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;
using volume::ArbiterLink;

Result<ArbiterHost::Use> ArbiterHost::use() {
  if (current_ == nullptr) return fail(Errc::kUnreachable, "no arbiter leads in this process");
  return Use(*this, *current_);
}

Task<void> ArbiterHost::run() {
  const CancelToken token = stop_.token();
  while (!token.requested()) {
    const Result<void> led = co_await lead(token);
    if (!led) last_error_ = led.error();
    const Result<void> slept = co_await task::sleep_for(env_, options_.arbiter.retry, token);
    if (!slept) break;
  }
}

Task<Result<void>> ArbiterHost::lead(CancelToken token) {
  meta::Election election(
      env_, parts_.store,
      {.key = kLeaderKey, .value = options_.arbiter.host, .ttl = options_.election_ttl});
  Result<std::unique_ptr<meta::Leadership>> leadership = co_await election.campaign(token);
  if (!leadership) co_return fail(leadership.error());
  const Result<void> served = co_await serve(**leadership, token);
  co_await (*leadership)->resign();
  co_return served;
}

Task<Result<void>> ArbiterHost::serve(meta::Leadership& leadership, CancelToken token) {
  Result<std::unique_ptr<Arbiter>> arbiter =
      co_await Arbiter::load(env_, parts_, leadership, options_.arbiter, token);
  if (!arbiter) co_return fail(arbiter.error());
  last_error_.reset();
  current_ = arbiter->get();
  if (options_.on_change) options_.on_change(true);
  {
    task::Event never;
    task::Either ended(token, current_->broken_token());
    const Result<void> waited = co_await never.wait(ended.token());
    (void)waited;  // it ends by the token alone
  }
  current_ = nullptr;
  if (options_.on_change) options_.on_change(false);
  (*arbiter)->stop();
  while (users_ > 0) {
    unused_.reset();
    const Result<void> unused = co_await unused_.wait();
    CHECK(unused.has_value());
  }
  co_await (*arbiter)->close();
  co_return Result<void>();
}

template <class T, class... Args>
Task<Result<T>> ArbiterHost::pass(Task<Result<T>> (ArbiterLink::*call)(Args...),
                                  std::type_identity_t<Args>... args) {
  Result<Use> arbiter = use();
  if (!arbiter) co_return fail(arbiter.error());
  co_return co_await ((**arbiter).*call)(std::move(args)...);
}

Task<Result<volume::Opened>> ArbiterHost::open(volume::OpenArgs args, CancelToken token) {
  return pass(&ArbiterLink::open, std::move(args), token);
}

Task<Result<volume::Renewed>> ArbiterHost::renew(volume::Session session, CancelToken token) {
  return pass(&ArbiterLink::renew, session, token);
}

Task<Result<void>> ArbiterHost::close(volume::Session session, bool is_clean, CancelToken token) {
  return pass(&ArbiterLink::close, session, is_clean, token);
}

Task<Result<std::vector<volume::Mapping>>> ArbiterHost::table(volume::Session session,
                                                              uint32_t first, CancelToken token) {
  return pass(&ArbiterLink::table, session, first, token);
}

Task<Result<std::vector<volume::Mapping>>> ArbiterHost::allocate(volume::Session session,
                                                                 std::vector<uint32_t> extents,
                                                                 CancelToken token) {
  return pass(&ArbiterLink::allocate, session, std::move(extents), token);
}

Task<Result<void>> ArbiterHost::release(volume::Session session, std::vector<uint32_t> extents,
                                        CancelToken token) {
  return pass(&ArbiterLink::release, session, std::move(extents), token);
}

Task<Result<std::vector<volume::Mapping>>> ArbiterHost::report(volume::Session session,
                                                               std::vector<volume::LegReport> legs,
                                                               CancelToken token) {
  return pass(&ArbiterLink::report, session, std::move(legs), token);
}

Task<Result<volume::Mapping>> ArbiterHost::relocate(volume::Session session,
                                                    volume::Relocation what, CancelToken token) {
  return pass(&ArbiterLink::relocate, session, what, token);
}

Task<Result<std::vector<volume::CopyPlace>>> ArbiterHost::begin_copies(
    volume::Session session, std::vector<uint32_t> extents, CancelToken token) {
  return pass(&ArbiterLink::begin_copies, session, std::move(extents), token);
}

Task<Result<std::vector<volume::Mapping>>> ArbiterHost::end_copies(
    volume::Session session, std::vector<volume::CopyEnd> copies, CancelToken token) {
  return pass(&ArbiterLink::end_copies, session, std::move(copies), token);
}

Task<Result<volume::Asked>> ArbiterHost::asked(volume::Session session, Duration wait,
                                               CancelToken token) {
  return pass(&ArbiterLink::asked, session, wait, token);
}

Task<Result<void>> ArbiterHost::freeze(volume::Session session, std::string snapshot, bool is_ready,
                                       CancelToken token) {
  return pass(&ArbiterLink::freeze, session, std::move(snapshot), is_ready, token);
}

}  // namespace cairn::arbiter
