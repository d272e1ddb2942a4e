// SPDX-License-Identifier: Apache-2.0
// Server: a Store for RemoteStores in other processes, as a service of rpc (rpc/server.h), with the
// bodies of meta/wire_format.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "meta/store.h"
#include "meta/wire_format.h"
#include "rpc/server.h"
#include "rpc/service.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::meta {

// A reader gets, lists and watches; a writer does everything. On the core of the store, which
// outlives it.
class Server final : private rpc::Service {
 public:
  Server(env::Env& env, Store& store, rpc::ServerOptions options = {});

  // Serves there from now on. The real port, if none was asked for. Errors as Env::listen.
  Result<env::Address> listen(const env::Address& at) { return server_.listen(at); }
  // Once, before it is destroyed: all connections end.
  task::Task<void> close() { return server_.close(); }

 private:
  std::string_view name() const override { return kServiceName; }
  rpc::Version version() const override { return {.major = kServiceMajor}; }
  std::optional<rpc::Method> find(uint16_t method) const override;
  task::Task<Result<std::string>> call(uint16_t method, std::string body, rpc::Caller caller,
                                       task::CancelToken token) override;
  task::Task<Result<void>> subscribe(uint16_t method, std::string body, rpc::Caller caller,
                                     rpc::Pushes& pushes, task::CancelToken token) override;

  task::Task<Result<Answer>> answer(CallArgs request, task::CancelToken token);
  task::Task<Result<void>> push_changes(Watch& watch, rpc::Pushes& pushes, task::CancelToken token);

  env::Env& env_;
  Store& store_;
  rpc::Server server_;
};

}  // namespace cairn::meta
