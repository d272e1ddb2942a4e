// SPDX-License-Identifier: Apache-2.0
#include "conformance/verbs.h"
#include "meta/local_store.h"
#include "meta/place.h"
#include "meta/remote_store.h"
#include "meta/server.h"

namespace cairn::meta_tests {

namespace {

class ServedPlace final : public Place {
 public:
  ServedPlace(env::Env& env, const env::Address& any)
      : Place(env),
        store_(env),
        server_(env, store_),
        address_(conformance::must(server_.listen(any))),
        one_(env, {.servers = {address_}}),
        other_(env, {.servers = {address_}}) {}

  meta::Store& client(size_t index) override { return index == 0 ? one_ : other_; }
  task::Task<void> close() override {
    co_await one_.close();
    co_await other_.close();
    co_await server_.close();
    co_await store_.close();
  }

 private:
  meta::LocalStore store_;
  meta::Server server_;
  env::Address address_;
  meta::RemoteStore one_;
  meta::RemoteStore other_;
};

}  // namespace

task::Task<std::unique_ptr<Place>> Served::open(env::Env& env, conformance::Scene& scene) {
  co_return std::make_unique<ServedPlace>(env, scene.any_port());
}

}  // namespace cairn::meta_tests
