// SPDX-License-Identifier: Apache-2.0
// The number of a medium (drive::Incarnation), and what it is worth to whoever remembered it: what
// kind it is, by its last bits.
//
//   ......1   one medium: all that it holds comes and goes together. A label that is found on it
//             proves the rest, whatever its number is now: it may have been copied.
//   .....10   of several media, each of which may come back empty without the others: another
//             number says that one of them is another, though the label be there.
//   ....100   of a name that may change while the contents stay, or stay while they change: it
//             proves nothing after another opening.
//   0         not known.
#pragma once

#include <cstdint>

#include "base/rng.h"

namespace cairn {

namespace medium_id_internal {
inline constexpr uint64_t kKindMask = 7;
inline constexpr uint64_t kSeveral = 2;
inline constexpr uint64_t kNamed = 4;
}  // namespace medium_id_internal

// Of one medium, from anything that is drawn or hashed.
constexpr uint64_t medium_id_of_one(uint64_t hash) { return hash | 1; }
// Of a name.
constexpr uint64_t medium_id_of_name(uint64_t hash) {
  return (hash & ~medium_id_internal::kKindMask) | medium_id_internal::kNamed;
}
constexpr bool is_medium_of_several(uint64_t id) {
  return (id & 3) == medium_id_internal::kSeveral;
}
constexpr bool is_medium_of_name(uint64_t id) { return id != 0 && (id & 3) == 0; }

// Of the two together, in this order; 0: not known, as either is not.
inline uint64_t combined_medium_id(uint64_t one, uint64_t other) {
  if (one == 0 || other == 0) return 0;
  const uint64_t mixed = mix64(mix64(one) ^ other);
  if (is_medium_of_name(one) || is_medium_of_name(other)) return medium_id_of_name(mixed);
  return (mixed & ~medium_id_internal::kKindMask) | medium_id_internal::kSeveral;
}

// Of the two together where each has a label of its own, by which it is known: another in place of
// the second is noticed without a number, unless it is of several media itself.
inline uint64_t labelled_medium_id(uint64_t one, uint64_t other) {
  return is_medium_of_several(other) ? combined_medium_id(one, other) : one;
}

// Whether a drive with a label that remembers one number, and that has another now, is not all that
// it was.
constexpr bool is_other_medium(uint64_t remembered, uint64_t now) {
  return is_medium_of_several(remembered) && is_medium_of_several(now) && remembered != now;
}

}  // namespace cairn
