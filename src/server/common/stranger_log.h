// SPDX-License-Identifier: Apache-2.0
// StrangerLog: says who was refused at a door, and why.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/once_per_reason.h"
#include "config/settings.h"
#include "env/env.h"
#include "fabric/target/options.h"
#include "nvme/controller/registry.h"
#include "rpc/server.h"
#include "stream/reception.h"

namespace cairn::server {

// One line a second at most for each reason. On one core.
class StrangerLog {
 public:
  using Log = std::function<void(config::LogLevel, std::string_view)>;
  StrangerLog(env::Env& env, Log log) : env_(env), log_(std::move(log)) {}

  void note(const nvme::RefusedHost& host);
  void note(const nvme::AuthenticationFailure& failure);
  void note(const fabric::HostFault& fault);
  // `who` is a word for those who come to this door: "host", "NBD client".
  void note(const stream::RefusedConnection& connection, std::string_view who);
  // `is_known`: the server has a key for the name that the client gives.
  void note(const rpc::RefusedClient& client, bool is_known);

 private:
  void say(std::string_view reason, const std::string& line);

  env::Env& env_;
  Log log_;
  OncePerReason lines_;
};

}  // namespace cairn::server
