// SPDX-License-Identifier: Apache-2.0
// ViewService: the controller of this process for agents and onlookers in others, as a service of
// rpc, with the bodies of view_wire_format.h.
//
// Of clients with keys the name is their key's and, behind a slash, what they call themselves: so
// nobody reports for another.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "env/env.h"
#include "rpc/service.h"
#include "task/cancel.h"
#include "task/task.h"
#include "view/controller.h"
#include "view/view_wire_format.h"

namespace cairn::view {

// A reader looks and watches; a writer reports. On the core of its rpc::Server.
class ViewService final : public rpc::Service {
 public:
  // Calls are refused with this while another process has the controller.
  static constexpr Errc kElsewhere = Errc::kUnsupported;

  // The controller outlives it.
  ViewService(env::Env& env, Controller& controller)
      : env_(env), find_([&controller] { return &controller; }) {}
  // `find` tells before each use which controller there is now; null: none.
  ViewService(env::Env& env, std::function<Controller*()> find)
      : env_(env), find_(std::move(find)) {}

  std::string_view name() const override { return kServiceName; }
  rpc::Version version() const override { return {.major = kServiceMajor}; }
  std::optional<rpc::Method> find(uint16_t method) const override;
  task::Task<Result<std::string>> call(uint16_t method, std::string body, rpc::Caller caller,
                                       task::CancelToken token) override;
  // Pushes an Event for each drive that crossed its threshold since the last push.
  task::Task<Result<void>> subscribe(uint16_t method, std::string body, rpc::Caller caller,
                                     rpc::Pushes& pushes, task::CancelToken token) override;

 private:
  Result<std::string> attach(Controller& to, Bytes body, const rpc::Caller& caller);
  Result<std::string> report(Controller& to, Bytes body, const rpc::Caller& caller);
  Result<std::string> sync(Controller& of, Bytes body);
  Result<std::string> query(Controller& of, Bytes body);

  env::Env& env_;
  const std::function<Controller*()> find_;
};

}  // namespace cairn::view
