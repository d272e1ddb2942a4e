// SPDX-License-Identifier: Apache-2.0
// Drives of a pool by their URIs, for arbiters and for those who have volumes open.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "arbiter/fence.h"
#include "base/problem.h"
#include "env/env.h"
#include "volume/mega_vol.h"

namespace cairn::server {

// Whether a drive of a pool may be named so, as far as the text says. Drives of boxes may, for all
// can reach them, and boxes keep out who lost a volume. A drive that one process alone reaches may
// not: others could neither use it nor be kept from it.
Attempt<void> check_mega_vol_uri(std::string_view text);

// The one place where it is chosen how drives of a pool are opened, and hosts kept from them.
// Outlives what was opened.
class MegaVols {
 public:
  explicit MegaVols(env::Env& env);
  ~MegaVols();

  volume::MegaVolSource& source() const;
  // For arbiters.
  arbiter::Fence& fence() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cairn::server
