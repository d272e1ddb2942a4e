// SPDX-License-Identifier: Apache-2.0
// The spans of time in a URI: which options have one, and how they are written.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "fabric/host/options.h"

namespace cairn::fabric {

struct DurationOption {
  std::string_view name;
  Duration HostOptions::* member;
  bool may_be_zero = false;
  bool may_be_never = false;
};
inline constexpr std::array kDurations = {
    DurationOption{"dhchap_timeout", &HostOptions::authenticate_timeout},
    DurationOption{"dhchap_again", &HostOptions::reauthenticate, true},
    DurationOption{"connect_timeout", &HostOptions::connect_timeout},
    DurationOption{"admin_timeout", &HostOptions::admin_timeout},
    DurationOption{"io_timeout", &HostOptions::io_timeout},
    DurationOption{"kato", &HostOptions::keep_alive, true},
    DurationOption{"reconnect_delay", &HostOptions::reconnect_delay},
    DurationOption{"reconnect_delay_max", &HostOptions::reconnect_delay_max},
    DurationOption{"loss_timeout", &HostOptions::loss_timeout, true, true},
    DurationOption{"cancel_timeout", &HostOptions::cancel_timeout, true},
    DurationOption{"quiesce", &HostOptions::quiesce, true},
};

// "50us", "2ms", "10s", "1m", "0": whole numbers, up to a year. None: it is nothing of that kind.
std::optional<Duration> parse_uri_duration(std::string_view text);
// The same way back; "never" for Duration::max().
std::string uri_duration_text(Duration duration);

}  // namespace cairn::fabric
