// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "meta/local_store.h"
#include "meta/place.h"
#include "meta/remote_store.h"
#include "meta/server.h"
#include "meta/test_keys.h"
#include "testing/worlds/verbs.h"

namespace cairn::meta_tests {

namespace {

class ServedPlace final : public Place {
 public:
  ServedPlace(env::Env& env, const env::Address& any,
              std::shared_ptr<const rpc::ClientKeys> clients,
              std::shared_ptr<const rpc::Security> security)
      : Place(env),
        store_(meta::memory_store(env)),
        server_(env, *store_, {.clients = std::move(clients)}),
        address_(conformance::must(server_.listen(any))),
        one_(meta::remote_store(env, {.servers = {address_}, .security = security})),
        other_(meta::remote_store(env, {.servers = {address_}, .security = std::move(security)})) {}

  meta::Store& client(size_t index) override { return index == 0 ? *one_ : *other_; }
  task::Task<void> close() override {
    co_await one_->close();
    co_await other_->close();
    co_await server_.close();
    co_await store_->close();
  }

 private:
  std::unique_ptr<meta::Store> store_;
  meta::Server server_;
  env::Address address_;
  std::unique_ptr<meta::Store> one_;
  std::unique_ptr<meta::Store> other_;
};

}  // namespace

task::Task<std::unique_ptr<Place>> Served::open(env::Env& env, conformance::Scene& scene) {
  co_return std::make_unique<ServedPlace>(env, scene.any_port(), nullptr, nullptr);
}

task::Task<std::unique_ptr<Place>> ServedTls::open(env::Env& env, conformance::Scene& scene) {
  co_return std::make_unique<ServedPlace>(env, scene.any_port(), known_clients(), as_client("w"));
}

}  // namespace cairn::meta_tests
