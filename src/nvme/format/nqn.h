// SPDX-License-Identifier: Apache-2.0
// NVMe qualified names: who a host or a subsystem is.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/error.h"

namespace cairn::nvme {

inline constexpr size_t kNqnMax = 223;  // bytes, without the terminating zero
inline constexpr std::string_view kDiscoveryNqn = "nqn.2014-08.org.nvmexpress.discovery";

// Whether `text` is a proper name: "nqn.", a year and month, a dot, and at least one more byte,
// none of them a space or a control character, kNqnMax at most. For names we give; those of others
// are taken as they come, because Linux lets its users name hosts and subsystems freely.
bool is_nqn(std::string_view text);

// A name in its 256-byte field, ended and filled up with zeroes.
class NqnField {
 public:
  // `nqn` is at most kNqnMax bytes (CHECK).
  void set(std::string_view nqn);

  // The name, valid as long as this; kInvalid if it is empty or longer than kNqnMax.
  Result<std::string_view> get() const;
  bool is_empty() const { return chars_[0] == '\0'; }

 private:
  std::array<char, 256> chars_{};
};
static_assert(sizeof(NqnField) == 256 && alignof(NqnField) == 1);

}  // namespace cairn::nvme
