// SPDX-License-Identifier: Apache-2.0
#include "world/sim/network.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/list.h"
#include "env/address.h"
#include "env/env.h"
#include "env/stream.h"
#include "world/sim/circuit.h"
#include "world/sim/connecting.h"
#include "world/sim/core.h"
#include "world/sim/event_queue.h"
#include "world/sim/listener.h"
#include "world/sim/machine.h"
#include "world/sim/model/model.h"
#include "world/sim/process.h"
#include "world/sim/world.h"

namespace cairn::sim {

namespace {
constexpr uint16_t kPortFirst = 32768;  // as Linux chooses them
constexpr uint16_t kPortLast = 60999;
}  // namespace

const EventKind Network::kUnclog("net.unclog", &Network::on_unclog);

Link::Link(Machine& sender, Machine& receiver)
    : from(sender), to(receiver), unclog(Network::kUnclog, receiver.origin(), *this) {}

bool Link::is_loopback() const { return from.is_beside(to); }

// What the network knows of one machine.
struct Network::Host {
  explicit Host(Machine& it) : machine(it) {}
  Machine& machine;
  std::vector<std::unique_ptr<Link>> links;  // from here, by the id of the other
  List<SimListener, SimListener> listeners;
  uint16_t next_port = kPortFirst;
};

Network::Network(World& world)
    : world_(world),
      rng_(world.make_rng("network")),
      faults_(world.options().network.faults),
      model_event_(*this) {
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
  if (link == nullptr) link = std::make_unique<Link>(from, to);
  return *link;
}

void Network::machine_is_up(Machine& machine) {
  for (auto& other : hosts_) release(link(other->machine, machine), options().retransmit_max);
}

void Network::release(Link& link, Duration spread) {
  List<Travel, Link> moving;
  while (Travel* travel = link.held.pop_front()) moving.push_back(*travel);
  while (Travel* travel = moving.pop_front()) {
    const auto late = static_cast<int64_t>(rng_.below(spread.ns + 1));
    world_.schedule(*travel, world_.now() + Duration{late});
  }
}

void Network::block(Machine& from, Machine& to) {
  CHECK(&from != &to, "a node cannot be cut off from itself");
  if (from.is_beside(to)) return;
  from.record("net.partition_to", to.id());
  link(from, to).is_blocked = true;
}

void Network::clog(Machine& from, Machine& to, Duration duration) {
  if (&from != &to && from.is_beside(to)) return;
  from.record("net.clog_to", to.id(), static_cast<uint64_t>(duration.ns));
  Link& clogged = link(from, to);
  clogged.clogged_until = std::max(clogged.clogged_until, world_.now() + duration);
  clogged.unclog.cancel();
  world_.schedule(clogged.unclog, clogged.clogged_until);
}

void Network::on_unclog(Event& event) {
  Link& link = static_cast<Link::Unclog&>(event).link;
  if (!link.is_blocked) link.from.network().release(link, {});
}

void Network::heal(Machine& from, Machine& to) {
  Link& healed = link(from, to);
  if (healed.is_blocked) from.record("net.heal_to", to.id());
  healed.is_blocked = false;
  healed.clogged_until = world_.now();
  healed.unclog.cancel();
  release(healed, options().retransmit_max);
}

void Network::heal_all() {
  for (auto& from : hosts_) {
    for (auto& to : hosts_) heal(from->machine, to->machine);
  }
}

void Network::reset_connections(Machine& a, Machine& b) {
  a.record("net.reset_all_with", b.id());
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
  if (!is_lost(link)) return true;
  link.held.push_back(travel);
  return false;
}

Time Network::arrival_time(const Link& link, uint64_t bytes) {
  const Time at = model_->deliver(world_.now(), link.from.box().id(), link.to.box().id(), bytes);
  return std::max(world_.now(), at) + draw_delay(link);
}

Duration Network::draw_delay(const Link& link) {
  Duration delay;
  if (options().jitter_max.ns > 0) {
    delay = delay + Duration{static_cast<int64_t>(rng_.below(options().jitter_max.ns + 1))};
  }
  if (draw(link, faults_.delay)) {
    delay = delay + Duration{static_cast<int64_t>(rng_.below(faults_.delay_max.ns + 1))};
  }
  if (draw(link, faults_.clog)) {
    clog(link.from, link.to, Duration{static_cast<int64_t>(rng_.below(faults_.clog_max.ns + 1))});
  }
  return delay;
}

Network::Sent Network::send(const Link& link, uint64_t bytes, Pipe& pipe) {
  const uint64_t tag = travelling_.take();
  const std::optional<Time> at =
      model_->send(world_.now(), link.from.box().id(), link.to.box().id(), bytes, tag);
  const Duration slower = draw_delay(link);
  if (at) {
    travelling_.give_back(tag);
    return {.arrival = std::max(world_.now(), *at) + slower};
  }
  travelling_.wait(tag, pipe);
  model_event_.cancel();
  world_.schedule(model_event_, world_.now());
  return {.tag = tag, .slower = slower};
}

void Network::advance_model() {
  arrived_.clear();
  model_->advance(world_.now(), arrived_);
  for (const uint64_t tag : arrived_) {
    if (Pipe* const pipe = travelling_.give_back(tag)) pipe->arrived(tag);
  }
  model_event_.cancel();
  if (model_->next_event() != Time::never()) world_.schedule(model_event_, model_->next_event());
}

const EventKind Network::kModelEvent("network.model", [](Event& event) {
  static_cast<ModelEvent&>(event).network.advance_model();
});
const Origin Network::kOrigin;

size_t Network::cut_segment(size_t bytes) {
  const size_t whole = std::min<size_t>(bytes, options().segment_size_max);
  const double probability = faults_.segment;
  return probability > 0 && rng_.bernoulli(probability) ? rng_.between(1, whole) : whole;
}

bool Network::is_ours(Machine& machine, const env::Address& at) {
  if (at.family == env::Address::Family::kLocal) return true;
  if (std::ranges::all_of(at.ip, [](uint8_t byte) { return byte == 0; })) return true;
  const Machine* found = find_machine(machine, at);
  return found != nullptr && found->is_beside(machine);
}

Machine& Network::who_listens(Machine& machine, const env::Address& at) {
  if (machine.residents().size() == 1) return machine;
  for (Machine* resident : machine.residents()) {
    bool serves = false;
    host(*resident).listeners.for_each(
        [&](SimListener& listener) { serves = serves || listener.serves(at); });
    if (serves) return *resident;
  }
  return machine;
}

Machine* Network::find_machine(Machine& from, const env::Address& to) {
  if (to.family == env::Address::Family::kLocal) return &who_listens(from, to);
  const bool is_any = std::ranges::all_of(to.ip, [](uint8_t byte) { return byte == 0; });
  if (is_any) return &who_listens(from, to);
  if (to.family == env::Address::Family::kIp6) {
    std::array<uint8_t, 16> loopback{};
    loopback[15] = 1;
    return to.ip == loopback ? &who_listens(from, to) : nullptr;
  }
  if (to.ip[0] == 127) return &who_listens(from, to);
  if (to.ip[0] != 10) return nullptr;
  const uint32_t number = uint32_t{to.ip[1]} << 16 | uint32_t{to.ip[2]} << 8 | to.ip[3];
  if (number == 0 || number > hosts_.size()) return nullptr;
  return &who_listens(hosts_[number - 1]->machine, to);
}

SimListener* Network::find_listener(Machine& machine, const env::Address& at) {
  SimListener* found = nullptr;
  uint64_t count = 0;
  host(machine).listeners.for_each([&](SimListener& listener) {
    // Those who share a port take turns at random: each of the n so far is kept with 1/n.
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
  bool is_taken = false;
  for (const Machine* resident : core.machine().residents()) {
    host(*resident).listeners.for_each([&](SimListener& listener) {
      is_taken = is_taken || listener.conflicts_with(local, options);
    });
  }
  if (is_taken) return fail(Errc::kExists, "listen: the address is in use");
  auto listener = std::make_unique<SimListener>(core, local, options);
  host(core.machine()).listeners.push_back(*listener);
  return listener;
}

uint16_t Network::pick_port(Machine& machine) {
  Host& here = host(machine.box());
  while (true) {
    const uint16_t port = here.next_port;
    here.next_port = port == kPortLast ? kPortFirst : static_cast<uint16_t>(port + 1);
    bool is_taken = false;
    for (const Machine* resident : machine.residents()) {
      host(*resident).listeners.for_each(
          [&](SimListener& listener) { is_taken = is_taken || listener.local().port == port; });
    }
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
  const std::optional<WireCut>& cut = options().cut;
  if (cut && cut->connection == circuits_made_++) circuit->cut(*cut);
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
