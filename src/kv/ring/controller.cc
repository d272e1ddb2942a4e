// SPDX-License-Identifier: Apache-2.0
#include "kv/ring/controller.h"

#include <memory>
#include <optional>
#include <utility>

#include "kv/ring/membership.h"
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
      away_since_.clear();
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

Task<Result<PlanInput>> Controller::look(CancelToken token) {
  PlanInput input;
  meta::ListOptions from{.range = meta::Range::prefix(nodes_prefix(options_.prefix))};
  for (bool more = true; more;) {
    const Result<meta::Page> page = co_await store_.list(from, token);
    if (!page) co_return fail(page.error());
    for (const meta::Entry& entry : page->entries) {
      const Result<NodeRecord> node = decode_node(as_bytes(entry.value));
      // Of what makes no sense nothing is taken: the node is as if it were away.
      if (node) input.nodes.emplace(node->member.id, *node);
    }
    more = page->more && !page->entries.empty();
    if (more) from.range = from.range.behind(page->entries.back().key);
    from.at = page->revision;
  }
  co_return input;
}

// True: the view was changed.
Task<Result<bool>> Controller::step(meta::Leadership& leads, CancelToken token) {
  const std::string key = view_key(options_.prefix);
  const Result<std::optional<meta::Entry>> entry = co_await store_.get(key, token);
  if (!entry) co_return fail(entry.error());
  std::optional<View> now;
  if (*entry) {
    Result<View> view = decode_view(as_bytes((*entry)->value));
    if (!view) co_return fail(view.error());
    now = std::move(*view);
  }
  Result<PlanInput> input = co_await look(token);
  if (!input) co_return fail(input.error());
  for (const Member& member : now ? now->members : std::vector<Member>()) {
    if (input->nodes.contains(member.id)) {
      away_since_.erase(member.id);
      continue;
    }
    const Time since = away_since_.try_emplace(member.id, env_.now()).first->second;
    if (env_.now() - since >= options_.give_up_after) input->given_up.insert(member.id);
  }
  const std::optional<View> next = next_view(now, *input, options_.plan);
  if (!next) co_return false;
  std::string bytes = encode(*next);
  if (bytes.size() > meta::kValueMax) co_return fail(Errc::kLimit, "the ring has too many ranges");
  meta::Batch batch;
  leads.fence(batch);
  if (*entry) {
    batch.if_modified(key, (*entry)->modified);
  } else {
    batch.if_absent(key);
  }
  batch.put(key, std::move(bytes));
  const Result<meta::Committed> done = co_await store_.commit(std::move(batch), token);
  if (!done) co_return fail(done.error());
  co_return done->done();
}

}  // namespace cairn::kv::ring
