// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/properties.h"

namespace cairn::nvme {

namespace {

// How long a host should wait for CSTS.RDY, in 500 ms. Ours is set at once; CRTO must not be less
// than CAP.TO, or Linux complains.
constexpr uint8_t kReadyTimeout = 15;

uint8_t size_code_of(PropertyOffset offset) {
  return offset == PropertyOffset::kCapabilities ? PropertyCommand::k8Bytes
                                                 : PropertyCommand::k4Bytes;
}

}  // namespace

Answer Properties::get(const PropertyCommand& command) const {
  const auto offset = static_cast<PropertyOffset>(command.offset.value());
  if (command.size_code() != size_code_of(offset)) return refused(StatusCode::kInvalidField);
  switch (offset) {
    case PropertyOffset::kCapabilities:
      return answered(capabilities(options_).encode());
    case PropertyOffset::kVersion:
      return answered(kVersion.encode());
    case PropertyOffset::kConfiguration:
      return answered(configuration_);
    case PropertyOffset::kStatus:
      return answered(status_.encode());
    case PropertyOffset::kReadyTimeouts:
      return answered(ready_timeouts().encode());
    default:
      return refused(StatusCode::kInvalidField);
  }
}

Properties::SetOutcome Properties::set(const PropertyCommand& command) {
  const auto offset = static_cast<PropertyOffset>(command.offset.value());
  if (offset != PropertyOffset::kConfiguration || command.size_code() != size_code_of(offset)) {
    return {.status = final_status(StatusCode::kInvalidField)};
  }
  return {.status = {}, .change = configure(static_cast<uint32_t>(command.value))};
}

Properties::Change Properties::configure(uint32_t value) {
  const Configuration before = Configuration::decode(configuration_);
  const Configuration now = Configuration::decode(value);
  configuration_ = value;
  if (now.shutdown != ShutdownNotice::kNone) {
    // Nothing of ours waits for a shutdown: what a host was told is durable is durable.
    status_.shutdown = ShutdownStatus::kComplete;
  } else if (before.shutdown != ShutdownNotice::kNone) {
    status_.shutdown = ShutdownStatus::kNone;
  }
  if (now.enable == before.enable) return Change::kNone;
  const bool acceptable = is_acceptable(now, options_);
  status_ = {.ready = now.enable && acceptable,
             .fatal = now.enable && !acceptable,
             .shutdown = status_.shutdown};
  return now.enable ? Change::kEnabled : Change::kReset;
}

Capabilities Properties::capabilities(const Options& options) {
  return {.queue_entries_max = static_cast<uint16_t>(options.queue_entries_max - 1),
          .contiguous_queues = true,
          .timeout_500ms = kReadyTimeout,
          .command_sets = CommandSets::kNvm,
          .page_size_max = options.page_size_max,
          .ready_with_media = true};
}

ReadyTimeouts Properties::ready_timeouts() { return {.with_media = kReadyTimeout}; }

bool Properties::is_acceptable(const Configuration& configuration, const Options& options) {
  if (configuration.page_size > options.page_size_max || configuration.arbitration != 0) {
    return false;
  }
  if (configuration.command_sets != CommandSetSelect::kNvm) return false;
  // A discovery controller has no I/O queues whose entries could have a size.
  return options.discovery ||
         (configuration.submission_entry_size == 6 && configuration.completion_entry_size == 4);
}

}  // namespace cairn::nvme
