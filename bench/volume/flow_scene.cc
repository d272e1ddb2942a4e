// SPDX-License-Identifier: Apache-2.0
#include "bench/volume/flow_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "arbiter/arbiter_host.h"
#include "arbiter/arbiter_server.h"
#include "arbiter/market/market_service.h"
#include "arbiter/remote_arbiter.h"
#include "bench/volume/media.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "fabric/target/target.h"
#include "meta/local_store.h"
#include "meta/state.h"
#include "model/flash/scale.h"
#include "nvme/controller/registry.h"
#include "stack/stack.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/sync.h"
#include "volume/boxes/nvme_source.h"
#include "volume/boxes/reservation_fence.h"
#include "volume/steering/steered_source.h"
#include "volume/steering/steering.h"
#include "volume/volume_drive.h"
#include "world/sim/cluster.h"

namespace cairn::bench {

namespace {

using arbiter::ArbiterHost;
using task::Task;

constexpr uint64_t kModelBytes = 2_GiB;
constexpr uint64_t kDriveBytes = 1_GiB;
constexpr uint64_t kFillSize = 128_KiB;
constexpr uint32_t kFillDepth = 8;
constexpr uint16_t kBoxPort = 4420;
constexpr uint16_t kArbiterPort = 4440;
constexpr Duration kLook = 10_ms;
// Early clients are at work for so long before others come: as long as views and shares need.
constexpr Duration kLead = 1_s;
constexpr Duration kLimit = 600_s;
constexpr const char* kNqn = "nqn.2026-11.io.cairn:flow";

Task<void> nap(env::Env& env, Duration time) {
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, time, env.stop_token());
}

// Bare drives of the box.
class BoxLeaves final : public drive::Leaves {
 public:
  Task<Leaf> open(env::Env& env, std::string text) override {
    const auto uri = fabric::Uri::parse(text);
    if (!uri) co_return std::unexpected(uri.error());
    Result<std::unique_ptr<fabric::RemoteDrive>> remote =
        co_await fabric::RemoteDrive::open(env, *uri);
    if (!remote) co_return std::unexpected(remote.error().text());
    co_return std::move(*remote);
  }
};

class FlowScene {
 public:
  FlowScene(const FlowBox& box, const std::vector<FlowClient>& clients)
      : box_(box), clients_(clients), flows_(clients.size()), cluster_({.seed = box.seed}) {}

  Result<std::vector<Flow>> run() {
    const std::optional<flash::Parameters> scaled = flash::scaled_to(*box_.flash, kModelBytes);
    if (!scaled) return fail(Errc::kInvalid, "the profile's drive is smaller than the scene's");
    scaled_ = *scaled;
    has_pool_ = std::ranges::any_of(
        clients_, [](const FlowClient& each) { return each.kind == FlowClient::Kind::kVolume; });
    early_ = static_cast<size_t>(
        std::ranges::count_if(clients_, [](const FlowClient& each) { return each.is_early; }));
    node("box").start([this](env::Env& env) { return serve(env); });
    node("arbiter").start([this](env::Env& env) { return run_arbiter(env); });
    for (size_t i = 0; i < clients_.size(); ++i) {
      node(clients_[i].name).start([this, i](env::Env& env) { return run_client(env, i); });
    }
    const auto is_over = [this] { return failure_ || done_ == clients_.size(); };
    const bool ended = cluster_.run_until(is_over, kLimit);
    if (host_ != nullptr) look_at_extents();
    for (sim::Node* each : cluster_.nodes()) each->kill();
    if (failure_) return fail(*failure_);
    if (!ended) return fail(Errc::kTimedOut, "flows did not end in ten minutes of their own time");
    return std::move(flows_);
  }

 private:
  void look_at_extents() {
    const Result<ArbiterHost::Use> arbiter = host_->use();
    if (!arbiter) return;
    for (const auto& [id, volume] : (*arbiter)->pool().volumes()) {
      double early = 0;
      double all = 0;
      for (const auto& [drive, extents] : volume.legs) {
        all += extents;
        if (drive.value() < box_.early_drives) early += extents;
      }
      for (size_t i = 0; i < clients_.size(); ++i) {
        if (clients_[i].name == volume.record.name) flows_[i].on_early_drives = early / all;
      }
    }
  }
  sim::Node& node(const std::string& name) {
    const auto known = nodes_.find(name);
    if (known != nodes_.end()) return *known->second;
    // A box has room for what all clients have under way.
    const uint32_t times = name == "box" ? 8 : 1;
    const sim::NodeOptions options{.buffers = {.classes = {{4096, 2048 * times},
                                                           {16384, 512 * times},
                                                           {65536, 512 * times},
                                                           {262144, 128 * times},
                                                           {1048576, 64 * times}}}};
    return *nodes_.emplace(name, &cluster_.node(name, options)).first->second;
  }
  std::string uri_of(size_t drive) {
    return fmt::format("nvme-tcp://{}/{}?nsid={}", node("box").address(kBoxPort).text(), kNqn,
                       drive + 1);
  }
  std::vector<env::Address> arbiters() { return {node("arbiter").address(kArbiterPort)}; }
  void note(const Error& error) {
    if (!failure_) failure_ = error;
  }

