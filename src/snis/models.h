// SPDX-License-Identifier: Apache-2.0
// What SNIS asks of a storage and of a network simulator: requests go in at a time, and come out at
// one. Both are event models that the caller moves through time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trace/record.h"

namespace cairn::snis {

using Nanos = int64_t;  // of storage
using Picos = int64_t;  // of the network
inline constexpr int64_t kNever = INT64_MAX;

// Requests are records of a trace, with initiator and target; the number is the place in the trace.
using RequestNumber = uint32_t;

// Storage goes before network at the same moment, and a drive learns at the next whole nanosecond
// what the network has brought it. So neither ever waits for the other within one moment, and a
// pass over one simulator sees the same order of arrivals as one loop over both.
inline constexpr Picos network_time(Nanos storage) { return storage * 1000; }
inline constexpr Nanos storage_time(Picos network) { return network / 1000 + 1; }
// Times beyond it would not fit.
inline constexpr Nanos kTimeMax = INT64_MAX / 2000;

class DriveSink {
 public:
  virtual void served(RequestNumber request, Nanos at) = 0;

 protected:
  ~DriveSink() = default;
};

// One target's storage.
class Drive {
 public:
  virtual ~Drive() = default;
  // Everything before `at` has happened, nothing at it.
  virtual void submit(RequestNumber number, const trace::Record& request, Nanos at) = 0;
  virtual Nanos next_event() const = 0;
  // Everything up to and including `until` happens.
  virtual void advance(Nanos until, DriveSink& sink) = 0;
};

class FabricSink {
 public:
  virtual void carried(RequestNumber request, Picos at) = 0;

 protected:
  ~FabricSink() = default;
};

// What a network did in one pass. Series have one number per bin of time, from zero on.
struct NetworkFacts {
  uint64_t pauses_at_hosts = 0;  // PAUSE frames, by what received them
  uint64_t pauses_at_switches = 0;
  uint64_t marks = 0;
  uint64_t drops = 0;
  uint64_t data_packets = 0;
  uint64_t events = 0;
  Picos bin = 0;
  std::vector<uint64_t> spine_pauses;
  std::vector<uint64_t> read_bytes;  // sent by hosts of targets
  std::vector<uint64_t> write_bytes;

  friend bool operator==(const NetworkFacts&, const NetworkFacts&) = default;
};

// The network between all initiators and targets. The data of a read goes from target to
// initiator, that of a write the other way.
class Fabric {
 public:
  virtual ~Fabric() = default;
  // As Drive::submit.
  virtual void start(RequestNumber number, const trace::Record& request, Picos at) = 0;
  virtual Picos next_event() const = 0;
  virtual void advance(Picos until, FabricSink& sink) = 0;
  virtual NetworkFacts facts() const = 0;
};

// Makes simulators that know nothing yet. Each call with the same argument makes the same.
class Models {
 public:
  virtual ~Models() = default;
  virtual uint32_t targets() const = 0;
  // From any thread.
  virtual std::unique_ptr<Drive> make_drive(uint32_t target) const = 0;
  virtual std::unique_ptr<Fabric> make_fabric() const = 0;
};

}  // namespace cairn::snis
