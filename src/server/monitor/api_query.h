// SPDX-License-Identifier: Apache-2.0
// What a client of the JSON API asks for: "after=7&count=100&since=2026-11-19T20:00:00Z&wait=10".
#pragma once

#include <string_view>

#include "base/problem.h"
#include "base/units.h"
#include "server/events/event_log.h"

namespace cairn::server {

struct EventsQuery {
  EventsWanted wanted;
  Duration wait;  // for one, where there is none
};

// Any text, as it was sent. The Problem is for the client.
Attempt<EventsQuery> parse_events_query(std::string_view query);

}  // namespace cairn::server
