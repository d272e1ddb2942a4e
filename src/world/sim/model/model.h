// SPDX-License-Identifier: Apache-2.0
// How long things take: models of the network and of a disk, to be replaced by calibrated ones.
//
// A model only tells times. Faults, order and contents are the simulator's: whatever a model says,
// bytes of one stream stay in order and what was flushed survives. A model belongs to one run and
// repeats exactly: randomness only from the seed its maker was given.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "base/units.h"
#include "env/disk.h"

namespace cairn::sim {

class NetworkModel {
 public:
  virtual ~NetworkModel() = default;
  // When `bytes` that node `from` gives to the network now have arrived at node `to`; not before
  // now. Called in the order of sending. Nodes count from 0; from == to is inside one machine.
  virtual Time deliver(Time now, uint32_t from, uint32_t to, uint64_t bytes) = 0;
  // The same of a stream's data. Nothing: that depends on what is sent meanwhile, and advance()
  // will tell by its tag.
  virtual std::optional<Time> send(Time now, uint32_t from, uint32_t to, uint64_t bytes,
                                   uint64_t /*tag*/) {
    return deliver(now, from, to, bytes);
  }
  // When the model has something to do by itself; never() while it has not.
  virtual Time next_event() const { return Time::never(); }
  // Time has come to `now`. Appends the tags of what has arrived.
  virtual void advance(Time /*now*/, std::vector<uint64_t>& /*arrived*/) {}
};

class DiskModel {
 public:
  virtual ~DiskModel() = default;
  // A request is started now; called in the order of starting. When it completes, not before now;
  // nothing: that depends on what is started meanwhile, and advance() will tell by its tag.
  virtual std::optional<Time> start(Time now, const env::DiskOp::Request& request,
                                    uint64_t tag) = 0;
  // When the model has something to do by itself; never() while it has not.
  virtual Time next_event() const { return Time::never(); }
  // Time has come to `now`. Appends the tags of the requests that have completed.
  virtual void advance(Time /*now*/, std::vector<uint64_t>& /*completed*/) {}
};

struct SimpleNetworkOptions {
  Duration latency = 25_us;          // one way, between two nodes
  Duration latency_loopback = 4_us;  // inside a node
  double bytes_per_ns = 3.125;       // of each node's sending side: 25 Gbit/s
};

// A fixed latency, behind a sending side that takes its time for each byte.
class SimpleNetwork final : public NetworkModel {
 public:
  explicit SimpleNetwork(const SimpleNetworkOptions& options = {}) : options_(options) {}
  Time deliver(Time now, uint32_t from, uint32_t to, uint64_t bytes) override;

 private:
  SimpleNetworkOptions options_;
  std::vector<Time> free_at_;  // per sending node
};

struct SimpleDiskOptions {
  Duration read_latency = 80_us;
  Duration write_latency = 20_us;
  Duration flush_latency = 100_us;
  double jitter = 0.5;        // latencies are drawn from [1, 1 + jitter] times the above
  double bytes_per_ns = 2.0;  // shared by all requests in flight
};

// A latency with jitter, so that requests in flight together complete in any order, behind a
// shared bandwidth.
class SimpleDisk final : public DiskModel {
 public:
  explicit SimpleDisk(uint64_t seed, const SimpleDiskOptions& options = {})
      : options_(options), rng_(seed) {}
  std::optional<Time> start(Time now, const env::DiskOp::Request& request, uint64_t tag) override;

 private:
  SimpleDiskOptions options_;
  Rng rng_;
  Time free_at_;
};

}  // namespace cairn::sim
