// SPDX-License-Identifier: Apache-2.0
#include "server/serve/box.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/words.h"
#include "nvme/format/limits.h"
#include "nvme/format/nqn.h"
#include "server/common/advice.h"
#include "server/common/host_nqn.h"
#include "server/common/patience.h"
#include "server/control/health_json.h"
#include "task/deadline.h"

namespace cairn::server {

namespace {

Problem cannot_add_subsystem(std::string_view nqn, const Error& error) {
  return {fmt::format("subsystem {} cannot be served: {}: name it like nqn.2026-11.io.cairn:NAME",
                      in_quotes(nqn), error.text())};
}

// The nsids of a configuration: those that are given, and for the others the lowest that are free
// in their order. So they are the same at each start, whatever was added in between.
Attempt<void> number_namespaces(BoxSubsystem& subsystem) {
  std::set<uint32_t> taken;
  for (const nvme::NamespaceOptions& each : subsystem.namespaces) {
    if (each.nsid != 0 && !taken.insert(each.nsid).second) {
      return refuse(fmt::format("namespace {} of {} is there twice: give each its own nsid",
                                each.nsid, subsystem.options.nqn));
    }
  }
  uint32_t next = 1;
  for (nvme::NamespaceOptions& each : subsystem.namespaces) {
    if (each.nsid != 0) continue;
    while (!taken.insert(next).second) ++next;
    each.nsid = next;
  }
  return {};
}

}  // namespace

Box::Box(env::Env& env, BoxOptions options, BoxChanges changes, BoxHooks hooks)
    : env_(env),
      started_(env.now()),
      options_(std::move(options)),
      changes_(std::move(changes)),
      hooks_(std::move(hooks)),
      stacks_(env),
      strangers_(env, hooks_.log),
      registry_(env),
      target_(env, registry_, with_log(options_.target)),
      watch_(env, *this,
             [this](drive::Health health, std::string_view line) { log(level_of(health), line); }) {
  if (!options_.reservations.empty()) reservations_.emplace(env, options_.reservations);
  registry_.on_drive_failure([this](const nvme::DriveFailure& failure) { log_failure(failure); });
  registry_.on_refused_host([this](const nvme::RefusedHost& host) { strangers_.note(host); });
  registry_.on_authentication(
      [this](const nvme::AuthenticationFailure& failure) { strangers_.note(failure); });
}

// One line a second for a namespace, however many requests fail.
void Box::log_failure(const nvme::DriveFailure& failure) {
  Time& quiet_until = quiet_until_[{failure.nqn, failure.nsid}];
  if (env_.now() < quiet_until) return;
  quiet_until = env_.now() + 1_s;
  log(config::LogLevel::kError,
      fmt::format("namespace {} of {} fails: {}: {}", failure.nsid, failure.nqn,
                  failure.error.text(), next_after(failure.error)));
}

fabric::TargetOptions Box::with_log(fabric::TargetOptions options) {
  options.on_fault = [this](const fabric::HostFault& fault) { strangers_.note(fault); };
  options.on_refused = [this](const stream::RefusedConnection& connection) {
    strangers_.note(connection, "host");
  };
  return options;
}

Attempt<void> Box::take_tls_keys(const BoxSubsystem& subsystem) {
  nvme::TlsKeys keys;
  for (const BoxHost& host : subsystem.hosts) {
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

Attempt<void> Box::demand_authentication(const BoxSubsystem& subsystem) {
  if (subsystem.hosts.empty()) return {};
  nvme::AuthPolicy policy;
  policy.means = subsystem.means;
  policy.timeout = subsystem.authentication_timeout;
  for (const BoxHost& host : subsystem.hosts) {
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

task::Task<Attempt<void>> Box::open() {
  Attempt<void> done = add_subsystems();
  for (const BoxSubsystem& subsystem : options_.subsystems) {
    if (done) done = co_await add_namespaces(subsystem);
    if (done) done = co_await set_ana_states(subsystem);
  }
  const bool serves_any = std::ranges::any_of(options_.subsystems, [this](const auto& each) {
    return !registry_.namespaces(each.options.nqn).empty();
  });
  if (done && !serves_any && !failed_.empty()) {
    done = refuse(failed_.begin()->second.problem);
  }
  if (done) done = co_await listen();
  if (!done) co_return done;
  co_await watch_.look();
  watch_.start();
  const bool retries = std::ranges::any_of(
      failed_, [](const auto& each) { return each.second.options.source == nullptr; });
  if (retries) reopening_.spawn(reopen_all());
  co_return done;
}

Attempt<void> Box::add_subsystems() {
  for (BoxSubsystem& subsystem : options_.subsystems) {
    if (Attempt<void> numbered = number_namespaces(subsystem); !numbered) return numbered;
    nvme::SubsystemOptions options = subsystem.options;
    const auto change = changes_.find(options.nqn);
    if (change != changes_.end() && change->second.access) {
      options.allow_any_host = change->second.access->any;
      options.hosts = change->second.access->hosts;
    }
    if (reservations_) {
      options.keep_reservations = true;
      options.reservation_store = &*reservations_;
    }
    if (Result<void> added = registry_.add_subsystem(options); !added) {
      return std::unexpected(cannot_add_subsystem(options.nqn, added.error()));
    }
    if (Attempt<void> done = demand_authentication(subsystem); !done) return done;
    if (Attempt<void> done = take_tls_keys(subsystem); !done) return done;
  }
  for (const auto& [nqn, change] : changes_) {
    const bool known = std::ranges::any_of(
        options_.subsystems, [&nqn](const BoxSubsystem& each) { return each.options.nqn == nqn; });
    if (!known) {
      log(config::LogLevel::kWarn,
          fmt::format("changes are kept for {}, which is not served", nqn));
    }
  }
  return {};
}

task::Task<Attempt<void>> Box::set_ana_states(const BoxSubsystem& subsystem) {
  const std::string& nqn = subsystem.options.nqn;
  std::map<uint32_t, nvme::AnaState> states = changes_[nqn].ana;
  states.insert(subsystem.ana.begin(), subsystem.ana.end());  // where nothing was changed
  for (const auto& [group, state] : states) {
    Result<void> set = co_await registry_.set_ana_state(nqn, group, state);
    if (!set) {
      co_return refuse(fmt::format("ANA group {} of {}: {}", group, nqn, set.error().text()));
    }
  }
  co_return Attempt<void>{};
}

// A listener for nobody is a mistake.
Attempt<void> Box::check_listener(const BoxListener& listener) const {
  for (const std::string& nqn : listener.subsystems) {
    if (const Attempt<std::string> known = find(nqn); !known) {
      return refuse(fmt::format("the listener at {} is for a subsystem that is not there: {}",
                                listener.address.text(), known.error().text));
    }
  }
  if (!listener.tls) return {};
  for (const BoxSubsystem& subsystem : options_.subsystems) {
    const auto& only = listener.subsystems;
    if (!only.empty() && std::ranges::find(only, subsystem.options.nqn) == only.end()) continue;
    const auto has_key = [](const BoxHost& host) { return !host.tls_key.empty(); };
    if (std::ranges::any_of(subsystem.hosts, has_key)) return {};
  }
  return refuse(
      fmt::format("the listener at {} demands TLS, and no host has a key for it: make one with "
                  "'cairn key new tls --output FILE' and give it to a host with tls_key in "
                  "[[subsystem.host]], or with --tls-key HOSTNQN=FILE",
                  listener.address.text()));
}

Result<env::Address> Box::listen_at(const env::Address& at, const BoxListener& listener) {
  return target_.listen(at, listener.tls ? fabric::Channel::kTls : fabric::Channel::kPlain);
}

task::Task<Attempt<void>> Box::listen() {
  for (const BoxListener& listener : options_.listeners) {
    if (Attempt<void> checked = check_listener(listener); !checked) co_return checked;
    Result<env::Address> at = listener.address;
    Patience patience(env_);
    for (bool again = true; again;) {
      at = listen_at(listener.address, listener);
      again = co_await patience.after(at);
    }
    if (!at && at.error() == Errc::kExists && listener.or_any_port) {
      log(config::LogLevel::kInfo,
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
                        .subsystems = listener.subsystems,
                        .tls = listener.tls});
  }
  co_return Attempt<void>{};
}

task::Task<void> Box::close() {
  closing_.request();
  co_await reopening_.close();
  co_await watch_.close();
  const Time until = env_.now() + options_.drain_timeout;
  co_await target_.drain(until);
  if (const uint64_t left = target_.connections(); left > 0) {
    log(config::LogLevel::kWarn,
        fmt::format("{} connections had commands in flight after {}: they are ended", left,
                    text(options_.drain_timeout)));
  }
  co_await target_.close();
  // With time of its own: what hosts were told is flushed by now, the rest is worth a moment.
  task::Deadline deadline(env_, env_.now() + options_.drain_timeout);
  const std::vector<nvme::DriveFailure> failed = co_await registry_.flush(deadline.token());
  for (const nvme::DriveFailure& each : failed) log_failure(each);
  co_await registry_.close();
  co_await stacks_.close_all();
}

Attempt<std::string> Box::find(std::string_view nqn) const {
  const std::vector<nvme::SubsystemOptions> all = registry_.subsystems();
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const nvme::SubsystemOptions& each : all) names.push_back(each.nqn);
  if (nqn.empty() && names.size() == 1) return names.front();
  if (nqn.empty()) {
    return refuse(fmt::format("this box serves {} subsystems: say which with --nqn ({})",
                              names.size(), comma_list(names)));
  }
  if (std::ranges::find(names, nqn) != names.end()) return std::string(nqn);
  return refuse(fmt::format("this box does not serve {}{} (it serves {})", in_quotes(nqn),
                            did_you_mean(nqn, names), comma_list(names)));
}

task::Task<Attempt<Box::Turn>> Box::take_turn(std::string nqn) {
  Result<void> acquired = co_await changing_.acquire();
  if (!acquired) co_return refuse(acquired.error().text());
  task::Units held(changing_, 1);
  Attempt<std::string> found = find(nqn);
  if (!found) co_return std::unexpected(found.error());
  co_return Turn{std::move(held), std::move(*found)};
}

Attempt<void> Box::save() const { return hooks_.keep ? hooks_.keep(changes_) : Attempt<void>{}; }

// `what` was done, and holds whether it can be kept or not.
Attempt<void> Box::keep(std::string_view what) {
  log(config::LogLevel::kInfo, what);
  if (const Attempt<void> kept = save(); !kept) {
    std::string text =
        fmt::format("{}, but this will not survive a restart: {}", what, kept.error().text);
    log(config::LogLevel::kError, text);
    return refuse(std::move(text));
  }
  return {};
}

uint32_t Box::next_nsid(const std::string& nqn) const {
  std::set<uint32_t> taken;
  if (const auto configured = configured_.find(nqn); configured != configured_.end()) {
    taken = configured->second;
  }
  for (const nvme::NamespaceInfo& each : registry_.namespaces(nqn)) {
    taken.insert(each.options.nsid);
  }
  for (const auto& [name, failed] : failed_) {
    if (name.first == nqn) taken.insert(name.second);
  }
  const auto changes = changes_.find(nqn);
  const uint32_t last = changes == changes_.end() ? 0 : changes->second.last_nsid;
  for (uint32_t i = 0; i < nvme::kNsidMax; ++i) {
    const uint32_t nsid = (last + i) % nvme::kNsidMax + 1;
    if (!taken.contains(nsid)) return nsid;
  }
  return 0;  // the registry says that there are too many
}

task::Task<Attempt<uint32_t>> Box::serve_added(const std::string& nqn,
                                               nvme::NamespaceOptions options, bool format) {
  const bool is_counted = options.nsid == 0;
  if (is_counted) options.nsid = next_nsid(nqn);
  if (const auto failed = failed_.find({nqn, options.nsid}); failed != failed_.end()) {
    co_return refuse(
        fmt::format("namespace {} of {} is there, and its drive could not be opened ({}): try it "
                    "again with 'cairn box ns retry --nsid {}', or remove it first",
                    options.nsid, nqn, last_line(failed->second.problem), options.nsid));
  }
  Attempt<std::unique_ptr<StackSource>> stack = co_await stacks_.open(options, format);
  if (!stack) co_return std::unexpected(stack.error());
  const Result<uint32_t> nsid = co_await registry_.add_namespace(nqn, options);
  if (!nsid) {
    co_await stacks_.drop(std::move(*stack));
    co_return std::unexpected(cannot_serve(options, nsid.error()));
  }
  stacks_.keep(nqn, *nsid, std::move(*stack));
  watch_.start();
  for (const nvme::NamespaceInfo& each : registry_.namespaces(nqn)) {
    if (each.options.nsid != *nsid) continue;
    nvme::NamespaceOptions& added = changes_[nqn].added[*nsid];
    added = each.options;
    added.source = nullptr;
  }
  uint32_t& last = changes_[nqn].last_nsid;
  last = is_counted ? *nsid : std::max(last, *nsid);
  co_return *nsid;
}

task::Task<Attempt<uint32_t>> Box::add_namespace(std::string nqn, nvme::NamespaceOptions options,
                                                 bool format) {
  Attempt<Turn> turn = co_await take_turn(std::move(nqn));
  if (!turn) co_return std::unexpected(turn.error());
  const std::string drive = options.drive_text();
  const Attempt<uint32_t> nsid = co_await serve_added(turn->nqn, std::move(options), format);
  if (!nsid) co_return nsid;
  const Attempt<void> kept =
      keep(fmt::format("namespace {} of {} is added: {}", *nsid, turn->nqn, drive));
  if (!kept) co_return std::unexpected(kept.error());
  co_return *nsid;
}

task::Task<std::optional<drive::LayerInfo>> Box::layers(std::string nqn, uint32_t nsid) {
  // Nobody removes it meanwhile.
  const Attempt<Turn> turn = co_await take_turn(std::move(nqn));
  StackSource* stack = turn ? stacks_.find(turn->nqn, nsid) : nullptr;
  if (stack == nullptr) co_return std::nullopt;
  drive::LayerInfo top = co_await stack->layers(env_);
  co_return top;
}

task::Task<Result<void>> Box::stop_serving(const std::string& nqn, uint32_t nsid) {
  Result<void> removed;
  if (failed_.erase({nqn, nsid}) == 0) {
    removed = co_await registry_.remove_namespace(nqn, nsid);
    if (!removed) co_return removed;
    co_await stacks_.close(nqn, nsid);
  }
  if (!reservations_) co_return removed;
  const Result<void> forgotten = co_await reservations_->forget(nqn, nsid);
  if (!forgotten) {
    log(config::LogLevel::kWarn,
        fmt::format("reservations stay in {}: {}", reservations_->path(nqn, nsid),
                    forgotten.error().text()));
  }
  co_return removed;
}

task::Task<Attempt<void>> Box::remove_namespace(std::string nqn, uint32_t nsid) {
  Attempt<Turn> turn = co_await take_turn(std::move(nqn));
  if (!turn) co_return std::unexpected(turn.error());
  if (Attempt<void> free = check_free(turn->nqn, nsid); !free) co_return free;
  const Result<void> removed = co_await stop_serving(turn->nqn, nsid);
  if (!removed) co_return std::unexpected(no_such_namespace(turn->nqn, nsid));
  SubsystemChanges& changes = changes_[turn->nqn];
  const bool was_added = changes.added.erase(nsid) > 0;
  changes.resized.erase(nsid);
  if (!was_added && configured_[turn->nqn].contains(nsid)) changes.removed.insert(nsid);
  co_return keep(fmt::format("namespace {} of {} is removed", nsid, turn->nqn));
}

task::Task<Attempt<void>> Box::set_ana_state(std::string nqn, uint32_t group,
                                             nvme::AnaState state) {
  Attempt<Turn> turn = co_await take_turn(std::move(nqn));
  if (!turn) co_return std::unexpected(turn.error());
  Result<void> set = co_await registry_.set_ana_state(turn->nqn, group, state);
  if (!set)
    co_return refuse(fmt::format("ANA group {} cannot be set: {}", group, set.error().text()));
  changes_[turn->nqn].ana[group] = state;
  co_return keep(fmt::format("ANA group {} of {} is changed", group, turn->nqn));
}

HostAccess Box::access_of(std::string_view nqn) const {
  for (const nvme::SubsystemOptions& each : registry_.subsystems()) {
    if (each.nqn == nqn) return {.any = each.allow_any_host, .hosts = each.hosts};
  }
  return {};
}

Attempt<void> Box::set_access(const std::string& nqn, HostAccess access) {
  if (Result<void> set = registry_.set_hosts(nqn, access.any, access.hosts); !set) {
    return refuse(set.error().text());
  }
  const std::string what = access.any
                               ? fmt::format("every host may use {}", nqn)
                               : fmt::format("{} hosts may use {}", access.hosts.size(), nqn);
  changes_[nqn].access = std::move(access);
  return keep(what);
}

task::Task<Attempt<void>> Box::allow_host(std::string nqn, std::string host) {
  Attempt<Turn> turn = co_await take_turn(std::move(nqn));
  if (!turn) co_return std::unexpected(turn.error());
  HostAccess access = access_of(turn->nqn);
  if (host == "any") {
    access = {};
  } else {
    if (Attempt<void> named = check_host_nqn(host); !named) co_return named;
    // The first name on the list closes the subsystem to all others.
    if (std::exchange(access.any, false)) access.hosts.clear();
    if (std::ranges::find(access.hosts, host) == access.hosts.end()) {
      if (access.hosts.size() >= kHostsMax) {
        co_return refuse(
            fmt::format("{} has {} hosts on its list, the most there can be: deny one first",
                        turn->nqn, kHostsMax));
      }
      access.hosts.push_back(std::move(host));
    }
  }
  co_return set_access(turn->nqn, std::move(access));
}

task::Task<Attempt<void>> Box::deny_host(std::string nqn, std::string host) {
  Attempt<Turn> turn = co_await take_turn(std::move(nqn));
  if (!turn) co_return std::unexpected(turn.error());
  HostAccess access = access_of(turn->nqn);
  if (host == "any") {
    access.hosts.clear();
    access.any = false;
  } else if (access.any) {
    co_return refuse(
        fmt::format("{} is open to every host: name those that may use it with 'cairn box hosts "
                    "allow', or close it with 'cairn box hosts deny --host any'",
                    turn->nqn));
  } else if (std::erase(access.hosts, host) == 0) {
    co_return refuse(fmt::format("{} is not on the list of {}{}", in_quotes(host), turn->nqn,
                                 did_you_mean(host, access.hosts)));
  }
  co_return set_access(turn->nqn, std::move(access));
}

}  // namespace cairn::server
