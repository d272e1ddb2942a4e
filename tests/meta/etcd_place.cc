// SPDX-License-Identifier: Apache-2.0
#include "meta/etcd/etcd_store.h"
#include "meta/etcd_process.h"
#include "meta/place.h"
#include "testing/worlds/verbs.h"

namespace cairn::meta_tests {

namespace {

class EtcdPlace final : public Place {
 public:
  explicit EtcdPlace(env::Env& env)
      : Place(env),
        one_(meta::etcd::etcd_store(env, etcd_.client_options())),
        other_(meta::etcd::etcd_store(env, etcd_.client_options())) {}

  meta::Store& client(size_t index) override { return index == 0 ? *one_ : *other_; }
  task::Task<void> close() override {
    co_await one_->close();
    co_await other_->close();
  }

 private:
  EtcdProcess etcd_;
  std::unique_ptr<meta::Store> one_;
  std::unique_ptr<meta::Store> other_;
};

}  // namespace

task::Task<std::unique_ptr<Place>> Etcd::open(env::Env& env, conformance::Scene& scene) {
  if (!EtcdProcess::is_installed()) {
    scene.skip("etcd is not installed: apt-get install etcd-server");
    co_return nullptr;
  }
  auto place = std::make_unique<EtcdPlace>(env);
  // Reads are repeated until it serves.
  meta::Store& store = place->store();
  const Result<meta::Page> first = co_await store.list({.range = meta::Range::all()});
  conformance::must(first);
  co_return place;
}

}  // namespace cairn::meta_tests
