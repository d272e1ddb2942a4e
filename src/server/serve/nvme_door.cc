// SPDX-License-Identifier: Apache-2.0
#include "server/serve/nvme_door.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"
#include "server/common/advice.h"
#include "server/common/holder_retry.h"
#include "task/deadline.h"

namespace cairn::server {

namespace {

Problem cannot_add_subsystem(std::string_view nqn, const Error& error) {
  return {fmt::format("subsystem {} cannot be served: {}: name it like nqn.2026-11.io.cairn:NAME",
                      in_quotes(nqn), error.text())};
}

}  // namespace

NvmeDoor::NvmeDoor(env::Env& env, const ServerOptions& options, const ServerHooks& hooks,
                   StrangerLog& strangers)
    : env_(env),
      options_(options),
      hooks_(hooks),
      strangers_(strangers),
      registry_(env),
      target_(env, registry_, with_log(options_.target)) {
  registry_.on_drive_failure([this](const nvme::DriveFailure& failure) { log_failure(failure); });
  registry_.on_refused_host([this](const nvme::RefusedHost& host) { strangers_.note(host); });
  registry_.on_authentication(
      [this](const nvme::AuthenticationFailure& failure) { strangers_.note(failure); });
}

// One line a second for a namespace, however many requests fail.
void NvmeDoor::log_failure(const nvme::DriveFailure& failure) {
  Time& quiet_until = quiet_until_[{failure.nqn, failure.nsid}];
  if (env_.now() < quiet_until) return;
  quiet_until = env_.now() + 1_s;
  hooks_.say(config::LogLevel::kError,
             fmt::format("namespace {} of {} fails: {}: {}", failure.nsid, failure.nqn,
                         failure.error.text(), next_after(failure.error)));
}

fabric::TargetOptions NvmeDoor::with_log(fabric::TargetOptions options) {
  options.on_fault = [this](const fabric::HostFault& fault) { strangers_.note(fault); };
  options.on_refused = [this](const stream::RefusedConnection& connection) {
    strangers_.note(connection, "host");
  };
  return options;
}

Attempt<void> NvmeDoor::take_tls_keys(const SubsystemConfig& subsystem) {
  nvme::TlsKeys keys;
  for (const HostOptions& host : subsystem.hosts) {
    if (host.tls_key.empty()) continue;
    if (!hooks_.read_tls_key)
      return refuse("keys are configured, and there is no way to read them");
    Attempt<nvme::TlsKey> key = hooks_.read_tls_key(host.tls_key);
    if (!key) return std::unexpected(key.error());
    const nvme::TlsNames names{.host = host.nqn, .subsystem = subsystem.options.nqn};
    if (const auto psk = key->psk_of(names, nvme::TlsIdentityVersion::k1); !psk) {
      return refuse(fmt::format("{} cannot come through TLS: {}: give the host another name",
                                in_quotes(host.nqn), psk.error().what()));
    }
    keys.emplace(host.nqn, std::move(*key));
  }
  Result<void> set = registry_.set_tls(subsystem.options.nqn, std::move(keys));
  if (!set) return refuse(fmt::format("{}: {}", subsystem.options.nqn, set.error().text()));
  return {};
}

Attempt<void> NvmeDoor::demand_authentication(const SubsystemConfig& subsystem) {
  if (subsystem.hosts.empty()) return {};
  nvme::AuthPolicy policy;
  policy.means = subsystem.means;
  policy.timeout = subsystem.authentication_timeout;
  for (const HostOptions& host : subsystem.hosts) {
    if (host.key.empty()) continue;
    if (!hooks_.read_key) return refuse("keys are configured, and there is no way to read them");
    Attempt<nvme::AuthSecret> key = hooks_.read_key(host.key);
    if (!key) return std::unexpected(key.error());
    nvme::AuthKeys keys{.host = std::move(*key), .controller = {}};
    if (!host.controller_key.empty()) {
      Attempt<nvme::AuthSecret> controller = hooks_.read_key(host.controller_key);
      if (!controller) return std::unexpected(controller.error());
      keys.controller = std::move(*controller);
    }
    policy.hosts.emplace(host.nqn, std::move(keys));
  }
  Result<void> set = registry_.set_authentication(subsystem.options.nqn, std::move(policy));
  if (!set) return refuse(fmt::format("{}: {}", subsystem.options.nqn, set.error().text()));
  return {};
}

Attempt<void> NvmeDoor::add_subsystem(const SubsystemConfig& subsystem,
                                      const nvme::SubsystemOptions& options) {
  if (Result<void> added = registry_.add_subsystem(options); !added) {
    return std::unexpected(cannot_add_subsystem(options.nqn, added.error()));
  }
  if (Attempt<void> done = demand_authentication(subsystem); !done) return done;
  return take_tls_keys(subsystem);
}

// A listener for nobody is a mistake.
Attempt<void> NvmeDoor::check_listener(const ListenerOptions& listener) const {
  for (const std::string& nqn : listener.subsystems) {
    if (const Attempt<std::string> known = find(nqn); !known) {
      return refuse(fmt::format("the listener at {} is for a subsystem that is not there: {}",
                                listener.address.text(), known.error().text));
    }
  }
  if (!listener.tls) return {};
  for (const SubsystemConfig& subsystem : options_.subsystems) {
    const auto& only = listener.subsystems;
    if (!only.empty() && std::ranges::find(only, subsystem.options.nqn) == only.end()) continue;
    const auto has_key = [](const HostOptions& host) { return !host.tls_key.empty(); };
    if (std::ranges::any_of(subsystem.hosts, has_key)) return {};
  }
  return refuse(
      fmt::format("the listener at {} demands TLS, and no host has a key for it: make one with "
                  "'cairn key new tls --output FILE' and give it to a host with tls_key in "
                  "[[subsystem.host]], or with --tls-key HOSTNQN=FILE",
                  listener.address.text()));
}

Result<env::Address> NvmeDoor::listen_at(const env::Address& at, const ListenerOptions& listener) {
  return target_.listen(at, listener.tls ? fabric::Channel::kTls : fabric::Channel::kPlain);
}

task::Task<Attempt<void>> NvmeDoor::listen() {
  for (const ListenerOptions& listener : options_.listeners) {
    if (Attempt<void> checked = check_listener(listener); !checked) co_return checked;
    Result<env::Address> at = listener.address;
    HolderRetry retry(env_);
    for (bool again = true; again;) {
      at = listen_at(listener.address, listener);
      again = co_await retry.after(at);
    }
    if (!at && at.error() == Errc::kExists && listener.or_any_port) {
      hooks_.say(config::LogLevel::kInfo,
                 fmt::format("{} is taken: another port is used", listener.address.text()));
      env::Address other = listener.address;
      other.port = 0;
      at = listen_at(other, listener);
    }
    if (!at) co_return std::unexpected(cannot_listen(listener.address, at.error()));
    listening_.push_back(*at);
    registry_.add_port({.port_id = static_cast<uint16_t>(listening_.size()),
                        .listen = *at,
                        .advertise = listener.advertise,
                        .subsystems = listener.subsystems.empty() ? names() : listener.subsystems,
                        .tls = listener.tls});
  }
  co_return Attempt<void>{};
}

task::Task<void> NvmeDoor::close() {
  const Time until = env_.now() + options_.drain_timeout;
  co_await target_.drain(until);
  if (const uint64_t left = target_.connections(); left > 0) {
    hooks_.say(config::LogLevel::kWarn,
               fmt::format("{} connections had commands in flight after {}: they are ended", left,
                           text(options_.drain_timeout)));
  }
  co_await target_.close();
  // With time of its own: what hosts were told is flushed by now, the rest is worth a moment.
  task::Deadline deadline(env_, env_.now() + options_.drain_timeout);
  const std::vector<nvme::DriveFailure> failed = co_await registry_.flush(deadline.token());
  for (const nvme::DriveFailure& each : failed) log_failure(each);
  co_await registry_.close();
}

// Those of controllers of virtual machines are not among them, and nobody's over the network.
std::vector<std::string> NvmeDoor::names() const {
  std::vector<std::string> names;
  names.reserve(options_.subsystems.size());
  for (const SubsystemConfig& each : options_.subsystems) names.push_back(each.options.nqn);
  return names;
}

Attempt<std::string> NvmeDoor::find(std::string_view nqn) const {
  const std::vector<std::string> names = this->names();
  if (nqn.empty() && names.size() == 1) return names.front();
  if (nqn.empty()) {
    return refuse(fmt::format("this server serves {} subsystems: say which with --nqn ({})",
                              names.size(), comma_list(names)));
  }
  if (std::ranges::find(names, nqn) != names.end()) return std::string(nqn);
  return refuse(fmt::format("this server does not serve {}{} (it serves {})", in_quotes(nqn),
                            did_you_mean(nqn, names), comma_list(names)));
}

std::optional<rack::Endpoint> NvmeDoor::endpoint_of(const std::string& nqn) const {
  for (size_t i = 0; i < listening_.size(); ++i) {
    const ListenerOptions& listener = options_.listeners[i];
    const std::vector<std::string>& only = listener.subsystems;
    if (!only.empty() && std::ranges::find(only, nqn) == only.end()) continue;
    const env::Address& at = listener.advertise.port != 0 ? listener.advertise : listening_[i];
    if (std::ranges::all_of(at.ip, [](uint8_t byte) { return byte == 0; })) continue;
    return rack::Endpoint{.address = at.text(), .nqn = nqn, .tls = listener.tls};
  }
  return std::nullopt;
}

}  // namespace cairn::server
