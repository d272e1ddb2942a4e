// SPDX-License-Identifier: Apache-2.0
// Version: what is known of an object at an HTTP server, and the condition that says so.
#pragma once

#include <string>

namespace cairn::rest {

struct Version {
  bool is_absent = false;
  std::string etag;  // empty and not absent: nothing is known

  bool is_known() const { return is_absent || !etag.empty(); }
  // Whether a server can be asked to change the object only as long as it is this one: weak ETags
  // are never equal there (RFC 9110, 13.1.1).
  bool makes_condition() const { return is_absent || etag.starts_with('"'); }
  // The header line that asks for it; empty where it makes none.
  std::string condition() const {
    if (!makes_condition()) return "";
    return is_absent ? "If-None-Match: *\r\n" : "If-Match: " + etag + "\r\n";
  }
  friend bool operator==(const Version&, const Version&) = default;
};

}  // namespace cairn::rest
