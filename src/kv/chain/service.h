// SPDX-License-Identifier: Apache-2.0
// Service: a Replica for clients and other nodes, by rpc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "kv/chain/message_format.h"
#include "kv/chain/replica.h"
#include "rpc/service.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::kv::chain {

// With keys, a reader gets, a writer writes, and nodes are writers too.
class Service final : public rpc::Service {
 public:
  explicit Service(Replica& replica) : replica_(replica) {}

  std::string_view name() const override { return kServiceName; }
  rpc::Version version() const override { return {.major = kServiceMajor}; }
  std::optional<rpc::Method> find(uint16_t method) const override;
  task::Task<Result<std::string>> call(uint16_t method, std::string body, rpc::Caller caller,
                                       task::CancelToken token) override;

 private:
  Replica& replica_;
};

}  // namespace cairn::kv::chain
