// SPDX-License-Identifier: Apache-2.0
#include "arbiter/arbiter_host.h"

#include "base/check.h"
#include "task/deadline.h"
#include "task/either.h"

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;

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

Task<Result<volume::Opened>> ArbiterHost::open(volume::OpenArgs args, CancelToken token) {
  Result<Use> arbiter = use();
  if (!arbiter) co_return fail(arbiter.error());
  co_return co_await (*arbiter)->open(std::move(args), token);
}

Task<Result<volume::Renewed>> ArbiterHost::renew(volume::Session session, CancelToken token) {
  Result<Use> arbiter = use();
  if (!arbiter) co_return fail(arbiter.error());
  co_return co_await (*arbiter)->renew(session, token);
}

Task<Result<void>> ArbiterHost::close(volume::Session session, bool is_clean, CancelToken token) {
  Result<Use> arbiter = use();
  if (!arbiter) co_return fail(arbiter.error());
  co_return co_await (*arbiter)->close(session, is_clean, token);
}

Task<Result<std::vector<volume::Mapping>>> ArbiterHost::table(volume::Session session,
                                                              uint32_t first, CancelToken token) {
  Result<Use> arbiter = use();
  if (!arbiter) co_return fail(arbiter.error());
  co_return co_await (*arbiter)->table(session, first, token);
}

Task<Result<std::vector<volume::Mapping>>> ArbiterHost::allocate(volume::Session session,
                                                                 std::vector<uint32_t> extents,
                                                                 CancelToken token) {
  Result<Use> arbiter = use();
  if (!arbiter) co_return fail(arbiter.error());
  co_return co_await (*arbiter)->allocate(session, std::move(extents), token);
}

Task<Result<void>> ArbiterHost::release(volume::Session session, std::vector<uint32_t> extents,
                                        CancelToken token) {
  Result<Use> arbiter = use();
  if (!arbiter) co_return fail(arbiter.error());
  co_return co_await (*arbiter)->release(session, std::move(extents), token);
}

Task<Result<std::vector<volume::Mapping>>> ArbiterHost::report(volume::Session session,
                                                               std::vector<volume::LegReport> legs,
                                                               CancelToken token) {
  Result<Use> arbiter = use();
  if (!arbiter) co_return fail(arbiter.error());
  co_return co_await (*arbiter)->report(session, std::move(legs), token);
}

Task<Result<volume::Mapping>> ArbiterHost::relocate(volume::Session session,
                                                    volume::Relocation what, CancelToken token) {
  Result<Use> arbiter = use();
  if (!arbiter) co_return fail(arbiter.error());
  co_return co_await (*arbiter)->relocate(session, what, token);
}

Task<Result<std::vector<volume::CopyPlace>>> ArbiterHost::begin_copies(
    volume::Session session, std::vector<uint32_t> extents, CancelToken token) {
  Result<Use> arbiter = use();
  if (!arbiter) co_return fail(arbiter.error());
  co_return co_await (*arbiter)->begin_copies(session, std::move(extents), token);
}

Task<Result<std::vector<volume::Mapping>>> ArbiterHost::end_copies(
    volume::Session session, std::vector<volume::CopyEnd> copies, CancelToken token) {
  Result<Use> arbiter = use();
  if (!arbiter) co_return fail(arbiter.error());
  co_return co_await (*arbiter)->end_copies(session, std::move(copies), token);
}

Task<Result<volume::Asked>> ArbiterHost::asked(volume::Session session, Duration wait,
                                               CancelToken token) {
  Result<Use> arbiter = use();
  if (!arbiter) co_return fail(arbiter.error());
  co_return co_await (*arbiter)->asked(session, wait, token);
}

Task<Result<void>> ArbiterHost::freeze(volume::Session session, std::string snapshot, bool is_ready,
                                       CancelToken token) {
  Result<Use> arbiter = use();
  if (!arbiter) co_return fail(arbiter.error());
  co_return co_await (*arbiter)->freeze(session, std::move(snapshot), is_ready, token);
}

}  // namespace cairn::arbiter
