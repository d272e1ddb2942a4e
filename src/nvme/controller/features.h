// SPDX-License-Identifier: Apache-2.0
// Features: what a host sets of its controller (NVMe Base 2.0, 5.15 and 5.27). Features of single
// namespaces (reservation notices and persistence) are kept by those who own them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "base/bytes.h"
#include "nvme/controller/answer.h"
#include "nvme/controller/controller_kind.h"
#include "nvme/format/feature_format.h"
#include "nvme/reservation/reservation_view.h"

namespace cairn::nvme {

class Features {
 public:
  struct Options {
    ControllerKind kind = ControllerKind::kIo;
    uint16_t queues_max = 1;      // I/O queues, one-based
    uint32_t events_offered = 0;  // OAES
    uint32_t keep_alive_ms = 0;   // as Connect asked
    uint16_t vectors = 1;         // kPci: interrupt vectors
    HostId host{};
  };
  explicit Features(const Options& options);

  // Current, default or saved value; `data` takes the structure of features that have one.
  Answer get(const GetFeaturesFields& fields, MutableBytes data) const;
  // `has_io_queues`: their number cannot be changed any more.
  Answer set(const SetFeaturesFields& fields, Bytes data, bool has_io_queues);
  // Who the host is unless it says otherwise, for those that Connect has not told.
  void set_default_host(const HostId& host) { options_.host = values_.host = host; }
  // What a controller reset leaves: defaults, except what Connect said.
  void reset();

  // The keep-alive time-out, rounded up to its unit; 0 is none.
  uint32_t keep_alive_ms() const { return values_.keep_alive_ms; }
  uint16_t queues_granted() const { return values_.queues; }
  // Whether the host wants events of this bit (EventMask, CriticalWarning).
  bool wants_event(uint32_t bit) const { return (values_.events & bit) != 0; }
  // CriticalWarning bits that the thresholds make of the temperature.
  uint8_t temperature_warning() const;
  // As Connect or Set Features said.
  const HostId& host() const { return values_.host; }
  // Whether the host reads incarnations whenever it connects, and so hears of losses.
  bool knows_incarnations() const { return values_.knows_incarnations; }
  InterruptCoalescing coalescing() const { return InterruptCoalescing::decode(values_.coalescing); }

  // Whether a controller of this kind has the feature, and what can be done with it
  // (FeatureCapabilities). Nothing: unsupported.
  static std::optional<uint32_t> capabilities(Feature feature, ControllerKind kind);

 private:
  struct Values {
    uint32_t arbitration = 0;
    uint32_t workload = 0;
    uint16_t temperature_over = 0;
    uint16_t temperature_under = 0;
    uint32_t error_recovery = 0;
    uint16_t queues = 0;  // one-based
    uint32_t write_atomicity = 0;
    uint32_t events = 0;
    uint32_t keep_alive_ms = 0;
    uint32_t coalescing = 0;
    std::set<uint16_t> vectors_at_once;  // that do not take part in it
    HostBehavior behavior;
    HostId host{};
    bool knows_incarnations = false;
  };
  Values defaults() const;
  Answer set_temperature(uint32_t value);
  Answer set_queues(uint32_t value, bool has_io_queues);
  Answer set_behavior(Bytes data);
  Answer get_host(uint32_t value, MutableBytes data) const;
  Answer set_host(uint32_t value, Bytes data, bool has_io_queues);
  Answer set_vector(uint32_t value);
  Answer set_incarnations(uint32_t value, bool has_io_queues);

  Options options_;
  Values values_;
};

}  // namespace cairn::nvme
