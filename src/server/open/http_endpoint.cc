// SPDX-License-Identifier: Apache-2.0
#include "server/open/http_endpoint.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/words.h"
#include "server/open/target_uri.h"

namespace cairn::server {

namespace {

Attempt<rest::Endpoint> parse(std::string_view text) {
  std::expected<rest::Endpoint, std::string> place = rest::Endpoint::parse(text);
  if (place) return std::move(*place);
  return refuse(fmt::format("{} is no place: {}; write http://HOST:PORT/PATH?size=1G",
                            in_quotes(text), place.error()));
}

}  // namespace

Attempt<void> check_http(std::string_view text) {
  const Attempt<rest::Endpoint> place = parse(text);
  if (!place) return std::unexpected(place.error());
  return {};
}

Attempt<rest::Endpoint> find_http(std::string_view text) {
  Attempt<rest::Endpoint> place = parse(text);
  if (!place || place->name.empty()) return place;
  const auto address = system_resolver()(place->name);
  const auto parsed = address
                          ? env::Address::parse(fmt::format("{}:{}", *address, place->port))
                          : Result<env::Address>(fail(Errc::kNotFound, "it cannot be looked up"));
  if (!parsed) {
    return refuse(fmt::format(
        "the host name {} cannot be looked up ({}): check its spelling, or write an IP address",
        in_quotes(place->name), address ? *address : address.error()));
  }
  place->address = *parsed;
  return place;
}

}  // namespace cairn::server
