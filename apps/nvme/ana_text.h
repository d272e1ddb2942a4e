// SPDX-License-Identifier: Apache-2.0
// States of asymmetric namespace access, as nvme-cli and Linux write them.
#pragma once

#include <string>

#include "nvme/format/ana_format.h"

namespace cairn::apps {

inline std::string ana_text(nvme::AnaState state) {
  switch (state) {
    case nvme::AnaState::kOptimized:
      return "optimized";
    case nvme::AnaState::kNonOptimized:
      return "non-optimized";
    case nvme::AnaState::kInaccessible:
      return "inaccessible";
    case nvme::AnaState::kPersistentLoss:
      return "persistent-loss";
    case nvme::AnaState::kChange:
      return "change";
  }
  return "invalid";
}

}  // namespace cairn::apps
