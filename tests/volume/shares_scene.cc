// SPDX-License-Identifier: Apache-2.0
#include "tests/volume/shares_scene.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "arbiter/arbiter_server.h"
#include "arbiter/remote_arbiter.h"
#include "drive/filter_drive.h"
#include "meta/local_store.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/when_all.h"

namespace cairn::volume_tests {

using arbiter::ArbiterHost;
using arbiter::kTestExtent;
using task::Task;
using volume::VolumeDrive;

namespace {

constexpr uint16_t kPort = 4440;
constexpr uint64_t kVolumeBytes = 32 * kTestExtent;
constexpr Duration kLatency = 80_us;  // of a request that waits for nothing

Task<void> nap(env::Env& env, Duration time) {
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, time, env.stop_token());
}

// A test drive at the pace of a slow one.
class PacedDrive final : public drive::FilterDrive {
 public:
  PacedDrive(env::Env& env, std::unique_ptr<drive::Drive> below, SlowDrive& pace)
      : FilterDrive(std::move(below)), env_(env), pace_(pace) {}
  task::Task<void> close() override {
    co_await waits_.close();
    co_await FilterDrive::close();
  }

 private:
  void start(drive::DriveOp& op) override {
    using Kind = drive::Request::Kind;
    const bool is_write = op.request.kind == Kind::kWrite;
    if (!is_write && op.request.kind != Kind::kRead) return pass(op);
    const uint64_t bytes = op.request.blocks * geometry().block_size * (is_write ? 2 : 1);
    const auto takes = static_cast<int64_t>(bytes * 1'000'000'000 / pace_.bytes_per_s);
    pace_.free_at = std::max(pace_.free_at, env_.now()) + Duration{takes};
    waits_.spawn(wait(op, pace_.free_at + kLatency));
  }
  void cancel(drive::DriveOp&) override {}
  Task<void> wait(drive::DriveOp& op, Time until) {
    [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env_, until - env_.now());
    pass(op);
  }

  env::Env& env_;
  SlowDrive& pace_;
  task::Gate waits_;
};

class PacedSource final : public volume::MegaVolSource {
 public:
  PacedSource(env::Env& env, volume::TestMedia& media, std::vector<SlowDrive>& drives)
      : env_(env), below_(env, media), drives_(drives) {}
  Task<Result<std::unique_ptr<drive::Drive>>> open(std::string uri, std::string host,
                                                   task::CancelToken token) override {
    Result<std::unique_ptr<drive::Drive>> drive = co_await below_.open(uri, host, token);
    if (!drive) co_return fail(drive.error());
    SlowDrive& pace = drives_[static_cast<size_t>(uri[1] - '0')];
    co_return std::make_unique<PacedDrive>(env_, std::move(*drive), pace);
  }

