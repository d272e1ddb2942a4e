// SPDX-License-Identifier: Apache-2.0
// Network: links between machines, their faults, listening and connecting. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/list.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "env/stream.h"
#include "world/sim/circuit.h"
#include "world/sim/event_queue.h"
#include "world/sim/listener.h"
#include "world/sim/model/model.h"
#include "world/sim/model/tags.h"
#include "world/sim/options.h"
#include "world/sim/process.h"
#include "world/sim/world.h"

namespace cairn::sim {

class Connecting;
class Core;
class Machine;

// One direction between two machines.
struct Link {
  Link(Machine& sender, Machine& receiver);
  bool is_loopback() const;

  Machine& from;
  Machine& to;
  bool is_blocked = false;
  Time clogged_until;
  List<Travel, Link> held;
  struct Unclog : Event {
    Unclog(const EventKind& kind, const Origin& origin, Link& owner)
        : Event(kind, origin), link(owner) {}
    Link& link;
  } unclog;
};

class Network final : public env::Connection::Owner {
 public:
  explicit Network(World& world);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  World& world() { return world_; }
  const NetworkOptions& options() const { return world_.options().network; }
  Rng& rng() { return rng_; }

  // Machines come in the order of their ids and outlive the network's connections.
  void add(Machine& machine);
  void machine_is_up(Machine& machine);
  Link& link(Machine& from, Machine& to);

  // Faults on demand.
  void block(Machine& from, Machine& to);
  void clog(Machine& from, Machine& to, Duration duration);
  void heal(Machine& from, Machine& to);
  void heal_all();
  void reset_connections(Machine& a, Machine& b);
  // The probabilities; at first those of the options.
  const NetworkFaults& faults() const { return faults_; }
  void set_faults(const NetworkFaults& faults) { faults_ = faults; }

  // For cores.
  Result<std::unique_ptr<env::Listener>> listen(Core& core, const env::Address& at,
                                                const env::ListenOptions& options);
  void connect(Core& core, env::ConnectOp& op);
  void cancel_connect(env::ConnectOp& op);
  void close_connection(int64_t handle) override;
  env::Connection make_handle(Endpoint& endpoint, Process& process);
  static Endpoint& endpoint_of(env::Connection& handle);

  // For pipes, listeners and those who connect.
  Time arrival_time(const Link& link, uint64_t bytes);
  // Data of a pipe; what is known of when it arrives. Without an arrival the pipe is told, by the
  // tag, unless forget() comes first; it is `slower` then than the model says.
  struct Sent {
    std::optional<Time> arrival;
    uint64_t tag = 0;
    Duration slower;
  };
  Sent send(const Link& link, uint64_t bytes, Pipe& pipe);
  void forget(uint64_t tag) { travelling_.forget(tag); }
  // True: go on. False: the link has taken it until it is healed or no longer clogged.
  bool let_pass(Link& link, Travel& travel);
  bool is_lost(const Link& link) const;
  size_t cut_segment(size_t bytes);
  bool is_segment_broken(const Link& link) { return draw(link, faults_.reset); }
  bool is_segment_flipped(const Link& link) { return draw(link, faults_.bit_flip); }
  // The one that has the address as seen from `from`, or listens at it beside that one; null when
  // nobody has.
  Machine* find_machine(Machine& from, const env::Address& to);
  // One of the listeners at that address; null when there is none.
  SimListener* find_listener(Machine& machine, const env::Address& at);
  Circuit& add_circuit(const Circuit::Side& client, const Circuit::Side& server);
  // The client is there: the server's side goes to a listener. False: nobody takes it.
  bool enter_backlog(Circuit& circuit);
  // It never came to be.
  void discard(Circuit& circuit) { delete &circuit; }
  void free_if_unowned(Circuit& circuit);
  bool was_cut() const { return was_cut_; }
  void note_cut() { was_cut_ = true; }
  uint16_t pick_port(Machine& machine);
  void remove(Connecting& connecting);

 private:
  struct Host;
  friend struct Link;
  static const EventKind kUnclog;
  static void on_unclog(Event& event);
  Host& host(const Machine& machine);
  bool is_ours(Machine& machine, const env::Address& at);
  Machine& who_listens(Machine& machine, const env::Address& at);
  bool draw(const Link& link, double probability) {
    return probability > 0 && !link.is_loopback() && rng_.bernoulli(probability);
  }
  // What faults and jitter add to a segment's way; may clog the link.
  Duration draw_delay(const Link& link);
  void advance_model();
  // What is held moves on, within `spread`.
  void release(Link& link, Duration spread);

  struct ModelEvent : Event {
    explicit ModelEvent(Network& owner) : Event(kModelEvent, kOrigin), network(owner) {}
    Network& network;
  };
  static const EventKind kModelEvent;
  static const Origin kOrigin;  // between the nodes: no node's pause stops it

  World& world_;
  Rng rng_;
  NetworkFaults faults_;
  std::unique_ptr<NetworkModel> model_;
  ModelEvent model_event_;
  Tags<Pipe> travelling_;
  std::vector<uint64_t> arrived_;
  std::vector<std::unique_ptr<Host>> hosts_;
  List<Circuit, Circuit> circuits_;
  uint64_t circuits_made_ = 0;
  bool was_cut_ = false;
  List<Connecting, Network> connecting_;
};

}  // namespace cairn::sim
