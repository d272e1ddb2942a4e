// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "meta/folder.h"
#include "meta/place.h"
#include "testing/worlds/verbs.h"
#include "world/rocks/rocks_store.h"

namespace cairn::meta_tests {

namespace {

class RocksPlace final : public Place {
 public:
  explicit RocksPlace(env::Env& env) : Place(env) {}
  task::Task<void> open() {
    Result<std::unique_ptr<meta::Store>> store =
        co_await rocks::open_rocks_store(env(), {.folder = folder_.file("meta")});
    store_ = conformance::must(std::move(store));
  }
  meta::Store& client(size_t) override { return *store_; }
  task::Task<void> close() override { return store_->close(); }

 private:
  Folder folder_;
  std::unique_ptr<meta::Store> store_;
};

}  // namespace

task::Task<std::unique_ptr<Place>> Rocks::open(env::Env& env, conformance::Scene&) {
  auto place = std::make_unique<RocksPlace>(env);
  co_await place->open();
  co_return place;
}

}  // namespace cairn::meta_tests
