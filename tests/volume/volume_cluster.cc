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
constexpr size_t kRelativesMax = 3;  // snapshots and clones at a time

std::string uri_of(size_t drive) { return fmt::format("m{}", drive); }

Task<void> nap(env::Env& env, Duration time) {
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, time, env.stop_token());
}

}  // namespace

VolumeCluster::VolumeCluster(Way way)
    : way_(way), media_(arbiter::test_media(kDrives, kDriveExtents)) {
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
  gate.spawn(make_pool(env, arbiter));
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

// Whoever leads adds what is missing.
Task<void> VolumeCluster::make_pool(env::Env& env, ArbiterHost& host) {
  while (!env.stop_token().requested()) {
    {
      Result<ArbiterHost::Use> arbiter = host.use();
      for (size_t i = 0; arbiter && i < kDrives; ++i) {
        const auto is_it = [&](const auto& each) { return each.second.info.uri == uri_of(i); };
        if (std::ranges::any_of((*arbiter)->pool().members(), is_it)) continue;
        [[maybe_unused]] const Result<volume::MegaVolInfo> added =
            co_await (*arbiter)->add_mega_vol({.uri = uri_of(i)}, env.stop_token());
      }
      const bool is_whole = arbiter && (*arbiter)->pool().members().size() == kDrives;
      for (const char* name : {"v0", "v1"}) {
        if (!is_whole || is_destroying_) break;
        [[maybe_unused]] const Result<arbiter::VolumeRecord> made =
            co_await (*arbiter)->create({.name = name,
                                         .bytes = kVolumeExtents * kExtent,
                                         .replicas = facts_.volumes[name].replicas});
      }
      if (is_whole && !facts_.is_resting) co_await use_snapshots(env, **arbiter);
      if (is_whole && is_destroying_) co_await destroy_volumes(**arbiter);
    }
    co_await nap(env, 500_ms);
  }
}

// What operators do now and then.
Task<void> VolumeCluster::use_snapshots(env::Env& env, arbiter::Arbiter& arbiter) {
  std::vector<std::string> there;
  std::vector<std::string> writable;
  for (const auto& [id, volume] : arbiter.pool().volumes()) {
    if (volume.record.is_leaving) continue;
    (volume.record.is_snapshot ? there : writable).push_back(volume.record.name);
  }
  const auto any_of = [&](const std::vector<std::string>& names) {
    return names[env.rng().below(names.size())];
  };
  const bool has_room = there.size() + writable.size() < 2 + kRelativesMax;
  const uint64_t what = env.rng().below(100);
  if (what < 50 && has_room && !writable.empty()) {
    co_await make_snapshot(arbiter, any_of(writable));
  } else if (what < 70 && has_room && !there.empty()) {
    const std::string from = any_of(there);
    const std::string name = fmt::format("c{}", ++last_snapshot_);
    VolumeFacts& facts = facts_.volumes[name];
    facts.name = name;
    for (uint64_t block = 0; block < kVolumeExtents * kExtentBlocks; ++block) {
      const SnapshotFacts& snapshot = facts_.snapshots[from];
      const auto seen = snapshot.seen.find(block);
      facts.oracle.seed(block, seen == snapshot.seen.end() ? snapshot.values(block)
                                                           : std::set<uint64_t>{seen->second});
    }
    const Result<arbiter::VolumeRecord> made = co_await arbiter.clone(from, name);
    counters_.cloned += made ? 1 : 0;
  } else if (what < 90) {
    for (const std::string& name : writable) {
      if (name.starts_with("c")) there.push_back(name);
    }
    if (there.empty()) co_return;
    [[maybe_unused]] const Result<void> gone = co_await arbiter.destroy(any_of(there), true);
  }
}

Task<void> VolumeCluster::make_snapshot(arbiter::Arbiter& arbiter, std::string volume) {
  const std::string name = fmt::format("s{}", ++last_snapshot_);
  const std::string full = volume::snapshot_name(volume, name);
  const VolumeFacts& facts = facts_.volumes[volume];
  SnapshotFacts& snapshot = facts_.snapshots[full];
  snapshot.before = facts.oracle;
  snapshot.epoch = facts.epoch;
  const Result<arbiter::VolumeRecord> made = co_await arbiter.snapshot(volume, name);
  if (!made) co_return;
  ++counters_.made;
  snapshot.is_made = true;
  snapshot.has_one_holder =
      facts.epoch == snapshot.epoch && facts.oracle.doubts() == snapshot.before.doubts();
}

Task<void> VolumeCluster::destroy_volumes(arbiter::Arbiter& arbiter) {
  std::vector<std::string> names;
  for (const auto& [id, volume] : arbiter.pool().volumes()) names.push_back(volume.record.name);
  for (const std::string& name : names) {
    [[maybe_unused]] const Result<void> gone = co_await arbiter.destroy(name, true);
  }
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
      counters_.unshared += (*drive)->counters().unshared;
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
  if (lost_box_ != nullptr) return false;
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

void VolumeCluster::hurt_drives(Rng& rng) {
  TestMedium& medium = *media_.at(uri_of(rng.below(kDrives)));
  const uint64_t what = rng.below(100);
  if (until_power_fails_ > 0) --until_power_fails_;
  if (what < 10 && until_power_fails_ > 0) return;
  if (what < 8) {
    medium.lose_power();
  } else if (what < 10) {
    for (auto& [uri, each] : media_) each->lose_power();
  } else if (what < 14) {
    medium.is_down = true;
  } else if (what < 30) {
    for (auto& [uri, each] : media_) each->is_down = false;
  } else if (what < 33) {
    medium.write_errors = 0.2;
  } else if (what < 36) {
    medium.read_errors = 0.2;
  } else if (what < 50) {
    for (auto& [uri, each] : media_) each->read_errors = each->write_errors = 0;
  } else if (what < 52) {
    mail_.loss = 0.3;
  } else if (what < 60) {
    mail_.loss = rng.bernoulli(0.5) ? 0.02 : 0;
  } else if (what == 60 && !has_lost_one_) {
    const std::string uri = uri_of(rng.below(kDrives));
    if (!can_lose(uri)) return;
    has_lost_one_ = true;
    // Whoever has a volume open has to notice that first: drives that lose power count as lacking
    // what another one has, which would be this one.
    until_power_fails_ = 20;
    media_.at(uri)->empty();
  }
}

void VolumeCluster::lose_boxes(sim::Cluster& cluster, Rng& rng) {
  if (lost_box_ != nullptr && cluster.now() >= lost_until_) {
    lost_box_->is_cut_off = lost_box_->is_down = false;
    lost_box_ = nullptr;
  }
  if (lost_box_ != nullptr || !rng.bernoulli(0.05)) return;
  lost_box_ = media_.at(uri_of(rng.below(kDrives))).get();
  lost_until_ =
      cluster.now() + Duration{static_cast<int64_t>(rng.between(6'000, 20'000))} * 1'000'000;
  lost_box_->is_cut_off = true;
  lost_box_->is_down = rng.bernoulli(0.5);
  sim::Node& client = cluster.node(fmt::format("client{}", rng.below(2)));
  if (rng.bernoulli(0.8) && client.is_running() && !client.is_paused()) {
    client.kill();
    client.restart();
  }
}

void VolumeCluster::heal_drives() {
  mail_.loss = 0;
  lost_box_ = nullptr;
  for (auto& [uri, each] : media_) {
    each->is_down = each->is_cut_off = false;
    each->read_errors = each->write_errors = 0;
  }
}

}  // namespace cairn::volume_tests
