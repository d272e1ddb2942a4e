// SPDX-License-Identifier: Apache-2.0
// ArbiterServer: the arbiter of this process for RemoteArbiters in others, as a service of rpc
// (rpc/server.h), with the bodies of arbiter_wire_format.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "arbiter/arbiter_host.h"
#include "arbiter/arbiter_wire_format.h"
#include "base/error.h"
#include "env/address.h"
#include "env/env.h"
#include "rpc/server.h"
#include "rpc/service.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::arbiter {

// A reader looks at drives and volumes; a writer opens volumes and changes all. On the core of the
// host, which outlives it. Calls of operators have as much time as they say.
class ArbiterServer final : private rpc::Service {
 public:
  // `name` is what operators know the process by.
  ArbiterServer(env::Env& env, ArbiterHost& host, std::string name, rpc::ServerOptions options);

  // Another service at the same addresses, with the same keys. Before listen().
  void add(rpc::Service& service) { server_.add(service); }
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

  // Terms that a request is about; no volume: it is about something else.
  struct Asked {
    std::string volume;
    share::Terms terms;
  };
  static Asked terms_in(const CallArgs& request);
  std::optional<std::string> refused_terms(const Asked& asked);
  task::Task<Result<Answer>> link_call(CallArgs request, task::CancelToken token);
  task::Task<Result<Answer>> drive_call(Arbiter& arbiter, CallArgs request,
                                        task::CancelToken token);
  task::Task<Result<Answer>> volume_call(Arbiter& arbiter, CallArgs request,
                                         task::CancelToken token);
  task::Task<Result<Answer>> answer(CallArgs request, task::CancelToken token);
  ArbiterView status() const;

  ArbiterHost& host_;
  const std::string name_;
  rpc::Server server_;
};

}  // namespace cairn::arbiter
