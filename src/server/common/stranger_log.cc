// SPDX-License-Identifier: Apache-2.0
#include "server/common/stranger_log.h"

#include <fmt/format.h>

#include <optional>

#include "base/words.h"
#include "rack/client_keys.h"

namespace cairn::server {

void StrangerLog::say(std::string_view reason, const std::string& line) {
  if (!log_) return;
  const std::optional<std::string> more = lines_.take(reason, env_.now());
  if (more) log_(config::LogLevel::kWarn, line + *more);
}

void StrangerLog::note(const nvme::RefusedHost& host) {
  const std::string nqn = escaped(host.nqn);
  const std::string name = escaped(host.host_nqn);
  if (!host.not_listed) {
    return say(host.why,
               fmt::format("{} at {} was refused at {}: {}", name.empty() ? "the host" : name,
                           host.peer.text(), nqn.empty() ? "a subsystem" : nqn, host.why));
  }
  if (name.empty()) {
    return say("no name",
               fmt::format("the host at {} was refused: it gives no host NQN, and {} is for the "
                           "hosts on its list: give the host a name (nvme --hostnqn, SPDK's "
                           "hostnqn:)",
                           host.peer.text(), nqn));
  }
  say(host.why,
      fmt::format("{} at {} was refused: it is not on the list of hosts of {}: 'cairn host "
                  "add {}' lets it in",
                  name, host.peer.text(), nqn, name));
}

void StrangerLog::note(const nvme::AuthenticationFailure& failure) {
  const std::string who = failure.host_nqn.empty() ? "a host" : escaped(failure.host_nqn);
  const std::string where = failure.nqn.empty() ? "" : " for " + escaped(failure.nqn);
  say(failure.why, fmt::format("{} at {} could not authenticate{}: {}", who, failure.peer.text(),
                               where, failure.why));
}

void StrangerLog::note(const fabric::HostFault& fault) {
  const std::string what = nvme::text(fault.fault, nvme::End::kController);
  say(what, fmt::format("the host at {} broke the protocol on queue {}, which was closed: {}, in a "
                        "PDU of type {:02x}h",
                        fault.peer.text(), fault.queue_id, what, static_cast<uint8_t>(fault.type)));
}

void StrangerLog::note(const stream::RefusedConnection& connection, std::string_view who) {
  say(connection.why, fmt::format("the {} at {} was turned away: {}", who, connection.peer.text(),
                                  escaped(connection.why)));
}

void StrangerLog::note(const rpc::RefusedClient& client, bool is_known) {
  const std::string peer = client.peer.text();
  if (!client.name.empty()) {
    return say(client.why, fmt::format("client {} at {} was refused: {}", in_quotes(client.name),
                                       peer, client.why));
  }
  const std::optional<std::string> name = rack::name_in(client.identity);
  if (!name) {
    return say(client.why, fmt::format("a client at {} was turned away: {}", peer, client.why));
  }
  const char* why = is_known ? "its key is not the one that this server has for that name"
                             : "no client of that name is in the file of --tls-keys";
  say(why, fmt::format("client {} at {} was turned away: {}", in_quotes(*name), peer, why));
}

}  // namespace cairn::server
