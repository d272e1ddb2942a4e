// SPDX-License-Identifier: Apache-2.0
#include "kv/chain/peers.h"

#include <optional>
#include <vector>

#include "env/address.h"
#include "task/deadline.h"
#include "task/when_all.h"

namespace cairn::kv::chain {

using task::CancelToken;
using task::Task;

Task<Result<std::string>> Peers::call(std::string address, Call method, uint32_t hop,
                                      std::string body, Duration timeout, CancelToken token) {
  if (is_closed_) co_return fail(Errc::kClosed, "peers");
  Peer& peer = peers_[address];
  if (!peer.client) {
    const Result<env::Address> at = env::Address::parse(address);
    if (!at) co_return fail(at.error());
    rpc::ClientOptions options{.servers = {*at}};
    options.session.service = kServiceName;
    options.session.service_version = {.major = kServiceMajor};
    options.connect_timeout = 1_s;
    options.security = security_;
    peer.client = std::make_unique<rpc::Client>(env_, std::move(options));
  }
  std::unique_ptr<task::Semaphore>& places = peer.places[{method, hop}];
  if (!places) places = std::make_unique<task::Semaphore>(kCallsPerHop);
  task::Deadline deadline(env_, env_.now() + timeout, token);
  const Result<void> place = co_await places->acquire(1, deadline.token());
  if (!place) co_return fail(place.error());
  const task::Units held(*places, 1);
  rpc::MethodCall request{.method = static_cast<uint16_t>(method), .body = std::move(body)};
  Result<rpc::Reply> reply =
      co_await peer.client->call(std::move(request), {.timeout = timeout}, deadline.token());
  if (!reply) co_return fail(reply.error());
  if (reply->refusal) co_return fail(*reply->refusal, "a node of a chain refuses");
  co_return std::move(reply->body);
}

Task<void> Peers::close() {
  is_closed_ = true;
  for (auto& [address, peer] : peers_) {
    if (peer.client) co_await peer.client->close();
  }
}

}  // namespace cairn::kv::chain
