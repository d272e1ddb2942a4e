// SPDX-License-Identifier: Apache-2.0
// How well drives are, for programs, people and Prometheus.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/metrics_text.h"
#include "config/settings.h"
#include "server/control/control_format.h"
#include "stack/health_watch.h"

namespace cairn::server {

// What a drive that could not be opened says of itself. `problem` may have several lines.
drive::StackHealth not_open(std::string_view problem, std::string_view next);
// The last of a Problem's lines, without the caret that stands under the others.
std::string last_line(std::string_view problem);

config::LogLevel level_of(drive::Health health);

// "health", "reasons" and "jobs", to be put into what is said of the drive. Null: it is well.
Json health_json(const drive::WatchedDrive* drive);
// The worst of such drives, as a word.
std::string worst_health(const std::vector<Json>& drives);
// A line for each reason and each job of such a drive; empty: there are none.
std::string health_lines(const Json& drive);

// Of drives as JSON, each with its "name".
void add_health(MetricsText& text, const std::vector<Json>& drives);

}  // namespace cairn::server