 private:
  env::Env& env_;
  volume::TestSource below_;
  std::vector<SlowDrive>& drives_;
};

}  // namespace

struct SharesScene::Leading {
  ArbiterHost& host;
  arbiter::Market& market;
};

SharesScene::SharesScene(uint64_t seed, std::vector<uint64_t> drives_bytes_per_s, size_t arbiters)
    : cluster_({.seed = seed}),
      media_(arbiter::test_media(drives_bytes_per_s.size(), 512)),
      arbiters_(arbiters),
      running_(arbiters) {
  for (const uint64_t rate : drives_bytes_per_s) drives_.push_back({.bytes_per_s = rate});
  for (size_t i = 0; i < arbiters_; ++i) {
    arbiter(i).start([this, i](env::Env& env) { return run_arbiter(env, i); });
  }
}

SharesScene::~SharesScene() {
  for (sim::Node* node : cluster_.nodes()) {
    if (node->is_running()) node->kill();
  }
}

std::vector<env::Address> SharesScene::servers() {
  std::vector<env::Address> all;
  for (size_t i = 0; i < arbiters_; ++i) all.push_back(arbiter(i).address(kPort));
  return all;
}

size_t SharesScene::add(const Load& load) {
  auto& client = *clients_.emplace_back(std::make_unique<Client>());
  const size_t which = clients_.size() - 1;
  client.load = load;
  client.volume = fmt::format("v{}", which);
  this->client(which).start([this, &client](env::Env& env) { return run_client(env, client); });
  return which;
}

bool SharesScene::open_all() {
  const auto are_ready = [this] {
    return std::ranges::all_of(clients_, [](const auto& each) { return each->is_ready; });
  };
  if (!cluster_.run_until(are_ready, 60_s)) return false;
  run(1_s);
  return true;
}

arbiter::Market* SharesScene::market() {
  for (const Leading* each : running_) {
    if (each != nullptr && each->host.is_leading()) return &each->market;
  }
  return nullptr;
}
ArbiterHost* SharesScene::host() {
  for (const Leading* each : running_) {
    if (each != nullptr && each->host.is_leading()) return &each->host;
  }
  return nullptr;
}

void SharesScene::set_terms(size_t which, share::Terms terms) {
  changes_.emplace_back(clients_[which]->volume, terms);
}

void SharesScene::mark() {
  marked_ = cluster_.now();
  for (const auto& each : clients_) {
    each->served = 0;
    each->took.clear();
  }
}

double SharesScene::bytes_per_s(size_t which) const {
  return static_cast<double>(clients_[which]->served) * 1e9 /
         static_cast<double>((cluster_.now() - marked_).ns);
}
double SharesScene::all_bytes_per_s() const {
  double all = 0;
  for (size_t i = 0; i < clients_.size(); ++i) all += bytes_per_s(i);
  return all;
}
Duration SharesScene::slowest(size_t which) const {
  const std::vector<Duration>& took = clients_[which]->took;
  return took.empty() ? Duration{INT64_MAX} : *std::ranges::max_element(took);
}
Duration SharesScene::median(size_t which) const {
  std::vector<Duration> took = clients_[which]->took;
  if (took.empty()) return Duration{INT64_MAX};
  std::ranges::nth_element(took, took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2));
  return took[took.size() / 2];
}

Task<void> SharesScene::run_arbiter(env::Env& env, size_t which) {
  const std::unique_ptr<meta::Store> store = meta::local_store(env, state_);
  {
    PacedSource source(env, media_, drives_);
    arbiter::TestFence fence(media_);
    uint64_t rate = 0;
    for (const SlowDrive& each : drives_) rate = std::max(rate, each.bytes_per_s);
    arbiter::Market market(
        env, {.drive_bytes_per_s = rate, .drive_floor = rate * promised_percent_ / 100});
    ArbiterHost host(
        env,
        {.store = *store, .source = source, .fence = fence, .loads = &market, .judge = &market},
        {.arbiter = {.host = fmt::format("arbiter.{}", ++processes_),
                     .lease = 60_s,
                     .retry = 100_ms,
                     .extent_bytes = kTestExtent},
         .election_ttl = 1_s,
         .on_change = [&market](bool) { market.begin_anew(); }});
    arbiter::MarketService services(env, host, market);
    arbiter::ArbiterServer server(env, host, "arbiter", {});
    server.add(services);
    server.add(services.view());
    Leading leading{.host = host, .market = market};
    running_[which] = &leading;
    task::Gate gate;
    gate.spawn(host.run());
    gate.spawn(make_pool(env, host));
    EXPECT_TRUE(server.listen(arbiter(which).address(kPort)));
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
    running_[which] = nullptr;
    co_await server.close();
    host.stop();
    co_await gate.close();
  }
  co_await store->close();
}

