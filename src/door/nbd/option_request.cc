// SPDX-License-Identifier: Apache-2.0
#include "door/nbd/option_request.h"

#include <optional>
#include <utility>

#include "door/nbd/wire_format.h"

namespace cairn::door::nbd {

namespace {

// Takes values off the front; none when it breaks off.
class Cursor {
 public:
  explicit Cursor(Bytes bytes) : bytes_(bytes) {}
  bool is_over() const { return bytes_.empty(); }

  template <class Number>
  std::optional<Number> number() {
    if (bytes_.size() < sizeof(Number)) return std::nullopt;
    const auto value = load<Be<Number>>(bytes_);
    bytes_ = bytes_.subspan(sizeof(Number));
    return value;
  }
  // A string after its length in 32 bits.
  std::optional<std::string> string() {
    const std::optional<uint32_t> length = number<uint32_t>();
    if (!length || *length > kStringMax || *length > bytes_.size()) return std::nullopt;
    std::string text(as_text(bytes_.first(*length)));
    bytes_ = bytes_.subspan(*length);
    return text;
  }

 private:
  Bytes bytes_;
};

std::unexpected<Error> malformed() { return fail(Errc::kInvalid, "malformed option"); }

}  // namespace

Result<InfoRequest> parse_info_request(Bytes payload) {
  Cursor cursor(payload);
  std::optional<std::string> name = cursor.string();
  if (!name) return malformed();
  InfoRequest request{.name = std::move(*name)};
  const std::optional<uint16_t> count = cursor.number<uint16_t>();
  if (!count) return malformed();
  for (uint16_t i = 0; i < *count; ++i) {
    const std::optional<uint16_t> type = cursor.number<uint16_t>();
    if (!type) return malformed();
    if (*type == static_cast<uint16_t>(InfoType::kName)) request.wants_name = true;
    if (*type == static_cast<uint16_t>(InfoType::kDescription)) request.wants_description = true;
  }
  if (!cursor.is_over()) return malformed();
  return request;
}

Result<ContextRequest> parse_context_request(Bytes payload) {
  Cursor cursor(payload);
  std::optional<std::string> name = cursor.string();
  if (!name) return malformed();
  ContextRequest request{.name = std::move(*name)};
  const std::optional<uint32_t> count = cursor.number<uint32_t>();
  if (!count) return malformed();
  if (*count > kQueriesMax) return fail(Errc::kLimit, "too many queries in one option");
  for (uint32_t i = 0; i < *count; ++i) {
    std::optional<std::string> query = cursor.string();
    if (!query) return malformed();
    request.queries.push_back(std::move(*query));
  }
  if (!cursor.is_over()) return malformed();
  return request;
}

bool asks_for_allocation(std::string_view query, bool listing) {
  return query == kBaseAllocation || (listing && query == "base:");
}

}  // namespace cairn::door::nbd
