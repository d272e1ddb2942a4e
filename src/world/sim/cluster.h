// SPDX-License-Identifier: Apache-2.0
// Cluster: a simulated world of nodes, networks and disks, in virtual time and one thread.
//
//   sim::Cluster cluster({.seed = 7});
//   cluster.node("a").start(server);
//   cluster.node("b").start(client);
//   cluster.run_for(1_s);
//   cluster.node("a").crash();
//   cluster.node("a").restart();
//   ASSERT_TRUE(cluster.run_until([&] { return done; }, 10_s));
//
// The same options and calls give the same run, event by event: trace_hash() says so. What programs
// refer to must outlive the cluster, whose end crashes those still running: declare it last.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "world/sim/medium.h"
#include "world/sim/options.h"

namespace cairn::sim {

class Cluster;
class Machine;
class Network;
class World;

// A machine with a name, and the program on it. A reference to one stays valid.
class Node {
 public:
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const std::string& name() const;
  // 10.0.0.1 for the first node, 10.0.0.2 for the second...
  env::Address address(uint16_t port) const;

  // Runs `program` as soon as time moves on; none may be running. The node keeps a copy for
  // restart().
  void start(env::Program program);
  // The last program again, in a new process; after crash(), kill() or its own end.
  void restart();
  // Requests the stop token; the program ends when it has finished.
  void stop();
  // True from start until the program has ended.
  bool is_running() const;
  // True when it crashed or was killed and was not started again.
  bool is_down() const;
  // On the same machine (NodeOptions::beside), or the same node.
  bool is_beside(const Node& other) const;

  // Power loss, also for those beside it. Disks keep what was durable and any subset, block by
  // block, of what was not. Peers hear nothing until the node is up again, and then see kReset when
  // they send. The program is run to its end with no time passing: every operation fails with
  // kCancelled. One that does not end is a failed CHECK.
  void crash();
  // Death of the process alone. Disks keep what completed; peers see the end of the stream or
  // kReset.
  void kill();

  // Its programs stand still while the world goes on: bytes are still taken in, disks finish their
  // work. resume() lets happen at once what was due meanwhile.
  void pause();
  void resume();
  bool is_paused() const;

  // Moves the wall clock. The monotonic clock never steps.
  void step_clock(Duration by);

  // The simulated medium of that path; not there for programs until it is made. Stays for the
  // whole run.
  Medium& disk(const std::string& path);

 private:
  friend class Cluster;
  explicit Node(std::unique_ptr<Machine> machine);
  ~Node();
  friend struct std::default_delete<Node>;
  std::unique_ptr<Machine> machine_;
};

class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  uint64_t seed() const;
  const ClusterOptions& options() const;

  // Made at first use, with default options unless given then.
  Node& node(std::string_view name);
  Node& node(std::string_view name, const NodeOptions& options);
  // In the order they were made.
  const std::vector<Node*>& nodes() const { return nodes_; }

  // Nothing passes between two nodes, or from one to the other, until healed. Bytes on their way
  // are held; their sender gives up after NetworkOptions::held_limit. Nodes beside each other have
  // no network between them, and this is nothing to them; clog() too.
  void partition(std::string_view a, std::string_view b);
  void partition_one_way(std::string_view from, std::string_view to);
  // From and to every other node there is now.
  void isolate(std::string_view name);
  // Both directions stand still for a while; nothing is lost.
  void clog(std::string_view a, std::string_view b, Duration duration);
  // Ends partitions and clogs between two nodes, or all.
  void heal(std::string_view a, std::string_view b);
  void heal();
  // Every connection between the two is reset, on both sides at once.
  void reset_streams(std::string_view a, std::string_view b);

  // The end of all trouble: heals links and disks, sets all probabilities of faults to nothing,
  // resumes those paused and restarts those that crashed or were killed.
  void recover();

  // True time, from 0.
  Time now() const;
  // Lets so much time pass.
  void run_for(Duration duration);
  // Until `predicate()` holds, which is asked after each event; false when `limit` passed first.
  bool run_until(const std::function<bool()>& predicate, Duration limit);
  // Until nothing more will happen; false when `limit` passed first.
  bool run_until_idle(Duration limit);

  // Calls `action` at that time from now, between events.
  void after(Duration delay, std::function<void()> action);

  // Whether all bytes before NetworkOptions::cut have arrived.
  bool was_cut() const;

  uint64_t events_run() const;
  // The identity of the run so far: equal for equal runs.
  uint64_t trace_hash() const;
  // The last events and records, one per line.
  std::string trace_tail() const;
  // Seed, how to repeat, trace: what a failed CHECK prints inside a simulation.
  std::string report() const;

 private:
  struct ActionEvent;
  void wake_all();

  std::unique_ptr<World> world_;
  std::unique_ptr<Network> network_;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> by_name_;
  std::vector<Node*> nodes_;
  std::vector<std::unique_ptr<ActionEvent>> actions_;
  std::vector<ActionEvent*> free_actions_;
  CheckHookSlot previous_hook_;
};

}  // namespace cairn::sim
