// SPDX-License-Identifier: Apache-2.0
// MarketService: the market of this process for clients in others, and its view for agents and
// onlookers, as two services of rpc (share/trade_wire_format.h, view/view_service.h), while this
// process leads. Otherwise both refuse with where to ask.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "arbiter/arbiter_host.h"
#include "arbiter/market/market.h"
#include "base/error.h"
#include "env/env.h"
#include "rpc/service.h"
#include "share/trade_wire_format.h"
#include "task/cancel.h"
#include "task/task.h"
#include "view/view_service.h"

namespace cairn::arbiter {

// Only who may use volumes calls it. On the core of the host, which with the market outlives it.
class MarketService final : public rpc::Service {
 public:
  MarketService(env::Env& env, ArbiterHost& host, Market& market);

  // Its other half.
  rpc::Service& view() { return view_; }

  std::string_view name() const override { return share::kServiceName; }
  rpc::Version version() const override { return {.major = share::kServiceMajor}; }
  std::optional<rpc::Method> find(uint16_t method) const override;
  task::Task<Result<std::string>> call(uint16_t method, std::string body, rpc::Caller caller,
                                       task::CancelToken token) override;

 private:
  // Null: another process leads, or the pool has no drives. The market knows the pool then.
  view::Controller* find_controller();
  Result<std::string> join(const Pool& pool, Bytes body);
  Result<std::string> trade(Bytes body);

  ArbiterHost& host_;
  Market& market_;
  view::ViewService view_;
};

}  // namespace cairn::arbiter
