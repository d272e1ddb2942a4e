// SPDX-License-Identifier: Apache-2.0
// Tenant: whoever has volumes open in the arbiter's own process and gives them up when asked.
//
// Boxes and the arbiter know it by names of a form that no other client has, so that another
// arbiter may take volumes from it at any time: nobody reads or writes through it.
#pragma once

#include <string_view>

#include "task/task.h"
#include "volume/types.h"

namespace cairn::arbiter {

inline constexpr std::string_view kTenantPrefix = "arbiter/";
inline bool is_tenant(std::string_view client) { return client.starts_with(kTenantPrefix); }

class Tenant {
 public:
  // Returns when it has the volume open no more, and does not open it again for a while.
  virtual task::Task<void> give_up(volume::VolumeId id) = 0;

 protected:
  ~Tenant() = default;
};

}  // namespace cairn::arbiter
