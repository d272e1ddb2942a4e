// SPDX-License-Identifier: Apache-2.0
#include "arbiter/market/market_service.h"

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;

MarketService::MarketService(env::Env& env, ArbiterHost& host, Market& market)
    : host_(host), market_(market), view_(env, [this] { return find_controller(); }) {}

view::Controller* MarketService::find_controller() {
  const Result<ArbiterHost::Use> arbiter = host_.use();
  if (!arbiter || !host_.is_leading()) return nullptr;
  market_.follow((*arbiter)->pool());
  return market_.controller();
}

std::optional<rpc::Method> MarketService::find(uint16_t method) const {
  switch (static_cast<share::TradeCall>(method)) {
    case share::TradeCall::kJoin:
    case share::TradeCall::kTrade:
    case share::TradeCall::kLeave:
      return rpc::Method{.verb = "trade bandwidth", .needs = rpc::Role::kWriter};
  }
  return std::nullopt;
}

Result<std::string> MarketService::join(const Pool& pool, Bytes body) {
  const Result<share::JoinRequest> request = share::decode<share::JoinRequest>(body);
  if (!request) return fail(request.error());
  const Result<share::JoinReply> reply = market_.join(pool, *request);
  if (!reply) return fail(reply.error());
  return share::encode(*reply);
}

Result<std::string> MarketService::trade(Bytes body) {
  const Result<share::TradeRequest> request = share::decode<share::TradeRequest>(body);
  if (!request) return fail(request.error());
  const Result<share::TradeReply> reply = market_.trade(*request);
  if (!reply) return fail(reply.error());
  return share::encode(*reply);
}

Task<Result<std::string>> MarketService::call(uint16_t method, std::string body,
                                              rpc::Caller /*caller*/, CancelToken /*token*/) {
  const Result<ArbiterHost::Use> arbiter = host_.use();
  if (!arbiter || !host_.is_leading()) co_return fail(share::kElsewhere, "another arbiter leads");
  const Pool& pool = (*arbiter)->pool();
  market_.follow(pool);
  switch (static_cast<share::TradeCall>(method)) {
    case share::TradeCall::kJoin:
      co_return join(pool, as_bytes(body));
    case share::TradeCall::kTrade:
      co_return trade(as_bytes(body));
    case share::TradeCall::kLeave: {
      const Result<share::LeaveRequest> request =
          share::decode<share::LeaveRequest>(as_bytes(body));
      if (!request) co_return fail(request.error());
      market_.leave(*request);
      co_return std::string();
    }
  }
  co_return fail(Errc::kInvalid, "no such call");
}

}  // namespace cairn::arbiter
