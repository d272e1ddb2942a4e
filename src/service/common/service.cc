// SPDX-License-Identifier: Apache-2.0
#include "service/common/service.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::drive {

size_t ServiceOptions::index(std::string_view key) const {
  const auto found = std::ranges::find(known_, key, &ServiceOption::key);
  CHECK(found != known_.end(), "a service asks for its own options");
  return static_cast<size_t>(found - known_.begin());
}
uint64_t ServiceOptions::number(std::string_view key) const { return values_[index(key)].number; }
const std::string& ServiceOptions::text(std::string_view key) const {
  return values_[index(key)].text;
}

}  // namespace cairn::drive
