// SPDX-License-Identifier: Apache-2.0
// A request to etcd's gateway: always a POST with a body of JSON.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "http/connection.h"

namespace cairn::meta::etcd {

inline http::Request post(std::string_view host, std::string_view target,
                          std::span<const Bytes> body) {
  return {.head = fmt::format("POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n"
                              "Accept-Encoding: identity\r\nContent-Length: {}\r\n\r\n",
                              target, host, total_size(body)),
          .body = body};
}

}  // namespace cairn::meta::etcd
