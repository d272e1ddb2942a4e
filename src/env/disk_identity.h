// SPDX-License-Identifier: Apache-2.0
// Which medium a disk is: what tells a file that was opened again from one made anew in its place.
#pragma once

#include <cstdint>

#include "env/disk.h"

namespace cairn::env {

// What a Disk is too if it knows.
class DiskIdentity {
 public:
  // The same each time this medium is opened, by whatever process, until its contents go with it:
  // a file that was deleted and made again has another one. 0: not known.
  virtual uint64_t medium_id() const = 0;

 protected:
  ~DiskIdentity() = default;
};

// That of any disk; 0 for one that does not know.
inline uint64_t medium_id(const Disk& disk) {
  const auto* known = dynamic_cast<const DiskIdentity*>(&disk);
  return known == nullptr ? 0 : known->medium_id();
}

}  // namespace cairn::env