  // The box: a namespace for each drive.
  Task<void> serve(env::Env& env) {
    std::vector<std::unique_ptr<drive::Source>> sources;
    nvme::Registry registry(env);
    fabric::Target target(env, registry);
    Result<void> done = registry.add_subsystem({.nqn = kNqn, .queue_entries_max = 1024});
    if (!done) note(done.error());
    for (size_t i = 0; done && i < box_.drives; ++i) {
      Result<std::unique_ptr<drive::Source>> source = make_blank_ssd(env, kDriveBytes, scaled_);
      if (!source) {
        note(source.error());
        break;
      }
      sources.push_back(std::move(*source));
      const nvme::NamespaceOptions space{
          .nsid = static_cast<uint32_t>(i + 1), .source = sources.back().get(), .stack = "flash"};
      const Result<uint32_t> added = co_await registry.add_namespace(kNqn, space);
      if (!added) note(added.error());
    }
    if (const auto at = target.listen(node("box").address(kBoxPort)); !at) note(at.error());
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
    co_await target.close();
    co_await registry.close();
  }

  Task<void> run_arbiter(env::Env& env) {
    if (!has_pool_) co_return;
    const std::unique_ptr<meta::Store> store = meta::local_store(env, state_);
    {
      volume::NvmeSource source(env);
      volume::ReservationFence fence(env, source);
      arbiter::Market market(env,
                             {.drive_bytes_per_s = kFlowDriveRate, .drive_floor = kFlowDriveFloor});
      ArbiterHost host(
          env,
          {.store = *store, .source = source, .fence = fence, .loads = &market, .judge = &market},
          {.arbiter = {.host = "arbiter"}, .on_change = [&market](bool) { market.begin_anew(); }});
      host_ = &host;
      arbiter::MarketService services(env, host, market);
      arbiter::ArbiterServer server(env, host, "arbiter", {});
      server.add(services);
      server.add(services.view());
      task::Gate gate;
      gate.spawn(host.run());
      if (const auto at = server.listen(node("arbiter").address(kArbiterPort)); !at) {
        note(at.error());
      }
      co_await make_pool(env, host);
      task::Event never;
      [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
      host_ = nullptr;
      co_await server.close();
      host.stop();
      co_await gate.close();
    }
    co_await store->close();
  }

  Task<void> make_pool(env::Env& env, ArbiterHost& host) {
    while (!host.use() && !env.stop_token().requested()) co_await nap(env, kLook);
    Result<ArbiterHost::Use> arbiter = host.use();
    if (!arbiter) co_return;
    const size_t first = box_.early_drives == 0 ? box_.drives : box_.early_drives;
    co_await add_drives(env, **arbiter, 0, first);
    co_await add_volumes(**arbiter, true);
    while (!late_may_come_ && !env.stop_token().requested()) co_await nap(env, kLook);
    co_await add_drives(env, **arbiter, first, box_.drives);
    co_await add_volumes(**arbiter, false);
  }
  Task<void> add_drives(env::Env& env, arbiter::Arbiter& arbiter, size_t from, size_t to) {
    for (size_t i = from; i < to && !failure_; ++i) {
      const Result<volume::MegaVolInfo> added = co_await arbiter.add_mega_vol(
          {.uri = uri_of(i), .box = "b1", .may_format = true}, env.stop_token());
      if (!added) note(added.error());
    }
  }
  Task<void> add_volumes(arbiter::Arbiter& arbiter, bool is_early) {
    for (const FlowClient& each : clients_) {
      if (each.kind != FlowClient::Kind::kVolume || each.is_early != is_early) continue;
      const Result<arbiter::VolumeRecord> made = co_await arbiter.create(
          {.name = each.name, .bytes = each.bytes, .weights = each.weights, .terms = each.terms});
      if (!made) note(made.error());
    }
    (is_early ? early_are_made_ : late_are_made_) = true;
  }

  Task<void> run_client(env::Env& env, size_t which) {
    const FlowClient& client = clients_[which];
    if (!client.is_early) {
      while (early_filled_ < early_ && !env.stop_token().requested()) co_await nap(env, kLook);
      if (early_ > 0) co_await nap(env, kLead);
      late_may_come_ = true;
    }
    if (client.kind == FlowClient::Kind::kVolume) {
      co_await run_volume(env, which);
    } else {
      co_await run_bare(env, which);
    }
    ++done_;
  }

  Task<void> run_volume(env::Env& env, size_t which) {
    const FlowClient& client = clients_[which];
    const bool& is_made = client.is_early ? early_are_made_ : late_are_made_;
    while (!is_made && !env.stop_token().requested()) co_await nap(env, kLook);
    arbiter::RemoteArbiter link(env, {.servers = arbiters()});
    volume::NvmeSource source(env);
    volume::Steering steering(env, {.client = {.servers = arbiters()},
                                    .volume = client.name,
                                    .notes = client.mechanisms.notes,
                                    .orders = client.mechanisms.orders,
                                    .holds = client.mechanisms.holds});
    volume::SteeredSource steered(source, steering);
    Result<std::unique_ptr<volume::VolumeDrive>> drive = co_await volume::VolumeDrive::open(
        env, link, steered, client.name, {.client = client.name}, env.stop_token());
    if (drive) {
      co_await use(env, **drive, which);
      flows_[which].sent = steering.counters().sent;
      flows_[which].waited = steering.counters().waited;
      co_await (*drive)->close();
    } else {
      note(drive.error());
    }
    co_await steering.close();
    co_await link.disconnect();
  }

  Task<void> run_bare(env::Env& env, size_t which) {
    const FlowClient& client = clients_[which];
    std::string stack = uri_of(client.drive);
    if (client.kind == FlowClient::Kind::kStripe) {
      stack = "stripe(";
      for (size_t i = 0; i < box_.drives; ++i) stack += uri_of(i) + ", ";
      stack += "chunk=64K)";
    }
    BoxLeaves leaves;
    drive::Opened drive = co_await drive::open_stack(env, stack, leaves);
    if (!drive) {
      note(Error(Errc::kInvalid, "bare drives of a flow do not open"));
      co_return;
    }
    co_await use(env, **drive, which);
    co_await (*drive)->close();
  }

  Task<void> use(env::Env& env, drive::Drive& drive, size_t which) {
    const FlowClient& client = clients_[which];
    const Time began = env.now();
    const Result<loadgen::LoadResult> filled =
        co_await loadgen::run_load(env, drive,
                                   {.order = loadgen::DriveLoad::Order::kSequential,
                                    .read_share = 0,
                                    .request_size = kFillSize,
                                    .depth = kFillDepth,
                                    .length = client.bytes,
                                    .duration = kLimit,
                                    .requests_max = client.bytes / kFillSize},
                                   env.stop_token());
    if (!filled || filled->error) co_return note(filled ? *filled->error : filled.error());
    flows_[which].filled_in = env.now() - began;
    size_t& ready = client.is_early ? early_filled_ : late_filled_;
    const size_t all = client.is_early ? early_ : clients_.size() - early_;
    ++ready;
    while (ready < all && !env.stop_token().requested()) co_await nap(env, kLook);
    loadgen::DriveLoad load = client.load;
    load.length = client.bytes;
    load.seed = box_.seed * 1000 + which;
    if (client.is_early) {
      load.warm_up = kLead;
      load.duration = kLimit;
    }
    task::CancelSource stop;
    task::Gate watching;
    if (client.is_early) watching.spawn(stop_when_over(env, stop));
    Result<loadgen::LoadResult> ran = co_await loadgen::run_load(env, drive, load, stop.token());
    co_await watching.close();
    if (!ran || ran->error) co_return note(ran ? *ran->error : ran.error());
    flows_[which].load = std::move(*ran);
    if (!client.is_early && ++late_done_ == clients_.size() - early_) is_over_ = true;
  }

  // On the client's own machine.
  Task<void> stop_when_over(env::Env& env, task::CancelSource& stop) {
    while (!is_over_ && !env.stop_token().requested()) co_await nap(env, kLook);
    stop.request();
  }

  const FlowBox& box_;
  const std::vector<FlowClient>& clients_;
  flash::Parameters scaled_;
  bool has_pool_ = false;
  size_t early_ = 0;
  size_t early_filled_ = 0;
  size_t late_filled_ = 0;
  size_t late_done_ = 0;
  size_t done_ = 0;
  bool early_are_made_ = false;
  bool late_may_come_ = false;
  bool late_are_made_ = false;
  bool is_over_ = false;
  std::optional<Error> failure_;
  meta::State state_;
  ArbiterHost* host_ = nullptr;
  std::vector<Flow> flows_;
  sim::Cluster cluster_;
  std::map<std::string, sim::Node*> nodes_;
};

}  // namespace

Result<std::vector<Flow>> run_flows(const FlowBox& box, const std::vector<FlowClient>& clients) {
  FlowScene scene(box, clients);
  return scene.run();
}

}  // namespace cairn::bench
