// SPDX-License-Identifier: Apache-2.0
// The SMART / health page for people and scripts (NVMe Base 2.0, 5.16.1.3).
#include <fmt/format.h>

#include <string>

#include "apps/nvme/pages.h"
#include "base/units.h"

namespace cairn::apps {

namespace {

constexpr uint64_t kDataUnit = 512'000;  // bytes

std::string units_text(const nvme::Le128& units) {
  if (units.high != 0 || units.low > UINT64_MAX / kDataUnit) return "";
  return text_bytes(units.low * kDataUnit);
}

}  // namespace

FieldTable fields_of(const nvme::HealthPage& page) {
  FieldTable table;
  using Warning = nvme::CriticalWarning;
  table.bits("critical_warning", page.critical_warning,
             bit_names(page.critical_warning, {{Warning::kSpare, "spare is low"},
                                               {Warning::kTemperature, "temperature"},
                                               {Warning::kReliability, "reliability"},
                                               {Warning::kReadOnly, "read only"},
                                               {Warning::kBackupFailed, "backup failed"}}));
  table.number("temperature", page.temperature_kelvin, celsius_text(page.temperature_kelvin));
  table.number("avail_spare", page.spare_percent, "%");
  table.number("spare_thresh", page.spare_threshold_percent, "%");
  table.number("percent_used", page.used_percent, "%");
  table.bits("endurance_grp_critical_warning_summary", page.endurance_group_warning);
  table.large("data_units_read", page.data_units_read, units_text(page.data_units_read));
  table.large("data_units_written", page.data_units_written, units_text(page.data_units_written));
  table.large("host_read_commands", page.host_reads);
  table.large("host_write_commands", page.host_writes);
  table.large("controller_busy_time", page.busy_minutes, "minutes");
  table.large("power_cycles", page.power_cycles);
  table.large("power_on_hours", page.power_on_hours);
  table.large("unsafe_shutdowns", page.unsafe_shutdowns);
  table.large("media_errors", page.media_errors);
  table.large("num_err_log_entries", page.error_log_entries);
  table.number("warning_temp_time", page.warning_temperature_minutes, "minutes");
  table.number("critical_comp_time", page.critical_temperature_minutes, "minutes");
  for (size_t i = 0; i < page.sensor_kelvin.size(); ++i) {
    if (page.sensor_kelvin[i] == 0) continue;
    table.number(fmt::format("temperature_sensor_{}", i + 1), page.sensor_kelvin[i],
                 celsius_text(page.sensor_kelvin[i]));
  }
  table.number("thm_temp1_trans_count", page.thermal1_transitions);
  table.number("thm_temp2_trans_count", page.thermal2_transitions);
  table.number("thm_temp1_total_time", page.thermal1_seconds);
  table.number("thm_temp2_total_time", page.thermal2_seconds);
  return table;
}

}  // namespace cairn::apps