// Drives and volumes that are not there yet, and what is to be another.
Task<void> SharesScene::make_pool(env::Env& env, ArbiterHost& host) {
  while (!env.stop_token().requested()) {
    if (Result<ArbiterHost::Use> arbiter = host.use(); arbiter) {
      for (size_t i = (*arbiter)->pool().members().size(); i < drives_.size(); ++i) {
        [[maybe_unused]] const auto added = co_await (*arbiter)->add_mega_vol(
            {.uri = fmt::format("m{}", i), .box = "b1"}, env.stop_token());
      }
      for (const auto& each : clients_) {
        [[maybe_unused]] const auto made = co_await (*arbiter)->create(
            {.name = each->volume, .bytes = kVolumeBytes, .terms = each->load.terms});
      }
      while (!changes_.empty()) {
        const auto change = changes_.back();
        changes_.pop_back();
        const Result<void> set = co_await (*arbiter)->set_terms(change.first, change.second);
        EXPECT_TRUE(set) << (set ? "" : set.error().text());
      }
    }
    co_await nap(env, 50_ms);
  }
}

Task<void> SharesScene::run_client(env::Env& env, Client& client) {
  const uint64_t life = ++client.life;
  arbiter::RemoteArbiter link(env, {.servers = servers(), .connect_timeout = 200_ms});
  PacedSource source(env, media_, drives_);
  volume::Steering steering(env, {.client = {.servers = servers(), .connect_timeout = 200_ms},
                                  .volume = client.volume,
                                  .notes = client.load.notes,
                                  .orders = client.load.orders,
                                  .holds = client.load.holds});
  volume::SteeredSource steered(source, steering);
  std::unique_ptr<VolumeDrive> drive;
  while (drive == nullptr && !env.stop_token().requested()) {
    Result<std::unique_ptr<VolumeDrive>> opened = co_await VolumeDrive::open(
        env, link, steered, client.volume,
        {.client = fmt::format("{}.{}", client.volume, life), .take_over = true, .retry = 100_ms},
        env.stop_token());
    if (opened) drive = std::move(*opened);
    if (!opened) co_await nap(env, 100_ms);
  }
  if (drive != nullptr) {
    co_await use_volume(env, *drive, client);
    client.steering = steering.counters();
    co_await drive->close();
  }
  co_await steering.close();
  co_await link.disconnect();
}

Task<void> SharesScene::use_volume(env::Env& env, VolumeDrive& drive, Client& client) {
  const std::vector<std::byte> data(kTestExtent, std::byte{1});
  for (uint64_t at = 0; at < kVolumeBytes && !env.stop_token().requested(); at += kTestExtent) {
    const Result<void> done = co_await drive.write(Lba(at / volume::kBlockBytes), data);
    if (!done && !env.stop_token().requested()) ++failures_;
  }
  client.is_ready = true;
  std::vector<Task<void>> workers;
  for (size_t i = 0; i < client.load.depth; ++i) workers.push_back(worker(env, drive, client, i));
  while (!env.stop_token().requested()) co_await nap(env, 100_ms);
  co_await task::when_all(std::move(workers));
}

Task<void> SharesScene::worker(env::Env& env, VolumeDrive& drive, Client& client, uint64_t seed) {
  Rng rng(mix64(seed + 1));
  std::vector<std::byte> memory(client.load.bytes);
  const uint64_t pieces = kVolumeBytes / client.load.bytes;
  while (!env.stop_token().requested()) {
    if (!client.is_on) {
      co_await nap(env, 5_ms);
      continue;
    }
    const Lba lba(rng.below(pieces) * (client.load.bytes / volume::kBlockBytes));
    const Time began = env.now();
    Result<void> done;
    if (client.load.writes) {
      done = co_await drive.write(lba, memory, env.stop_token());
    } else {
      done = co_await drive.read(lba, memory, env.stop_token());
    }
    if (done) {
      client.served += client.load.bytes;
      client.took.push_back(env.now() - began);
    } else if (!env.stop_token().requested()) {
      ++failures_;
      co_await nap(env, 5_ms);
    }
    if (client.load.pause > Duration()) co_await nap(env, client.load.pause);
  }
}

}  // namespace cairn::volume_tests
