// SPDX-License-Identifier: Apache-2.0
#include "meta/local_store.h"
#include "meta/place.h"

namespace cairn::meta_tests {

namespace {

class MemoryPlace final : public Place {
 public:
  explicit MemoryPlace(env::Env& env) : Place(env), store_(meta::memory_store(env)) {}
  meta::Store& client(size_t) override { return *store_; }
  task::Task<void> close() override { return store_->close(); }

 private:
  std::unique_ptr<meta::Store> store_;
};

}  // namespace

task::Task<std::unique_ptr<Place>> Memory::open(env::Env& env, conformance::Scene&) {
  co_return std::make_unique<MemoryPlace>(env);
}

}  // namespace cairn::meta_tests
