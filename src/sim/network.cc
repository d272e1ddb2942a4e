// SPDX-License-Identifier: Apache-2.0
#include "sim/network.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "sim/connecting.h"
#include "sim/core.h"
#include "sim/machine.h"

namespace cairn::sim {

namespace {
constexpr uint16_t kPortFirst = 32768;  // as Linux chooses them
constexpr uint16_t kPortLast = 60999;
}  // namespace

// What the network knows of one machine.
struct Network::Host {
  explicit Host(Machine& it) : machine(it) {}
  Machine& machine;
  std::vector<std::unique_ptr<Link>> links;  // from here, by the id of the other
  List<SimListener, SimListener> listeners;
  uint16_t next_port = kPortFirst;
};

Network::Network(World& world) : world_(world), rng_(world.make_rng("network")), model_(nullptr) {
  const auto& make = world.options().network.model;
  model_ = make ? make(rng_.next()) : std::make_unique<SimpleNetwork>();
}

Network::~Network() {
  while (Connecting* connecting = connecting_.front()) remove(*connecting);
  while (Circuit* circuit = circuits_.pop_front()) delete circuit;
}

void Network::add(Machine& machine) {
  CHECK(machine.id() == hosts_.size());
  hosts_.push_back(std::make_unique<Host>(machine));
}

Network::Host& Network::host(const Machine& machine) { return *hosts_[machine.id()]; }

Link& Network::link(Machine& from, Machine& to) {
  auto& links = host(from).links;
  if (links.size() <= to.id()) links.resize(hosts_.size());
  std::unique_ptr<Link>& link = links[to.id()];
  if (link == nullptr) link = std::unique_ptr<Link>(new Link{from, to, false, {}, {}});
  return *link;
}

void Network::machine_is_up(Machine& machine) {
  for (auto& other : hosts_) release(link(other->machine, machine));
}

void Network::release(Link& link) {
  List<Travel, Link> moving;
  while (Travel* travel = link.held.pop_front()) moving.push_back(*travel);
  while (Travel* travel = moving.pop_front()) {
    const auto late = static_cast<int64_t>(rng_.below(options().retransmit_max.ns + 1));
    world_.schedule(*travel, world_.now() + Duration{late});
  }
}

void Network::block(Machine& from, Machine& to) {
  CHECK(&from != &to, "a node cannot be cut off from itself");
  link(from, to).is_blocked = true;
}

void Network::clog(Machine& from, Machine& to, Duration duration) {
  Link& clogged = link(from, to);
  clogged.clogged_until = std::max(clogged.clogged_until, world_.now() + duration);
}

void Network::heal(Machine& from, Machine& to) {
  Link& healed = link(from, to);
  healed.is_blocked = false;
  healed.clogged_until = world_.now();
  release(healed);
}

void Network::heal_all() {
  for (auto& from : hosts_) {
    for (auto& to : hosts_) heal(from->machine, to->machine);
  }
}

void Network::reset_connections(Machine& a, Machine& b) {
  circuits_.for_each([&](Circuit& circuit) {
    if (!circuit.joins(a, b)) return;
    circuit.client().break_off();
    circuit.server().break_off();
  });
}

bool Network::is_lost(const Link& link) const {
  return link.is_blocked || !link.to.is_up() || link.clogged_until > world_.now();
}

bool Network::let_pass(Link& link, Travel& travel) {
  if (link.is_blocked || !link.to.is_up()) {
    link.held.push_back(travel);
    return false;
  }
  if (link.clogged_until > world_.now()) {
    world_.schedule(travel, link.clogged_until);
    return false;
  }
  return true;
}

Time Network::arrival_time(const Link& link, uint64_t bytes) {
  const NetworkFaults& faults = options().faults;
  Time at =
      std::max(world_.now(), model_->deliver(world_.now(), link.from.id(), link.to.id(), bytes));
  if (options().jitter_max.ns > 0) {
    at = at + Duration{static_cast<int64_t>(rng_.below(options().jitter_max.ns + 1))};
  }
  if (draw(link, faults.delay)) {
    at = at + Duration{static_cast<int64_t>(rng_.below(faults.delay_max.ns + 1))};
  }
  if (draw(link, faults.clog)) {
    clog(link.from, link.to, Duration{static_cast<int64_t>(rng_.below(faults.clog_max.ns + 1))});
  }
  return at;
}

size_t Network::cut_segment(size_t bytes) {
  const size_t whole = std::min<size_t>(bytes, options().segment_size_max);
  const double chance = options().faults.segment;
  return chance > 0 && rng_.chance(chance) ? rng_.between(1, whole) : whole;
}

bool Network::is_ours(Machine& machine, const env::Address& at) {
  if (at.family == env::Address::Family::kLocal) return true;
  return std::ranges::all_of(at.ip, [](uint8_t byte) { return byte == 0; }) ||
         find_machine(machine, at) == &machine;
}

Machine* Network::find_machine(Machine& from, const env::Address& to) {
  if (to.family == env::Address::Family::kLocal) return &from;
  const bool is_any = std::ranges::all_of(to.ip, [](uint8_t byte) { return byte == 0; });
  if (is_any) return &from;
  if (to.family == env::Address::Family::kIp6) {
    std::array<uint8_t, 16> loopback{};
    loopback[15] = 1;
    return to.ip == loopback ? &from : nullptr;
  }
  if (to.ip[0] == 127) return &from;
  if (to.ip[0] != 10) return nullptr;
  const uint32_t number = uint32_t{to.ip[1]} << 16 | uint32_t{to.ip[2]} << 8 | to.ip[3];
  if (number == 0 || number > hosts_.size()) return nullptr;
  return &hosts_[number - 1]->machine;
}

SimListener* Network::find_listener(Machine& machine, const env::Address& at) {
  SimListener* found = nullptr;
  uint64_t count = 0;
  host(machine).listeners.for_each([&](SimListener& listener) {
    // Those who share a port take turns by chance: each of the n so far is kept with 1/n.
    if (listener.serves(at) && (++count == 1 || rng_.below(count) == 0)) found = &listener;
  });
  return found;
}

Result<std::unique_ptr<env::Listener>> Network::listen(Core& core, const env::Address& at,
                                                       const env::ListenOptions& options) {
  if (options.backlog <= 0) return fail(Errc::kInvalid, "listen: backlog");
  if (!is_ours(core.machine(), at)) return fail(Errc::kUnreachable, "listen: not our address");
  env::Address local = at;
  if (at.family != env::Address::Family::kLocal && at.port == 0) {
    local.port = pick_port(core.machine());
  }
  Host& here = host(core.machine());
  bool is_taken = false;
  here.listeners.for_each([&](SimListener& listener) {
    is_taken = is_taken || listener.conflicts_with(local, options);
  });
  if (is_taken) return fail(Errc::kExists, "listen: the address is in use");
  auto listener = std::make_unique<SimListener>(core, local, options);
  here.listeners.push_back(*listener);
  return listener;
}

uint16_t Network::pick_port(Machine& machine) {
  Host& here = host(machine);
  while (true) {
    const uint16_t port = here.next_port;
    here.next_port = port == kPortLast ? kPortFirst : static_cast<uint16_t>(port + 1);
    bool is_taken = false;
    here.listeners.for_each(
        [&](SimListener& listener) { is_taken = is_taken || listener.local().port == port; });
    if (!is_taken) return port;
  }
}

void Network::connect(Core& core, env::ConnectOp& op) {
  auto* connecting = new Connecting(core, op, find_machine(core.machine(), op.to()));
  connecting_.push_back(*connecting);
}

void Network::cancel_connect(env::ConnectOp& op) {
  std::bit_cast<Connecting*>(static_cast<uintptr_t>(op.note))->cancel_operation();
}

void Network::remove(Connecting& connecting) { delete &connecting; }

Circuit& Network::add_circuit(const Circuit::Side& client, const Circuit::Side& server) {
  auto* circuit = new Circuit(*this, client, server);
  circuits_.push_back(*circuit);
  return *circuit;
}

bool Network::enter_backlog(Circuit& circuit) {
  Endpoint& server = circuit.server();
  SimListener* listener = find_listener(server.machine(), server.local());
  if (listener == nullptr || !listener->has_room()) return false;
  listener->add(server);
  return true;
}

void Network::free_if_unowned(Circuit& circuit) {
  if (circuit.client().is_owned_ || circuit.server().is_owned_) return;
  delete &circuit;
}

env::Connection Network::make_handle(Endpoint& endpoint, Process& process) {
  endpoint.own(&process);
  return {this, std::bit_cast<intptr_t>(&endpoint)};
}

Endpoint& Network::endpoint_of(env::Connection& handle) {
  CHECK(handle.is_valid(), "a connection is opened once");
  return *std::bit_cast<Endpoint*>(static_cast<intptr_t>(handle.take()));
}

void Network::close_connection(int64_t handle) {
  std::bit_cast<Endpoint*>(static_cast<intptr_t>(handle))->close();
}

}  // namespace cairn::sim
