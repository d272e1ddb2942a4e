// SPDX-License-Identifier: Apache-2.0
// What a host proves itself with, and how.
#pragma once

#include "nvme/auth/auth_policy.h"

namespace cairn::fabric {

// With a controller key the target has to prove itself too, whether it asks for proof or not.
struct HostCredentials {
  nvme::AuthKeys keys;
  nvme::AuthMeans means;

  bool operator==(const HostCredentials&) const = default;
};

}  // namespace cairn::fabric
