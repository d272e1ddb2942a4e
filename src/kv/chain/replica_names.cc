// SPDX-License-Identifier: Apache-2.0
// Damage of which a store cannot say whose it is: the other replicas know which keys there are, so
// whoever asks for each of them by its name finds the damaged ones.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kv/chain/replica.h"

namespace cairn::kv::chain {

using task::Task;

namespace {

constexpr size_t kPageKeys = 32;

}  // namespace

Task<NamesReply> Replica::names(NamesRequest request) {
  if (!may_act()) co_return NamesReply{.status = Status::kOtherView};
  const Result<ScanPage> page = co_await for_upkeep_.scan(request.cursor, kPageKeys);
  if (!page) co_return NamesReply{.status = Status::kFailed};
  NamesReply reply{.next = page->next, .is_all = page->unreadable == 0};
  for (const std::string& stored : page->keys) {
    std::optional<std::string> key = user_key(stored);
    if (!key || key->empty() || key->size() > kChainKeyMax) continue;
    if (reply.keys.size() == kNamesMax) {
      reply.is_all = false;
      break;
    }
    reply.keys.push_back(std::move(*key));
  }
  co_return reply;
}

Task<Replica::Names> Replica::names_at(std::string address) {
  Names names{.keys = {}, .is_all = true};
  NamesRequest request;
  do {
    const Result<std::string> body = co_await peers_.call(address, Call::kNames, 0, encode(request),
                                                          options_.serve_timeout, stop_.token());
    Result<NamesReply> reply =
        body ? decode_names_reply(as_bytes(*body)) : Result<NamesReply>(fail(body.error()));
    if (!reply || reply->status != Status::kDone) {
      names.is_all = false;
      break;
    }
    names.is_all = names.is_all && reply->is_all;
    for (std::string& key : reply->keys) names.keys.push_back(std::move(key));
    request.cursor = reply->next;
  } while (request.cursor != 0);
  co_return names;
}

Replica::Holders Replica::other_holders() const {
  Holders holders;
  for (const ring::RingRange& range : view_->ranges) {
    const std::optional<Spot> here = spot(range.end);
    if (!here || here->state == ring::Replica::State::kJoining) continue;
    for (const ring::Replica& each : range.chain) {
      if (each.member == self_ || each.state == ring::Replica::State::kJoining) continue;
      holders[view_->member(each.member)->address].insert({range.end, range.epoch});
    }
  }
  return holders;
}

Task<bool> Replica::repair_unnamed() {
  ++stats_.unnamed;
  const Result<void> turn = co_await naming_.acquire(1, stop_.token());
  if (!turn) co_return false;
  const task::Units mine(naming_, 1);
  // Asked in this view already, and what is left is left.
  if (!view_ || named_in_ == view_->epoch) co_return false;
  const ring::Epoch epoch = view_->epoch;
  const uint64_t before = stats_.repaired;
  for (const auto& [address, ranges] : other_holders()) {
    const Names names = co_await names_at(address);
    for (const std::string& key : names.keys) {
      const ring::RingRange& range = view_->range_of(ring::hash_of(key));
      if (!ranges.contains({range.end, range.epoch})) continue;
      [[maybe_unused]] const Result<std::optional<Record>> read =
          co_await read_record(for_upkeep_, key);
    }
  }
  const bool is_repaired = stats_.repaired > before;
  if (!is_repaired) named_in_ = epoch;
  if (!is_repaired && on_damaged_) on_damaged_({}, std::nullopt);
  co_return is_repaired;
}

}  // namespace cairn::kv::chain
