// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/capabilities.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "door/vfio_user/limits.h"

namespace cairn::door::vfio_user {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCapabilitiesKey = "capabilities";
constexpr const char* kDescriptorsKey = "max_msg_fds";
constexpr const char* kTransferKey = "max_data_xfer_size";
constexpr const char* kPageSizesKey = "pgsizes";
constexpr const char* kMapsKey = "max_dma_maps";
constexpr const char* kMultipleKey = "write_multiple";
constexpr const char* kMigrationKey = "migration";
constexpr const char* kMigrationPageKey = "pgsize";

// The object of capabilities, empty when the message has none; nothing when it is malformed.
std::optional<Json> capabilities_of(Bytes payload) {
  const Bytes text = payload.subspan(sizeof(Version));
  if (text.empty()) return Json::object();
  if (text.size() > kVersionTextMax || text.back() != std::byte{0}) return std::nullopt;
  const std::string_view json = as_text(text.first(text.size() - 1));
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return std::nullopt;
  const auto found = root.find(kCapabilitiesKey);
  if (found == root.end()) return Json::object();
  if (!found->is_object()) return std::nullopt;
  return *found;
}

// False: there is such a value, and it is no number.
bool take_number(const Json& from, const char* key, uint64_t& into) {
  const auto found = from.find(key);
  if (found == from.end()) return true;
  if (!found->is_number_unsigned()) return false;
  into = found->get<uint64_t>();
  return true;
}

std::vector<std::byte> payload_of(Version version, const Json& capabilities) {
  Json root;
  root[kCapabilitiesKey] = capabilities;
  const std::string text = root.dump();
  std::vector<std::byte> payload(sizeof(Version) + text.size() + 1);
  store(payload, version);
  std::ranges::copy(as_bytes(text), payload.begin() + sizeof(Version));
  return payload;
}

}  // namespace

Result<Capabilities> parse_version(Bytes payload) {
  if (payload.size() < sizeof(Version)) {
    return fail(Errc::kInvalid, "a version message without a version");
  }
  const auto version = load<Version>(payload);
  if (version.major != kMajor) {
    return fail(Errc::kUnsupported, "a major version other than 0", version.major);
  }
  const std::optional<Json> said = capabilities_of(payload);
  if (!said) return fail(Errc::kInvalid, "the capabilities of a version message are no JSON");
  Capabilities peer{.minor = std::min<uint16_t>(version.minor, kMinor)};
  if (!take_number(*said, kDescriptorsKey, peer.descriptors_max)) {
    return fail(Errc::kInvalid, "max_msg_fds is no number");
  }
  if (!take_number(*said, kTransferKey, peer.transfer_max)) {
    return fail(Errc::kInvalid, "max_data_xfer_size is no number");
  }
  if (const auto found = said->find(kMultipleKey); found != said->end()) {
    if (!found->is_boolean()) return fail(Errc::kInvalid, "write_multiple is no boolean");
    peer.write_multiple = found->get<bool>();
  }
  return peer;
}

std::vector<std::byte> answer_version(Bytes payload) {
  const std::optional<Json> said = capabilities_of(payload);
  CHECK(said.has_value(), "a payload that was parsed before");
  const bool is_silent = said->empty();
  const auto asked = [&](const char* key) { return said->contains(key); };
  Json answer = Json::object();
  if (is_silent || asked(kDescriptorsKey)) answer[kDescriptorsKey] = kDescriptorsMax;
  if (is_silent || asked(kTransferKey)) answer[kTransferKey] = kTransferMax;
  if (asked(kPageSizesKey)) answer[kPageSizesKey] = kPageSize;
  if (asked(kMapsKey)) answer[kMapsKey] = kMapsMax;
  if (asked(kMultipleKey)) answer[kMultipleKey] = true;
  if (asked(kMigrationKey)) answer[kMigrationKey][kMigrationPageKey] = kPageSize;
  const auto version = load<Version>(payload);
  return payload_of({.minor = std::min<uint16_t>(version.minor, kMinor)}, answer);
}

std::vector<std::byte> propose_version() {
  Json capabilities = Json::object();
  capabilities[kDescriptorsKey] = kDescriptorsMax;
  capabilities[kTransferKey] = kTransferMax;
  capabilities[kPageSizesKey] = kPageSize;
  capabilities[kMultipleKey] = true;
  return payload_of({}, capabilities);
}

}  // namespace cairn::door::vfio_user
