// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of clients' keys, and as an identity that a stranger offers: what is
// understood names each client once, and a client's own key is found there.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "rack/client_keys.h"
#include "rack/types.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  const std::string text(as_text(std::as_bytes(std::span(data, size))));
  if (const std::optional<std::string> name = rack::name_in(text)) {
    CHECK(rack::check_client_name(*name).has_value());
  }
  const Result<rpc::ClientKeys> keys = rack::parse_client_keys(text);
  if (!keys) {
    CHECK(keys.error().detail() >= 0);
    return 0;
  }
  CHECK(!keys->empty() && keys->size() <= rack::kClientsMax);
  // The same file twice over has every name twice.
  CHECK(!rack::parse_client_keys(text + "\n" + text).has_value());
  CHECK(!keys->choose({text}).has_value() || keys->client_of(text).name.size() > 0);
  return 0;
}
