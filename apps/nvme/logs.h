// SPDX-License-Identifier: Apache-2.0
// Log pages for people and scripts, read as hostile input.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/bytes.h"
#include "nvme/format/log_format.h"

namespace cairn::apps {

// A page in both forms.
struct ShownLog {
  nlohmann::ordered_json json;
  std::string text;
};

// Whole entries of the error log; those that never were are left out.
ShownLog show_errors(Bytes page);
ShownLog show_changed_namespaces(const nvme::ChangedNamespacesPage& page);
ShownLog show_effects(const nvme::CommandEffectsPage& page);
// What breaks off is left out.
ShownLog show_ana(Bytes page);
ShownLog show_firmware(const nvme::FirmwarePage& page);
ShownLog show_reservation_notice(const nvme::ReservationNoticePage& page);

}  // namespace cairn::apps
