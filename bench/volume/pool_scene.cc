// SPDX-License-Identifier: Apache-2.0
#include "bench/volume/pool_scene.h"

#include <utility>

#include "arbiter/arbiter_server.h"
#include "arbiter/market/market_service.h"
#include "task/deadline.h"
#include "volume/steering/steered_source.h"

namespace cairn::bench {

using task::Task;
using volume::VolumeDrive;

namespace {

constexpr Duration kLeadLimit = 600_s;  // a large pool takes its time to be read
constexpr Duration kLook = 100_us;

}  // namespace

// A market, its server, and a client of it.
struct PoolScene::Steered {
  Steered(env::Env& env, arbiter::ArbiterHost& host)
      : market(env, {}), services(env, host, market), server(env, host, "bench", {}) {
    server.add(services);
    server.add(services.view());
  }
  arbiter::Market market;
  arbiter::MarketService services;
  arbiter::ArbiterServer server;
  std::unique_ptr<volume::Steering> steering;
  std::unique_ptr<volume::SteeredSource> source;
};

PoolScene::PoolScene(env::Env& env, std::unique_ptr<Media> media)
    : env_(env), media_(std::move(media)), store_(meta::memory_store(env)) {}
PoolScene::~PoolScene() = default;

Task<Result<std::unique_ptr<PoolScene>>> PoolScene::make(env::Env& env,
                                                         std::unique_ptr<Media> media) {
  auto scene = std::make_unique<PoolScene>(env, std::move(media));
  Result<void> done = co_await scene->start_arbiter();
  for (const std::string& uri : scene->media().uris()) {
    if (!done) break;
    const Result<arbiter::ArbiterHost::Use> arbiter = scene->host().use();
    if (!arbiter) {
      done = fail(arbiter.error());
      break;
    }
    const Result<volume::MegaVolInfo> added =
        co_await (*arbiter)->add_mega_vol({.uri = uri, .may_format = true});
    if (!added) done = fail(added.error());
  }
  if (done) co_return scene;
  co_await scene->close();
  co_return fail(done.error());
}

Task<Result<void>> PoolScene::start_arbiter() {
  host_ = std::make_unique<arbiter::ArbiterHost>(
      env_, arbiter::ArbiterParts{.store = *store_, .source = *media_, .fence = fence_},
      arbiter::ArbiterHostOptions{.arbiter = {.host = "arbiter"}});
  running_ = std::make_unique<task::Gate>();
  running_->spawn(host_->run());
  for (const Time end = env_.now() + kLeadLimit; !host_->use() && env_.now() < end;) {
    const Result<void> slept = co_await task::sleep_for(env_, kLook);
    if (!slept) co_return slept;
  }
  const Result<arbiter::ArbiterHost::Use> leads = host_->use();
  co_return leads ? Result<void>() : fail(host_->last_error().value_or(leads.error()));
}

Task<void> PoolScene::stop_arbiter() {
  host_->stop();
  co_await running_->close();
}

Task<Result<void>> PoolScene::create(std::string name, uint64_t bytes, uint32_t replicas) {
  const Result<arbiter::ArbiterHost::Use> arbiter = host_->use();
  if (!arbiter) co_return fail(arbiter.error());
  const Result<arbiter::VolumeRecord> made =
      co_await (*arbiter)->create({.name = std::move(name), .bytes = bytes, .replicas = replicas});
  co_return made ? Result<void>() : fail(made.error());
}

Task<Result<std::unique_ptr<VolumeDrive>>> PoolScene::open(std::string name,
                                                           volume::VolumeOptions options) {
  options.client = name;
  co_return co_await VolumeDrive::open(env_, *host_, *media_, std::move(name), std::move(options));
}

Task<Result<std::unique_ptr<VolumeDrive>>> PoolScene::open_steered(std::string name,
                                                                   volume::VolumeOptions options) {
  steered_ = std::make_unique<Steered>(env_, *host_);
  const Result<env::Address> at = steered_->server.listen(env::Address::loopback(0));
  if (!at) co_return fail(at.error());
  steered_->steering = std::make_unique<volume::Steering>(
      env_, volume::SteeringOptions{.client = {.servers = {*at}}, .volume = name});
  steered_->source = std::make_unique<volume::SteeredSource>(*media_, *steered_->steering);
  options.client = name;
  co_return co_await VolumeDrive::open(env_, *host_, *steered_->source, std::move(name),
                                       std::move(options));
}

const volume::Steering* PoolScene::steering() const {
  return steered_ == nullptr ? nullptr : steered_->steering.get();
}

Task<void> PoolScene::close() {
  if (steered_ != nullptr) {
    if (steered_->steering != nullptr) co_await steered_->steering->close();
    co_await steered_->server.close();
  }
  if (!running_->is_closed()) co_await stop_arbiter();
  host_.reset();
  co_await store_->close();
  co_await media_->close(env_);
}

}  // namespace cairn::bench
