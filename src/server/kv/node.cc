// SPDX-License-Identifier: Apache-2.0
#include "server/kv/node.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/error_text.h"
#include "base/words.h"
#include "rack/client_keys.h"
#include "server/common/advice.h"
#include "server/common/holder_retry.h"
#include "server/open/store.h"
#include "task/deadline.h"

namespace cairn::server {

using kv::ring::MemberId;

namespace {

constexpr size_t kKeyToldMax = 64;  // of a key, in logs
constexpr Duration kLook = 500_ms;  // between looks at what becomes of this node

Problem no_member(const Error& error) {
  if (error == Errc::kExists) {
    return Problem{
        "the store holds keys that are not a cluster's, and which would not be found in one: name "
        "a blank drive, or serve these without --join"};
  }
  return Problem{
      fmt::format("the store cannot say which member of a cluster it is: {}", error_text(error))};
}

}  // namespace

KvNode::KvNode(env::Env& env, std::unique_ptr<meta::Store> meta, kv::Keyspace& store, MemberId self,
               const KvNodeOptions& options, Log log)
    : env_(env),
      log_(std::move(log)),
      strangers_(env, log_),
      meta_(std::move(meta)),
      self_(self),
      node_(env, store, *meta_, self, node_options(options)),
      client_(env, {.seeds = {},
                    .security = options.security,
                    .tenant = options.name.substr(0, kv::chain::kTenantMax),
                    .local = &node_.replica()}),
      keys_(env, client_, node_.replica()) {
  node_.replica().set_on_damaged(
      [this](std::string_view key, std::optional<MemberId> from) { tell_damage(key, from); });
}

void KvNode::tell_damage(std::string_view key, std::optional<MemberId> from) const {
  if (key.empty()) {
    log_(config::LogLevel::kError,
         "the store has damaged records whose keys no other node can tell: lists of keys lack "
         "them; check this node's drive ('cairn kv check')");
    return;
  }
  const std::string what = in_quotes(escaped(key.substr(0, kKeyToldMax)));
  const std::shared_ptr<const kv::ring::View> now = view();
  const kv::ring::Member* const source = from && now ? now->member(*from) : nullptr;
  if (source != nullptr) {
    log_(config::LogLevel::kWarn,
         fmt::format("the record of key {} was damaged here, and is written anew from {}; if there "
                     "are more, the drive fails",
                     what, source->name));
  } else {
    log_(config::LogLevel::kError,
         fmt::format("the record of key {} is damaged here, and could not be written anew: drain "
                     "this node ('cairn kv ring drain'), and check its drive ('cairn kv check')",
                     what));
  }
}

std::vector<std::pair<std::string, uint64_t>> KvNode::counters() const {
  const kv::chain::ReplicaStats& stats = node_.replica().stats();
  return {{"gets", stats.gets},
          {"gets_shipped", stats.shipped},
          {"writes", stats.writes},
          {"records_copied", stats.copied},
          {"records_wiped", stats.wiped},
          {"records_repaired", stats.repaired},
          {"repairs_failed", stats.unrepaired},
          {"scans_damaged", stats.unnamed}};
}

kv::chain::NodeOptions KvNode::node_options(const KvNodeOptions& options) {
  kv::chain::NodeOptions node{
      .address = options.listen, .name = options.name, .resp = options.resp};
  node.location = options.location;
  node.membership.prefix = kKvPrefix;
  node.membership.lease = options.lease;
  node.controller.prefix = kKvPrefix;
  node.controller.name = options.name;
  node.controller.election_ttl = options.lease;
  node.controller.plan.replicas = options.replicas;
  node.controller.plan.members_min = options.replicas;
  node.replica.shares.weights = options.weights;
  node.security = options.security;
  node.server.clients = options.clients;
  node.server.on_refused = [this, keys = options.clients](const rpc::RefusedClient& client) {
    const std::optional<std::string> name = rack::name_in(client.identity);
    strangers_.note(client, name && keys && keys->has_name(*name));
  };
  return node;
}

task::Task<Attempt<std::unique_ptr<KvNode>>> KvNode::start(env::Env& env, kv::Keyspace& store,
                                                           KvNodeOptions options, Log log) {
  const Result<MemberId> self = co_await kv::chain::identity(env, store);
  if (!self) co_return std::unexpected(no_member(self.error()));
  Attempt<std::unique_ptr<meta::Store>> meta =
      co_await open_store(env, options.meta, [log](const std::string& who) {
        log(config::LogLevel::kWarn,
            fmt::format("the metadata server does not let this node in, which is {}", who));
      });
  if (!meta) co_return std::unexpected(meta.error());
  auto node = std::make_unique<KvNode>(env, std::move(*meta), store, *self, options, log);
  Result<void> listening = fail(Errc::kClosed, "not tried");
  HolderRetry retry(env);
  for (bool again = true; again;) {
    listening = node->node_.listen();
    again = co_await retry.after(listening);
  }
  if (!listening) {
    node->stop_.request();  // so that it ends before it begins
  }
  node->gate_.spawn(node->run());
  if (!listening) {
    co_await node->close();
    co_return std::unexpected(cannot_listen(options.listen, listening.error()));
  }
  node->gate_.spawn(node->tell());
  co_return node;
}

task::Task<void> KvNode::run() {
  // It listens already, so nothing is left that fails.
  [[maybe_unused]] const Result<void> ran = co_await node_.run(stop_.token());
}

task::Task<void> KvNode::tell() {
  bool was_in = false;
  while (!stop_.requested()) {
    const kv::ring::View* const now = node_.replica().view();
    const bool is_in = now != nullptr && now->member(self_) != nullptr;
    if (is_in && !was_in) log_(config::LogLevel::kInfo, "this node is in the ring");
    if (was_in && !is_in) {
      log_(config::LogLevel::kInfo,
           "this node is not in the ring any more, and keeps none of its keys: it can be stopped");
    }
    was_in = is_in;
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, kLook, stop_.token());
  }
}

task::Task<void> KvNode::close() {
  co_await client_.close();
  stop_.request();
  co_await gate_.close();
  co_await meta_->close();
}

}  // namespace cairn::server
