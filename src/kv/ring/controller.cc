// SPDX-License-Identifier: Apache-2.0
#include "kv/ring/controller.h"

#include <memory>
#include <optional>
#include <utility>

#include "kv/ring/membership.h"
#include "kv/ring/roster.h"
#include "kv/ring/view_format.h"
#include "task/deadline.h"
#include "task/either.h"

namespace cairn::kv::ring {

using task::CancelToken;
using task::Task;

Task<void> Controller::run(CancelToken token) {
  meta::Election election(env_, store_,
                          {.key = options_.prefix + "controller",
                           .value = options_.name,
                           .ttl = options_.election_ttl});
  while (!token.requested()) {
    Result<std::unique_ptr<meta::Leadership>> leads = co_await election.campaign(token);
    if (leads) {
      absences_.forget();
      co_await lead(**leads, token);
      co_await (*leads)->resign();
    }
    if (token.requested()) break;
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, options_.interval, token);
  }
}

Task<void> Controller::lead(meta::Leadership& leads, CancelToken token) {
  task::Either both(token, leads.lost_token());
  while (leads.is_leader() && !both.token().requested()) {
    const Result<bool> changed = co_await step(leads, both.token());
    if (changed && *changed) continue;
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, options_.interval, both.token());
  }
}

// What the plan stands on. Whoever was sent away wants to go, or is given up at once.
PlanInput Controller::judge(Roster& roster) {
  PlanInput input{.nodes = std::move(roster.nodes)};
  for (const MemberId away : roster.sent_away) {
    const auto found = input.nodes.find(away);
    if (found == input.nodes.end()) {
      input.given_up.insert(away);
    } else {
      found->second.member.state = Member::State::kLeaving;
    }
  }
  return input;
}

// True: the view was changed.
Task<Result<bool>> Controller::step(meta::Leadership& leads, CancelToken token) {
  const std::string key = view_key(options_.prefix);
  Result<Roster> roster = co_await read_roster(store_, options_.prefix, token);
  if (!roster) co_return fail(roster.error());
  PlanInput input = judge(*roster);
  if (roster->view) absences_.look(*roster->view, env_.now(), input);
  const std::optional<View> next = next_view(roster->view, input, options_.plan);
  if (!next) co_return false;
  std::string bytes = encode(*next);
  if (bytes.size() > meta::kValueMax) co_return fail(Errc::kLimit, "the ring has too many ranges");
  meta::Batch batch;
  leads.fence(batch);
  if (roster->view) {
    batch.if_modified(key, roster->modified);
  } else {
    batch.if_absent(key);
  }
  batch.put(key, std::move(bytes));
  const Result<meta::Committed> done = co_await store_.commit(std::move(batch), token);
  if (!done) co_return fail(done.error());
  co_return done->done();
}

}  // namespace cairn::kv::ring
