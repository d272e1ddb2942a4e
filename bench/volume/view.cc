// SPDX-License-Identifier: Apache-2.0
// What the view and the market of an arbiter cost, by this machine's clock: clients and the arbiter
// on one core, with this machine's loopback between them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arbiter/market/market.h"
#include "base/check.h"
#include "bench/volume/subject.h"
#include "bench/volume/volume_bench.h"
#include "bench/workload.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "share/trade_wire_format.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "view/remote_view.h"
#include "view/view_service.h"
#include "view/view_wire_format.h"

namespace cairn::bench {

namespace {

using share::TradeCall;
using task::Task;

constexpr size_t kPorts = 12;  // as an FS1600 has
constexpr uint16_t kDrives = 24;
constexpr size_t kClients = 8;
constexpr uint64_t kRequestsPerSecond = 100'000;  // of all clients
constexpr Duration kTick = 20_ms;
constexpr uint16_t kOfVolume = 4;  // drives that a volume uses
constexpr int kCalls = 2000;
constexpr uint16_t kNothing = 100;  // a call of TradeService with nothing in it
constexpr double kOfOneRun = 5;     // times the seconds of a run that were asked for

arbiter::Pool some_pool() {
  arbiter::Pool pool;
  pool.record.next_volume = kClients + 1;
  Result<void> done;
  for (uint16_t i = 0; done && i < kDrives; ++i) {
    done = pool.add(arbiter::DriveRecord{
        .info = {.id = volume::MegaVolId(i),
                 .uri = fmt::format("nvme-tcp://10.0.0.{}:4420/box?nsid={}", i % kPorts + 1, i + 1),
                 .box = "box",
                 .extents = 9}});
  }
  for (size_t i = 0; done && i < kClients; ++i) {
    done = pool.add(arbiter::VolumeRecord{.id = volume::VolumeId(i + 1),
                                          .name = fmt::format("vol{}", i),
                                          .extents = 4,
                                          .holder = fmt::format("client{}", i)});
  }
  CHECK(done.has_value());
  return pool;
}

// The market's calls over a pool that is given, and one that does nothing.
class TradeService final : public rpc::Service {
 public:
  TradeService(const arbiter::Pool& pool, arbiter::Market& market) : pool_(pool), market_(market) {}
  std::string_view name() const override { return share::kServiceName; }
  rpc::Version version() const override { return {.major = share::kServiceMajor}; }
  std::optional<rpc::Method> find(uint16_t /*method*/) const override {
    return rpc::Method{.verb = "trade"};
  }
  Task<Result<std::string>> call(uint16_t method, std::string body, rpc::Caller /*caller*/,
                                 task::CancelToken /*token*/) override {
    if (method == kNothing) co_return std::string();
    market_.follow(pool_);
    const Result<share::TradeRequest> request = share::decode<share::TradeRequest>(as_bytes(body));
    if (!request) co_return fail(request.error());
    const Result<share::TradeReply> reply = market_.trade(*request);
    if (!reply) co_return fail(reply.error());
    co_return share::encode(*reply);
  }

 private:
  const arbiter::Pool& pool_;
  arbiter::Market& market_;
};

rpc::ClientOptions to(const env::Address& at, const char* service, uint16_t major) {
  rpc::ClientOptions options{.servers = {at}};
  options.session.service = service;
  options.session.service_version = {.major = major};
  return options;
}

// A client of the pool: its agent tells of requests, and every epoch it asks for slices of all
// drives.
class BusyClient {
 public:
  BusyClient(env::Env& env, const env::Address& at, const arbiter::Pool& pool,
             arbiter::Market& market, size_t number)
      : env_(env),
        number_(number),
        view_(
            env,
            {.client = {.servers = {at}}, .name = fmt::format("client{}", number), .pulls = false}),
        trades_(env, to(at, share::kServiceName, share::kServiceMajor)) {
    const Result<share::JoinReply> joined =
        market.join(pool, {.volume = fmt::format("vol{}", number),
                           .client = fmt::format("client{}", number),
                           .trades = true});
    CHECK(joined.has_value());
    joined_ = *joined;
    const Result<view::SessionId> opened =
        view_.open_session({.id = {},
                            .volume = fmt::format("vol{}", number),
                            .box = "box",
                            .port = static_cast<uint16_t>(number),
                            .ticket = joined->ticket});
    CHECK(opened.has_value());
    session_ = *opened;
  }

