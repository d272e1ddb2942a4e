// SPDX-License-Identifier: Apache-2.0
#include "tests/rack/rack.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "meta/local_store.h"
#include "meta/server.h"
#include "rack/pledge.h"
#include "rack/record_format.h"
#include "task/sync.h"

namespace cairn::rack_tests {

namespace {

using task::Task;

constexpr const char* kNqn = "nqn.2026-11.io.cairn:box";
constexpr uint16_t kStorePort = 4430;

Task<void> run_store(env::Env& env, env::Address at, meta::State& state) {
  const std::unique_ptr<meta::Store> store = meta::local_store(env, state);
  meta::Server server(env, *store);
  if (server.listen(at)) {
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
  }
  co_await server.close();
  co_await store->close();
}

Task<Attempt<std::unique_ptr<meta::Store>>> open_remote(env::Env& env, server::StoreUri uri) {
  co_return meta::remote_store(env, {.servers = uri.servers});
}

fabric::HostOptions quick_host(const std::string& owner) {
  fabric::HostOptions host{.host_nqn = owner};
  host.header_digest = true;
  host.data_digest = true;
  host.depth = 4;
  host.connect_timeout = 1_s;
  host.admin_timeout = 2_s;
  return host;
}

}  // namespace

Rack::BoxFacts& Rack::box(const std::string& name, uint64_t mib) {
  BoxFacts& facts = boxes_[name];
  facts.mib = mib;
  return facts;
}

env::Address Rack::store_address(sim::Cluster& cluster) const {
  return cluster.node("store").address(kStorePort);
}

void Rack::start(sim::Cluster& cluster) {
  const env::Address store = store_address(cluster);
  cluster.node("store").start(
      [this, store](env::Env& env) { return run_store(env, store, state_); });
  for (const auto& each : boxes_) {
    const std::string& name = each.first;
    const env::Address at = cluster.node(name).address(4420);
    cluster.node(name).start(
        [this, name, at, store](env::Env& env) { return run_box(env, name, at, store); });
  }
}

Task<void> Rack::run_box(env::Env& env, std::string name, env::Address at, env::Address store) {
  BoxFacts& facts = boxes_[name];
  facts.is_dying = false;
  server::ServeOptions options;
  options.server.listeners.push_back({.address = at});
  options.server.subsystems.emplace_back().options.nqn = kNqn;
  options.changes = facts.kept;
  options.hooks.log = [&facts](config::LogLevel, std::string_view line) {
    facts.log += fmt::format("{}\n", line);
  };
  // A program that is dying writes to its disk no more.
  options.hooks.keep = [&facts, &env](const server::ServerChanges& all) -> Attempt<void> {
    if (facts.is_dying || env.stop_token().requested()) return refuse("the power is gone");
    facts.kept = all;
    return {};
  };
  options.rack.store.servers = {store};
  options.rack.name = name;
  options.rack.term = kTerm;
  options.rack.expiry = kExpiry;
  options.rack.shelves.push_back({.name = "d0",
                                  .folder = facts.folder,
                                  .room = {.bytes = facts.mib * rack::kUnit, .iops = 1000},
                                  .hosts = facts.hosts});
  options.rack_hooks.open_store = open_remote;
  options.rack_hooks.remove_file = [&facts](const std::string& path) -> Attempt<void> {
    facts.is_dying = facts.dies_at_removal;
    if (facts.is_dying) return refuse("the power is gone");
    facts.removed.push_back(path);
    return {};
  };
  options.rack_hooks.log = options.hooks.log;
  const Attempt<void> served = co_await server::serve(env, options);
  if (!served) facts.log += fmt::format("ended: {}\n", served.error().text);
}

std::vector<rack::Contract> Rack::contracts(const std::string& box) const {
  std::vector<rack::Contract> all;
  for (const auto& [nqn, changes] : boxes_.at(box).kept) {
    for (const auto& [id, contract] : changes.contracts) all.push_back(contract);
  }
  return all;
}

uint64_t Rack::given_mib(const std::string& box) const {
  uint64_t given = 0;
  for (const rack::Contract& each : contracts(box)) given += each.amount.bytes / rack::kUnit;
  return given;
}

std::vector<rack::DriveRecord> Rack::drives() const {
  std::vector<rack::DriveRecord> all;
  const meta::Page page =
      state_.list(meta::Range::prefix("drive/"), meta::kPageMax, state_.revision());
  for (const meta::Entry& entry : page.entries) {
    Result<rack::DriveRecord> drive = rack::decode_drive(as_bytes(entry.value));
    if (drive) all.push_back(std::move(*drive));
  }
  return all;
}

std::string Rack::check() const {
  for (const auto& [name, facts] : boxes_) {
    if (given_mib(name) > facts.mib) return name + " gave more than it has";
  }
  for (const rack::DriveRecord& drive : drives()) {
    if (drive.is_leaving) continue;
    for (const rack::Leg& leg : drive.legs) {
      const std::vector<rack::Contract> all = contracts(leg.box);
      const bool stands = std::ranges::any_of(all, [&](const rack::Contract& each) {
        return each.id == leg.id && each.nsid == leg.nsid && each.amount == leg.amount;
      });
      if (!stands) return fmt::format("a leg of {} at {} has no contract", drive.name, leg.box);
    }
  }
  return "";
}

std::string Rack::audit() const {
  if (const std::string wrong = check(); !wrong.empty()) return wrong;
  const std::vector<rack::DriveRecord> all = drives();
  for (const auto& [name, facts] : boxes_) {
    for (const rack::Contract& contract : contracts(name)) {
      const bool is_needed = std::ranges::any_of(all, [&](const rack::DriveRecord& drive) {
        return std::ranges::any_of(drive.legs,
                                   [&](const rack::Leg& leg) { return leg.id == contract.id; });
      });
      if (!is_needed)
        return fmt::format("{} keeps space for {}, which is not there", name, contract.drive);
      if (!contract.is_confirmed)
        return fmt::format("{} has not confirmed {}", name, contract.drive);
    }
  }
  return "";
}

Tenant::Tenant(env::Env& world, const env::Address& at, std::string who)
    : env(world),
      owner(std::move(who)),
      store(
          meta::remote_store(world, {.servers = {at}, .timeout = 2_s, .connect_timeout = 500_ms})),
      peers(world, quick_host(owner)) {}

Task<rack::Outcome<rack::DriveRecord>> Tenant::create(std::string name, rack::Raid raid,
                                                      uint64_t mib) {
  rack::DriveWish wish{.name = std::move(name), .owner = owner};
  wish.wish = {.raid = raid, .amount = {.bytes = mib * rack::kUnit}};
  return rack::create_drive(env, *store, peers, std::move(wish), env.stop_token());
}

Task<rack::Outcome<void>> Tenant::release(std::string name, rack::Release how) {
  return rack::release_drive(*store, peers, std::move(name), how, env.stop_token());
}

}  // namespace cairn::rack_tests
