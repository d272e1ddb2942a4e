// SPDX-License-Identifier: Apache-2.0
// Log pages, each made from facts as it would be read whole (NVMe Base 2.0, 5.16.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "env/address.h"
#include "nvme/controller/answer.h"
#include "nvme/controller/registry.h"
#include "nvme/controller/subsystem.h"
#include "nvme/format/log_format.h"
#include "nvme/reservation/reservation_notices.h"

namespace cairn::nvme {

using LogBytes = std::vector<std::byte>;

// Commands of the management interface and their effects: we have none (LID 13h).
inline constexpr LogPage kManagementEffects{0x13};

// Copies the part of a page a host asked for, zeroes behind its end. Refuses an offset past the
// end or not of whole dwords, an index, and room for less than NUMD.
Answer read_log(Bytes page, const GetLogFields& fields, MutableBytes data);

// Which pages a controller has: 256 dwords (LID 00h).
LogBytes supported_pages(ControllerKind kind);
bool has_log_page(LogPage page, ControllerKind kind);
// LID 12h: which features, 256 dwords.
LogBytes feature_effects(ControllerKind kind);
LogBytes command_effects(ControllerKind kind, bool has_vendor_command);
LogBytes firmware_page();
LogBytes changed_namespaces_page(const std::set<uint32_t>& nsids);

LogBytes reservation_page(const ReservationNotices& notices);

struct HealthFacts {
  IoTotals totals;
  uint64_t errors = 0;   // entries the error log ever had
  Duration up;           // since this process began to serve
  uint8_t warnings = 0;  // CriticalWarning
};
LogBytes health_page(const HealthFacts& facts);

// As one host sees it. `groups_only`: RGO.
LogBytes ana_page(const Subsystem& subsystem, std::string_view host_nqn, bool groups_only);

// The discovery log as one host sees it.
struct DiscoveryFacts {
  uint64_t generation = 0;
  env::Address local;  // where the host reached us
  std::span<const PortOptions> ports;
  std::vector<std::string_view> nqns;  // subsystems the host may connect to
};
LogBytes discovery_page(const DiscoveryFacts& facts);
// The port by which a connection came in that ends at `local`; null when it is none of these.
const PortOptions* find_port(const env::Address& local, std::span<const PortOptions> ports);

}  // namespace cairn::nvme