  Task<void> run(const bool& is_over, Result<void>& done) {
    constexpr uint64_t kOfTick = kRequestsPerSecond * kTick.ns / (1_s).ns / kClients;
    Time traded{};
    for (uint64_t count = 0; !is_over && done;) {
      for (uint64_t i = 0; i < kOfTick; ++i, ++count) {
        view_.note({.session = session_,
                    .drive = static_cast<uint16_t>((number_ * 3 + count % kOfVolume) % kDrives),
                    .type = count % 3 == 0 ? view::IoType::kWrite : view::IoType::kRead,
                    .bytes = 4096,
                    .rtt = 100_us,
                    .completed = env_.now()});
      }
      if (env_.now() - traded >= share::kEpoch) {
        traded = env_.now();
        if (const Result<void> asked = co_await trade(); !asked) done = asked;
      }
      if (const Result<void> slept = co_await task::sleep_for(env_, kTick); !slept) done = slept;
    }
  }
  uint64_t dropped() const { return view_.agent().counters().dropped; }
  view::RemoteView& view() { return view_; }
  Task<void> close() {
    co_await trades_.close();
    co_await view_.close();
  }

 private:
  Task<Result<void>> trade() {
    share::TradeRequest request{.market = joined_.market, .ticket = joined_.ticket};
    for (const share::DrivePlace& each : joined_.places) {
      request.requests.push_back({.drive = each.drive, .now = 128_KiB, .next = 128_KiB});
    }
    const std::string body = share::encode(request);
    const Result<rpc::Reply> reply = co_await trades_.call(
        {.method = static_cast<uint16_t>(TradeCall::kTrade), .body = body}, {}, {});
    if (!reply) co_return fail(reply.error());
    if (reply->refusal) co_return fail(*reply->refusal, "the market refuses");
    co_return Result<void>();
  }

  env::Env& env_;
  const size_t number_;
  view::RemoteView view_;
  rpc::Client trades_;
  share::JoinReply joined_;
  view::SessionId session_;
};

class ViewBench {
 public:
  ViewBench(const VolumeBenchOptions& options, Report& report)
      : options_(options), report_(report), pool_(some_pool()) {
    for (Measurement* each : {&query_, &query_all_, &sync_, &nothing_}) each->unit = "us";
    query_.name = "view_query";
    query_all_.name = "view_query_all";
    sync_.name = "view_sync";
    nothing_.name = "empty_call";
    cores_.name = "arbiter_cores_at_100k_iops";
    cores_.unit = "cores";
  }

  Task<void> run(env::Env& env, Result<void>& done) {
    // What the drives of a box read is far beyond what these clients tell of.
    arbiter::Market market(env, {});
    market.follow(pool_);
    TradeService trades(pool_, market);
    view::ViewService views(env, [&]() -> view::Controller* {
      market.follow(pool_);
      return market.controller();
    });
    rpc::Server server(env, trades);
    server.add(views);
    const Result<env::Address> at = server.listen(env::Address::loopback(0));
    if (!at) {
      done = fail(at.error());
      co_return;
    }
    std::vector<std::unique_ptr<BusyClient>> clients;
    for (size_t i = 0; i < kClients; ++i) {
      clients.push_back(std::make_unique<BusyClient>(env, *at, pool_, market, i));
    }
    bool is_over = false;
    task::Gate gate;
    for (const auto& each : clients) gate.spawn(each->run(is_over, done));
    for (int round = 0; done && round < options_.rounds; ++round) {
      if (options_.progress) {
        options_.progress(fmt::format("view: round {} of {}", round + 1, options_.rounds));
      }
      co_await measure(env, *at, clients.front()->view(), done);
    }
    is_over = true;
    co_await gate.close();
    uint64_t dropped = 0;
    for (const auto& each : clients) {
      dropped += each->dropped();
      co_await each->close();
    }
    co_await server.close();
    if (done && dropped > 0) done = fail(Errc::kLimit, "agents had more to tell than was taken");
    if (done) put();
  }

 private:
  using Call = Task<Result<void>> (ViewBench::*)(rpc::Client& client, view::RemoteView& view);

