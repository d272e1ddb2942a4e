// SPDX-License-Identifier: Apache-2.0
#include "server/kv/open_keyspace.h"

#include "kv/memory_keyspace.h"

namespace cairn::server {

namespace {

class InMemory final : public OpenKeyspace {
 public:
  InMemory(env::Env& env, uint64_t bytes_max) : keys_(env, {.bytes_max = bytes_max}) {}
  kv::Keyspace& keys() override { return keys_; }
  task::Task<void> close() override { co_return; }
  std::string keeper() const override { return "memory"; }

 private:
  kv::MemoryKeyspace keys_;
};

}  // namespace

task::Task<Attempt<std::unique_ptr<OpenKeyspace>>> open_keyspace(env::Env& env,
                                                                 const KeyspaceArgs& args) {
  co_return std::make_unique<InMemory>(env, args.memory_max);
}

}  // namespace cairn::server
