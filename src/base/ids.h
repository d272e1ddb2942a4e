// SPDX-License-Identifier: Apache-2.0
// Strong ids: `using ExtentId = Id<struct ExtentIdTag>;` makes a number that mixes with no other.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace cairn {

template <class Tag, class Rep = uint64_t>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Rep value_{};
};

// The logical block address of a drive, in that drive's blocks.
using Lba = Id<struct LbaTag>;
// A core of this process: 0, 1, ... in the order given with --cores.
using CoreId = Id<struct CoreIdTag, uint32_t>;

}  // namespace cairn

template <class Tag, class Rep>
struct std::hash<cairn::Id<Tag, Rep>> {
  size_t operator()(cairn::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value()); }
};
