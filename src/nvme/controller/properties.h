// SPDX-License-Identifier: Apache-2.0
// Properties: the registers of a controller and what writing them does (NVMe Base 2.0, 3.1.3).
#pragma once

#include <cstdint>

#include "nvme/controller/answer.h"
#include "nvme/format/fabrics_format.h"
#include "nvme/format/property_format.h"

namespace cairn::nvme {

// VS and VER.
inline constexpr Version kVersion{.major = 2, .minor = 0, .tertiary = 0};

class Properties {
 public:
  struct Options {
    uint16_t queue_entries_max = 128;  // one-based
    bool discovery = false;
    uint8_t page_size_max = 0;  // MPSMAX
  };
  explicit Properties(const Options& options) : options_(options) {}

  // Property Get. Refuses unknown offsets and wrong sizes.
  Answer get(const PropertyCommand& command) const;

  // What Property Set has brought about.
  enum class Change : uint8_t { kNone, kEnabled, kReset };
  struct SetOutcome {
    Status status;
    Change change = Change::kNone;
  };
  // Property Set; CC is the only property a host may write.
  SetOutcome set(const PropertyCommand& command);

  // What registers of every kind have in common: CAP, CRTO, and which CC a controller can work
  // with.
  static Capabilities capabilities(const Options& options);
  static ReadyTimeouts ready_timeouts();
  static bool is_acceptable(const Configuration& configuration, const Options& options);

  // Of a controller whose registers are elsewhere (pci_registers.h): they say whether it is ready.
  void set_ready(bool ready) { status_.ready = ready; }

  // Enabled, and neither failed nor shut down: commands other than Fabrics ones are served.
  bool is_ready() const { return status_.ready; }
  bool is_shut_down() const { return status_.shutdown != ShutdownStatus::kNone; }

 private:
  Change configure(uint32_t value);

  Options options_;
  uint32_t configuration_ = 0;  // verbatim: hosts read back what they wrote
  ControllerStatus status_;
};

}  // namespace cairn::nvme
