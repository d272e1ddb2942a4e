// SPDX-License-Identifier: Apache-2.0
#include "tests/volume/volume_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "arbiter/arbiter_server.h"
#include "arbiter/remote_arbiter.h"
#include "meta/local_store.h"
#include "meta/remote_store.h"
#include "meta/server.h"
#include "task/deadline.h"
#include "testing/stack/stacks.h"
#include "tests/volume/volume_user.h"

namespace cairn::volume_tests {

using arbiter::ArbiterHost;
using task::Task;
using volume::TestMedium;
using volume::VolumeDrive;

namespace {

constexpr uint16_t kStorePort = 4431;
constexpr uint16_t kArbiterPort = 4440;
constexpr uint64_t kDriveExtents = 32;

}  // namespace

VolumeCluster::VolumeCluster(Way way)
    : way_(way),
      media_(arbiter::test_media(kDrives, kDriveExtents)),
      faults_(media_, mail_, [this](const std::string& uri) { return can_lose(uri); }),
      operator_(facts_) {
  facts_.volumes["v0"] = {.name = "v0", .oracle = {}};
  facts_.volumes["v1"] = {.name = "v1", .replicas = 2, .oracle = {}};
}

void VolumeCluster::start(sim::Cluster& cluster) {
  const env::Address store = cluster.node("store").address(kStorePort);
  cluster.node("store").start([this, store](env::Env& env) { return run_store(env, store); });
  for (const char* name : {"arbiter0", "arbiter1"}) {
    addresses_[name] = cluster.node(name).address(kArbiterPort);
    cluster.node(name).start(
        [this, name, store](env::Env& env) { return run_arbiter(env, name, store); });
  }
  for (size_t i = 0; i < 2; ++i) {
    cluster.node(fmt::format("client{}", i)).start([this, i](env::Env& env) {
      return run_client(env, i);
    });
  }
}

Task<void> VolumeCluster::run_store(env::Env& env, env::Address at) {
  const std::unique_ptr<meta::Store> store = meta::local_store(env, state_);
  meta::Server server(env, *store);
  if (server.listen(at)) {
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
  }
  co_await server.close();
  co_await store->close();
}

Task<void> VolumeCluster::run_arbiter(env::Env& env, std::string name, env::Address at) {
  const std::string host = fmt::format("{}.{}", name, ++processes_);
  const std::unique_ptr<meta::Store> store =
      meta::remote_store(env, {.servers = {at}, .timeout = 2_s, .connect_timeout = 500_ms});
  volume::TestSource source(env, media_);
  arbiter::TestFence fence(media_);
  ArbiterHost arbiter(
      env, {.store = *store, .source = source, .fence = fence},
      {.arbiter = {.host = host, .lease = 10_s, .retry = 100_ms, .extent_bytes = kExtent},
       .election_ttl = 2_s});
  arbiters_[name] = &arbiter;
  task::Gate gate;
  gate.spawn(arbiter.run());
  gate.spawn(operator_.run(env, arbiter));
  if (way_ == Way::kRpc) {
    co_await serve_calls(env, arbiter, name);
  } else {
    co_await answer_letters(env, mail_, name, arbiter, env.stop_token());
  }
  arbiters_[name] = nullptr;
  arbiter.stop();
  co_await gate.close();
  co_await store->close();
}

Task<void> VolumeCluster::serve_calls(env::Env& env, ArbiterHost& arbiter, std::string name) {
  arbiter::ArbiterServer server(env, arbiter, name, {});
  if (server.listen(addresses_.at(name))) {
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
  }
  co_await server.close();
}

bool VolumeCluster::is_all_free() const {
  const arbiter::Pool* now = pool();
  if (now == nullptr || !now->volumes().empty()) return false;
  return std::ranges::all_of(now->members(), [&](const auto& each) {
    const arbiter::Member& member = each.second;
    const bool is_lost = media_.at(member.info.uri)->was_emptied;
    const uint64_t free = member.extents.free() + (is_lost ? member.cleaning : 0);
    return free == member.info.extents - 1;
  });
}

std::string VolumeCluster::choose(env::Env& env, size_t number) {
  std::string own = fmt::format("v{}", number);
  const arbiter::Pool* now = pool();
  if (!facts_.is_resting && env.rng().bernoulli(0.7)) return own;
  std::vector<std::string> names;
  if (now != nullptr) {
    for (const auto& [id, volume] : now->volumes()) {
      const std::string& name = volume.record.name;
      if (volume.record.is_leaving) continue;
      const bool is_checked = volume.record.is_snapshot ? facts_.snapshots[name].is_checked
                                                        : facts_.volumes[name].is_checked;
      if (!facts_.is_resting || !is_checked) names.push_back(name);
      if (!volume.record.is_snapshot && !facts_.is_resting) facts_.volumes[name].is_checked = false;
      if (!volume.record.is_snapshot) facts_.volumes[name].replicas = volume.record.replicas;
    }
  }
  if (!names.empty()) return names[env.rng().below(names.size())];
  return facts_.is_resting ? "" : own;
}

Task<void> VolumeCluster::run_client(env::Env& env, size_t number) {
  if (way_ == Way::kLetters) {
    MailLink link(env, mail_, {"arbiter0", "arbiter1"});
    co_return co_await use_volumes(env, link, number);
  }
  arbiter::RemoteArbiter link(env,
                              {.servers = {addresses_.at("arbiter0"), addresses_.at("arbiter1")},
                               .timeout = 3_s,
                               .connect_timeout = 500_ms});
  co_await use_volumes(env, link, number);
  co_await link.disconnect();
}

Task<void> VolumeCluster::use_volumes(env::Env& env, volume::ArbiterLink& link, size_t number) {
  volume::TestSource source(env, media_);
  while (!env.stop_token().requested()) {
    const std::string name = choose(env, number);
    if (name.empty()) {
      co_await nap(env, 100_ms);
      continue;
    }
    const bool is_snapshot = name.find(volume::kSnapshotMark) != name.npos;
    const std::string client = fmt::format("client{}.{}", number, ++processes_);
    const Result<std::unique_ptr<VolumeDrive>> drive =
        co_await VolumeDrive::open(env, link, source, name,
                                   {.client = client,
                                    .take_over = env.rng().bernoulli(0.3),
                                    .open_limit = 5_s,
                                    .retry = 100_ms,
                                    .rebuild_after = 2_s,
                                    .sweep = 300_ms,
                                    .listen = 500_ms},
                                   env.stop_token());
    if (!drive) {
      co_await nap(env, 300_ms);
      continue;
    }
    if (is_snapshot) {
      co_await VolumeUser(env, **drive, facts_).read_snapshot(name);
      co_await (*drive)->close();
      continue;
    }
    VolumeFacts& volume = facts_.volumes[name];
    if ((*drive)->session().epoch.value() > volume.epoch) {
      volume.epoch = (*drive)->session().epoch.value();
      volume.oracle.doubt();
      if (drive::fact(**drive, "drives_unfenced") > 0) ++unfenced_openings_;
      volume.drive = drive->get();
      co_await VolumeUser(env, **drive, facts_).use(volume);
      if (volume.drive == drive->get()) volume.drive = nullptr;
      facts_.unshared += (*drive)->counters().unshared;
    }
    co_await (*drive)->close();
  }
}

bool VolumeCluster::is_checked() const {
  const arbiter::Pool* now = pool();
  if (now == nullptr) return false;
  return std::ranges::all_of(now->volumes(), [this](const auto& each) {
    const arbiter::VolumeRecord& record = each.second.record;
    if (record.is_leaving) return true;
    if (!record.is_snapshot) return facts_.volumes.at(record.name).is_checked;
    const auto found = facts_.snapshots.find(record.name);
    return found != facts_.snapshots.end() && found->second.is_checked;
  });
}

const arbiter::Pool* VolumeCluster::pool() const {
  for (const auto& [name, host] : arbiters_) {
    if (host == nullptr) continue;
    const Result<ArbiterHost::Use> arbiter = host->use();
    // One that stands still does not know yet that another leads.
    if (arbiter && (*arbiter)->is_working()) return &(*arbiter)->pool();
  }
  return nullptr;
}

std::string VolumeCluster::audit(bool is_final) const {
  const arbiter::Pool* now = pool();
  if (now == nullptr) return is_final ? "no arbiter leads" : "";
  if (std::string wrong = arbiter::audit(*now, media_, is_final); !wrong.empty()) return wrong;
  if (!is_final) return "";
  for (const auto& [id, member] : now->members()) {
    const bool is_lost = media_.at(member.info.uri)->was_emptied;
    if (member.cleaning > 0 && !is_lost) return "extents are never cleared";
    if (is_lost && member.legs > 0) return "legs are left on a drive that was lost";
  }
  return compare_legs(*now);
}

std::string VolumeCluster::compare_legs(const arbiter::Pool& pool) const {
  for (const auto& [id, volume] : pool.volumes()) {
    for (uint32_t extent = 1; extent < volume.table.size(); ++extent) {
      const volume::MapEntry& entry = volume.table[extent];
      if (entry.is_mapped() && entry.in_sync() != volume.record.replicas) {
        return fmt::format("extent {} of {} has {} legs in order", extent, volume.record.name,
                           entry.in_sync());
      }
      for (uint64_t block = 0; entry.is_mapped() && block < kExtentBlocks; ++block) {
        std::array<TestMedium::Page, volume::kReplicasMax> pages{};
        for (size_t i = 0; i < entry.size(); ++i) {
          const TestMedium& medium = *media_.at(pool.members().at(entry.leg(i).mega_vol).info.uri);
          medium.read(entry.leg(i).extent * kExtentBlocks + block, pages[i]);
          if (pages[i] != pages[0]) {
            return fmt::format("block {} of extent {} of {} differs between legs", block, extent,
                               volume.record.name);
          }
        }
      }
    }
  }
  return "";
}

// Whether every extent has a leg in order elsewhere, also as far as only its holder knows.
bool VolumeCluster::can_lose(const std::string& uri) const {
  const arbiter::Pool* now = pool();
  if (now == nullptr || now->members().size() < kDrives) return false;
  // What nobody has open is as the arbiter knows.
  const auto is_whole = [](const auto& each) {
    const volume::VolumeDrive* drive = each.second.drive;
    return drive == nullptr ||
           (drive->jobs().empty() && drive::fact(*drive, "drives_unfenced") == 0);
  };
  // One loss at a time is what two replicas survive; and who is opening a volume may just be
  // finding out which legs lack something.
  if (faults_.is_box_away()) return false;
  for (const auto& [other, medium] : media_) {
    if (medium->is_down) return false;
  }
  for (const auto& [id, volume] : now->volumes()) {
    const auto known = facts_.volumes.find(volume.record.name);
    if (known != facts_.volumes.end() && known->second.epoch != volume.record.epoch.value()) {
      return false;
    }
  }
  if (!std::ranges::all_of(facts_.volumes, is_whole)) return false;
  for (const char* name : {"v0", "v1"}) {
    if (facts_.volumes.at(name).drive == nullptr) return false;
  }
  for (const auto& [id, volume] : now->volumes()) {
    for (const volume::MapEntry& entry : volume.table) {
      size_t left = 0;
      for (size_t i = 0; i < entry.size(); ++i) {
        const volume::Leg leg = entry.leg(i);
        left += !leg.is_stale && now->members().at(leg.mega_vol).info.uri != uri ? 1 : 0;
      }
      if (entry.is_mapped() && left == 0) return false;
    }
  }
  return true;
}

}  // namespace cairn::volume_tests