  Task<void> measure(env::Env& env, const env::Address& at, view::RemoteView& view,
                     Result<void>& done) {
    const Result<void> settled = co_await task::sleep_for(env, 500_ms);
    const Duration before = cpu_time();
    const Time began = now();
    const Result<void> slept =
        co_await task::sleep_for(env, Duration::from_seconds(options_.seconds * kOfOneRun));
    if (!settled || !slept) done = fail(Errc::kCancelled, "the world ends");
    cores_.samples.push_back((cpu_time() - before).seconds() / (now() - began).seconds());

    rpc::Client of_view(env, to(at, view::kServiceName, view::kServiceMajor));
    rpc::Client of_market(env, to(at, share::kServiceName, share::kServiceMajor));
    if (done) done = co_await time(query_, of_view, view, &ViewBench::query);
    if (done) done = co_await time(query_all_, of_view, view, &ViewBench::query_all);
    if (done) done = co_await time(sync_, of_view, view, &ViewBench::sync);
    if (done) done = co_await time(nothing_, of_market, view, &ViewBench::nothing);
    co_await of_view.close();
    co_await of_market.close();
  }

  Task<Result<void>> time(Measurement& into, rpc::Client& client, view::RemoteView& view,
                          Call call) {
    std::vector<double> took;
    for (int i = 0; i < kCalls; ++i) {
      const Time began = now();
      const Result<void> done = co_await (this->*call)(client, view);
      if (!done) co_return done;
      took.push_back((now() - began).us());
    }
    into.samples.push_back(median(took));
    std::ranges::sort(took);
    into.extras = {{"p99_us", took[took.size() * 99 / 100]}};
    co_return Result<void>();
  }

  // The flows of a volume, and the components that they pass.
  Task<Result<void>> query(rpc::Client& /*client*/, view::RemoteView& view) {
    const Result<view::View> seen = co_await view.query("vol0");
    if (!seen) co_return fail(seen.error());
    const bool is_whole =
        seen->components.size() == 3 + 2 * size_t{kOfVolume} && seen->flows.size() == kOfVolume;
    co_return is_whole ? Result<void>() : fail(Errc::kCorrupt, "the view is not whole");
  }
  Task<Result<void>> query_all(rpc::Client& /*client*/, view::RemoteView& view) {
    const Result<view::View> seen = co_await view.query("");
    if (!seen) co_return fail(seen.error());
    const bool is_whole = seen->components.size() == 3 * kPorts + 2 * size_t{kDrives} &&
                          seen->flows.size() == kClients * kOfVolume;
    co_return is_whole ? Result<void>() : fail(Errc::kCorrupt, "the view is not whole");
  }
  // The five components of a request.
  Task<Result<void>> sync(rpc::Client& client, view::RemoteView& /*view*/) {
    const auto path = view::path_of(view::BoxId(0), 0, 7);
    const std::string body =
        view::encode(view::SyncRequest{.components = {path.begin(), path.end()}});
    const Result<rpc::Reply> reply = co_await client.call(
        {.method = static_cast<uint16_t>(view::ViewCall::kSync), .body = body}, {}, {});
    if (!reply) co_return fail(reply.error());
    const Result<view::SyncReply> seen = view::decode<view::SyncReply>(as_bytes(reply->body));
    if (!seen) co_return fail(seen.error());
    const bool is_whole = seen->components.size() == path.size();
    co_return is_whole ? Result<void>() : fail(Errc::kCorrupt, "components are missing");
  }
  Task<Result<void>> nothing(rpc::Client& client, view::RemoteView& /*view*/) {
    const Result<rpc::Reply> reply = co_await client.call({.method = kNothing, .body = {}}, {}, {});
    co_return reply ? Result<void>() : fail(reply.error());
  }

  void put() {
    report_.add_ratio("view_query_p50_us", query_.value());
    report_.add_ratio("view_sync_p50_us", sync_.value());
    report_.add_ratio("arbiter_cores_at_100k_iops", cores_.value());
    for (Measurement* each : {&query_, &query_all_, &sync_, &nothing_, &cores_})
      report_.add(std::move(*each));
  }

  const VolumeBenchOptions& options_;
  Report& report_;
  const arbiter::Pool pool_;
  Measurement query_;
  Measurement query_all_;
  Measurement sync_;
  Measurement nothing_;
  Measurement cores_;
};

}  // namespace

Result<void> bench_volume_view(const VolumeBenchOptions& options, Report& report) {
  ViewBench bench(options, report);
  Result<void> done;
  const Result<void> ran =
      run_in_world(options.world, [&](env::Env& env) { return bench.run(env, done); });
  return ran ? done : ran;
}

}  // namespace cairn::bench
