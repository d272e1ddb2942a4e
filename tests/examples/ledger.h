// SPDX-License-Identifier: Apache-2.0
// Ledger: a small rpc service and its client, to be copied when writing a new one.
//
// What to copy: methods as an enum with one table of who may call them, bodies that are decoded
// before they are believed, a subscription that pushes the newest state instead of every change
// when its subscriber is slow, and a client that says which calls may be repeated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "env/env.h"
#include "rpc/client.h"
#include "rpc/service.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::examples {

enum class LedgerMethod : uint16_t {
  kAdd = 1,  // u64 amount -> u64 total
  kTotal,    // -> u64 total
  kFollow,   // pushes the total, at once and when it changes
};

// On one core, that of its rpc::Server.
class Ledger final : public rpc::Service {
 public:
  uint64_t total() const { return total_; }

  std::string_view name() const override { return "ledger"; }
  rpc::Version version() const override { return {.major = 1}; }
  std::optional<rpc::Method> find(uint16_t method) const override;
  task::Task<Result<std::string>> call(uint16_t method, std::string body, rpc::Caller caller,
                                       task::CancelToken token) override;
  task::Task<Result<void>> subscribe(uint16_t method, std::string body, rpc::Caller caller,
                                     rpc::Pushes& pushes, task::CancelToken token) override;

 private:
  uint64_t total_ = 0;
  task::Event changed_;
};

// Errors as rpc::Client; and those of the service.
class LedgerClient {
 public:
  LedgerClient(env::Env& env, rpc::ClientOptions options);

  // Adds once or, after an error, perhaps.
  task::Task<Result<uint64_t>> add(uint64_t amount, task::CancelToken token = {});
  task::Task<Result<uint64_t>> total(task::CancelToken token = {});
  // Done when the total is at least that. Follows it over any number of connections.
  task::Task<Result<void>> await_total(uint64_t wanted, task::CancelToken token = {});
  task::Task<void> close() { return client_.close(); }

 private:
  rpc::Client client_;
};

}  // namespace cairn::examples
