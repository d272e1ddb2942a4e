// SPDX-License-Identifier: Apache-2.0
#include "kv/ring/roster.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <utility>
#include <vector>

#include "kv/ring/membership.h"
#include "kv/ring/placement.h"

namespace cairn::kv::ring {

using task::CancelToken;
using task::Task;

namespace {

std::string away_prefix(const std::string& prefix) { return prefix + "away/"; }
std::string away_key(const std::string& prefix, MemberId member) {
  return fmt::format("{}{:016x}", away_prefix(prefix), member.value());
}

std::optional<MemberId> member_in(const std::string& key, size_t prefix) {
  uint64_t id = 0;
  const char* const end = key.data() + key.size();
  const auto [at, error] = std::from_chars(key.data() + prefix, end, id, 16);
  if (error != std::errc() || at != end) return std::nullopt;
  return MemberId(id);
}

// All entries below a prefix, as they are at one moment.
Task<Result<std::vector<meta::Entry>>> list_all(meta::Store& store, std::string prefix,
                                                CancelToken token) {
  std::vector<meta::Entry> all;
  meta::ListOptions from{.range = meta::Range::prefix(prefix)};
  for (bool more = true; more;) {
    Result<meta::Page> page = co_await store.list(from, token);
    if (!page) co_return fail(page.error());
    more = page->more && !page->entries.empty();
    if (more) from.range = from.range.behind(page->entries.back().key);
    from.at = page->revision;
    for (meta::Entry& entry : page->entries) all.push_back(std::move(entry));
  }
  co_return all;
}

}  // namespace

Task<Result<Roster>> read_roster(meta::Store& store, std::string prefix, CancelToken token) {
  Roster roster;
  const Result<std::optional<meta::Entry>> entry = co_await store.get(view_key(prefix), token);
  if (!entry) co_return fail(entry.error());
  if (*entry) {
    Result<View> view = decode_view(as_bytes((*entry)->value));
    if (!view) co_return fail(view.error());
    roster.view = std::move(*view);
    roster.modified = (*entry)->modified;
  }
  const Result<std::vector<meta::Entry>> nodes =
      co_await list_all(store, nodes_prefix(prefix), token);
  if (!nodes) co_return fail(nodes.error());
  for (const meta::Entry& each : *nodes) {
    const Result<NodeRecord> node = decode_node(as_bytes(each.value));
    if (node) roster.nodes.emplace(node->member.id, *node);
  }
  const std::string away = away_prefix(prefix);
  const Result<std::vector<meta::Entry>> gone = co_await list_all(store, away, token);
  if (!gone) co_return fail(gone.error());
  for (const meta::Entry& each : *gone) {
    const std::optional<MemberId> member = member_in(each.key, away.size());
    if (member) roster.sent_away.insert(*member);
  }
  co_return roster;
}

Task<Result<void>> send_away(meta::Store& store, std::string prefix, MemberId member,
                             CancelToken token) {
  meta::Batch batch;
  batch.put(away_key(prefix, member), "away");
  const Result<meta::Committed> done = co_await store.commit(std::move(batch), token);
  if (!done) co_return fail(done.error());
  co_return Result<void>{};
}

Task<Result<void>> call_back(meta::Store& store, std::string prefix, MemberId member,
                             CancelToken token) {
  meta::Batch batch;
  batch.remove(away_key(prefix, member));
  const Result<meta::Committed> done = co_await store.commit(std::move(batch), token);
  if (!done) co_return fail(done.error());
  co_return Result<void>{};
}

std::map<MemberId, Share> shares(const View& view) {
  std::map<MemberId, Share> all;
  std::vector<Member> staying;
  for (const Member& member : view.members) {
    all[member.id] = {};
    if (member.state == Member::State::kHere) staying.push_back(member);
  }
  const Placement placement(staying);
  for (const RingRange& range : view.ranges) {
    for (const Replica& each : range.chain) {
      Share& share = all[each.member];
      share.running += each.state == Replica::State::kRunning ? 1 : 0;
      share.joining += each.state == Replica::State::kJoining ? 1 : 0;
      share.leaving += each.state == Replica::State::kLeaving ? 1 : 0;
    }
    for (const MemberId owner : placement.owners(range.end, view.replicas)) ++all[owner].wanted;
    if (const std::optional<MemberId> named = range.named()) ++all[*named].named;
  }
  return all;
}

}  // namespace cairn::kv::ring
