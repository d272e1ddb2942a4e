// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/features.h"

#include <algorithm>

#include "nvme/format/limits.h"
#include "nvme/format/log_format.h"

namespace cairn::nvme {

namespace {

constexpr uint32_t kWarnings = CriticalWarning::kSpare | CriticalWarning::kTemperature |
                               CriticalWarning::kReliability | CriticalWarning::kReadOnly |
                               CriticalWarning::kBackupFailed;

uint32_t rounded_keep_alive(uint32_t ms) {
  const uint64_t rounded = align_up(ms, kKeepAliveUnitMs);
  return static_cast<uint32_t>(std::min<uint64_t>(rounded, UINT32_MAX));
}

uint32_t number_of_queues(uint16_t queues) {
  const auto zero_based = static_cast<uint16_t>(queues - 1);
  return NumberOfQueues{.submission = zero_based, .completion = zero_based}.encode();
}

}  // namespace

Features::Features(const Options& options) : options_(options), values_(defaults()) {}

Features::Values Features::defaults() const {
  return {.arbitration = Arbitration{}.encode(),
          .temperature_over = kWarningKelvin,
          .queues = options_.queues_max,
          .events = options_.events_offered | kWarnings,
          .keep_alive_ms = rounded_keep_alive(options_.keep_alive_ms),
          .vectors_at_once = {},
          .behavior = {},
          .host = options_.host};
}

void Features::reset() {
  const uint32_t keep_alive_ms = values_.keep_alive_ms;
  values_ = defaults();
  values_.keep_alive_ms = keep_alive_ms;
}

uint8_t Features::temperature_warning() const {
  const bool outside = kTemperatureKelvin >= values_.temperature_over ||
                       kTemperatureKelvin <= values_.temperature_under;
  return outside ? CriticalWarning::kTemperature : uint8_t{0};
}

std::optional<uint32_t> Features::capabilities(Feature feature, ControllerKind kind) {
  const bool discovery = kind == ControllerKind::kDiscovery;
  const bool pci = kind == ControllerKind::kPci;
  switch (feature) {
    case Feature::kEventConfiguration:
      return FeatureCapabilities::kChangeable;
    case Feature::kKeepAlive:
      if (!pci) return FeatureCapabilities::kChangeable;
      break;
    case Feature::kInterruptCoalescing:
    case Feature::kInterruptVector:
      if (pci) return FeatureCapabilities::kChangeable;
      break;
    case Feature::kArbitration:
    case Feature::kPowerManagement:
    case Feature::kTemperatureThreshold:
    case Feature::kErrorRecovery:
    case Feature::kNumberOfQueues:
    case Feature::kWriteAtomicity:
    case Feature::kHostBehavior:
      if (!discovery) return FeatureCapabilities::kChangeable;
      break;
    case Feature::kIncarnations:
      if (kind == ControllerKind::kIo) return FeatureCapabilities::kChangeable;
      break;
    case Feature::kWriteCache:
      if (!discovery) return 0;
      break;
    case Feature::kHostId:
      // Of a fabric's host Connect has set it (NVMe Base 2.0, 5.27.1.25).
      if (!discovery) return pci ? FeatureCapabilities::kChangeable : 0;
      break;
    case Feature::kReservationNoticeMask:
    case Feature::kReservationPersistence:
      if (!discovery) return FeatureCapabilities::kChangeable | FeatureCapabilities::kPerNamespace;
      break;
    default:
      break;
  }
  return std::nullopt;
}

Answer Features::get(const GetFeaturesFields& fields, MutableBytes data) const {
  const std::optional<uint32_t> can = capabilities(fields.feature, options_.kind);
  if (!can || fields.select > FeatureSelect::kCapabilities) {
    return refused(StatusCode::kInvalidField);
  }
  if (fields.select == FeatureSelect::kCapabilities) return answered(*can);
  // Nothing is saved, so a saved value is the default.
  const Values values = fields.select == FeatureSelect::kCurrent ? values_ : defaults();
  switch (fields.feature) {
    case Feature::kArbitration:
      return answered(values.arbitration);
    case Feature::kPowerManagement:
      return answered(values.workload);
    case Feature::kTemperatureThreshold: {
      TemperatureThreshold threshold = TemperatureThreshold::decode(fields.value);
      if (threshold.sensor != 0 || threshold.kind > 1) return refused(StatusCode::kInvalidField);
      return answered(threshold.kind == 0 ? values.temperature_over : values.temperature_under);
    }
    case Feature::kErrorRecovery:
      return answered(values.error_recovery);
    case Feature::kWriteCache:
      return answered(WriteCache::kEnabled);
    case Feature::kNumberOfQueues:
      return answered(number_of_queues(values.queues));
    case Feature::kWriteAtomicity:
      return answered(values.write_atomicity);
    case Feature::kEventConfiguration:
      return answered(values.events);
    case Feature::kKeepAlive:
      return answered(values.keep_alive_ms);
    case Feature::kHostBehavior:
      if (data.size() < sizeof values.behavior) return refused(StatusCode::kDataSglLengthInvalid);
      store(data, values.behavior);
      return answered();
    case Feature::kHostId:
      return get_host(fields.value, data);
    case Feature::kInterruptCoalescing:
      return answered(values.coalescing);
    case Feature::kInterruptVector: {
      InterruptVector vector = InterruptVector::decode(fields.value);
      if (vector.vector >= options_.vectors) return refused(StatusCode::kInvalidField);
      vector.at_once = values.vectors_at_once.contains(vector.vector);
      return answered(vector.encode());
    }
    case Feature::kIncarnations:
      return answered(values.knows_incarnations ? 1 : 0);
    default:
      return refused(StatusCode::kInvalidField);
  }
}

Answer Features::set(const SetFeaturesFields& fields, Bytes data, bool has_io_queues) {
  if (!capabilities(fields.feature, options_.kind)) return refused(StatusCode::kInvalidField);
  if (fields.save) return refused(StatusCode::kFeatureNotSaveable);
  switch (fields.feature) {
    case Feature::kArbitration:
      values_.arbitration = fields.value;
      return answered();
    case Feature::kPowerManagement:
      // There is one power state.
      if (PowerManagement::decode(fields.value).state != 0) {
        return refused(StatusCode::kInvalidField);
      }
      values_.workload = fields.value;
      return answered();
    case Feature::kTemperatureThreshold:
      return set_temperature(fields.value);
    case Feature::kErrorRecovery:
      // Deallocated blocks read as zeroes; NSFEAT offers no error for them.
      if (ErrorRecovery::decode(fields.value).deallocated_error) {
        return refused(StatusCode::kInvalidField);
      }
      values_.error_recovery = fields.value;
      return answered();
    case Feature::kWriteCache:
      return fields.value == WriteCache::kEnabled ? answered()
                                                  : refused(StatusCode::kFeatureNotChangeable);
    case Feature::kNumberOfQueues:
      return set_queues(fields.value, has_io_queues);
    case Feature::kWriteAtomicity:
      values_.write_atomicity = fields.value & WriteAtomicity::kPowerFailOnly;
      return answered();
    case Feature::kEventConfiguration:
      if ((fields.value & ~(options_.events_offered | kWarnings)) != 0) {
        return refused(StatusCode::kInvalidField);
      }
      values_.events = fields.value;
      return answered();
    case Feature::kKeepAlive:
      values_.keep_alive_ms = rounded_keep_alive(fields.value);
      return answered();
    case Feature::kHostBehavior:
      return set_behavior(data);
    case Feature::kHostId:
      return set_host(fields.value, data, has_io_queues);
    case Feature::kInterruptCoalescing:
      values_.coalescing = InterruptCoalescing::decode(fields.value).encode();
      return answered();
    case Feature::kInterruptVector:
      return set_vector(fields.value);
    case Feature::kIncarnations:
      return set_incarnations(fields.value, has_io_queues);
    default:
      return refused(StatusCode::kInvalidField);
  }
}

Answer Features::set_temperature(uint32_t value) {
  const TemperatureThreshold threshold = TemperatureThreshold::decode(value);
  constexpr uint8_t kAllSensors = 15;
  if ((threshold.sensor != 0 && threshold.sensor != kAllSensors) || threshold.kind > 1) {
    return refused(StatusCode::kInvalidField);
  }
  (threshold.kind == 0 ? values_.temperature_over : values_.temperature_under) = threshold.kelvin;
  return answered();
}

Answer Features::set_queues(uint32_t value, bool has_io_queues) {
  const NumberOfQueues asked = NumberOfQueues::decode(value);
  if (asked.submission == 0xffff || asked.completion == 0xffff) {
    return refused(StatusCode::kInvalidField);
  }
  if (has_io_queues) return refused(StatusCode::kCommandSequenceError);
  // A queue is a pair here.
  const uint32_t pairs = std::max(asked.submission, asked.completion) + 1u;
  values_.queues = static_cast<uint16_t>(std::min<uint32_t>(pairs, options_.queues_max));
  return answered(number_of_queues(values_.queues));
}

// Queues know what their host is told by, so it is set before there are any.
Answer Features::set_incarnations(uint32_t value, bool has_io_queues) {
  if (value > 1) return refused(StatusCode::kInvalidField);
  if (has_io_queues) return refused(StatusCode::kCommandSequenceError);
  values_.knows_incarnations = value == 1;
  return answered();
}

Answer Features::get_host(uint32_t value, MutableBytes data) const {
  // Fabrics has host identifiers of 16 bytes only, and so have we (CTRATT.HIDS).
  if ((value & kHostIdExtended) == 0) return refused(StatusCode::kInvalidField);
  if (data.size() < sizeof(HostId)) return refused(StatusCode::kDataSglLengthInvalid);
  store(data, values_.host);
  return answered();
}

// Queues know their host, so it is set before there are any.
Answer Features::set_host(uint32_t value, Bytes data, bool has_io_queues) {
  if (options_.kind != ControllerKind::kPci || has_io_queues) {
    return refused(StatusCode::kCommandSequenceError);
  }
  if ((value & kHostIdExtended) == 0) {
    return refused(StatusCode::kHostIdInconsistentFormat);
  }
  if (data.size() < sizeof(HostId)) return refused(StatusCode::kDataSglLengthInvalid);
  const auto host = load<HostId>(data);
  if (host == HostId{}) return refused(StatusCode::kInvalidField);
  values_.host = host;
  return answered();
}

Answer Features::set_vector(uint32_t value) {
  const InterruptVector vector = InterruptVector::decode(value);
  if (vector.vector >= options_.vectors) return refused(StatusCode::kInvalidField);
  if (vector.at_once) {
    values_.vectors_at_once.insert(vector.vector);
  } else {
    values_.vectors_at_once.erase(vector.vector);
  }
  return answered();
}

Answer Features::set_behavior(Bytes data) {
  if (data.size() < sizeof(HostBehavior)) return refused(StatusCode::kDataSglLengthInvalid);
  const auto behavior = load<HostBehavior>(data);
  if (behavior.retry_delay > 1 || behavior.telemetry_area4 > 1 ||
      behavior.extended_lba_formats > 1) {
    return refused(StatusCode::kInvalidField);
  }
  values_.behavior = behavior;
  return answered();
}

}  // namespace cairn::nvme
