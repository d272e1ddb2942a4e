// SPDX-License-Identifier: Apache-2.0
// Which Cairn this is. Filled in by the build (cmake/CairnBuildInfo.cmake).
#pragma once

#include <string_view>

namespace cairn::report {

struct BuildInfo {
  std::string_view version;     // "0.1.0"
  std::string_view commit;      // 40 digits, "-dirty" when files differed; "unknown" outside git
  std::string_view compiler;    // "Clang 19.1.7"
  std::string_view build_type;  // "Release"
};
const BuildInfo& build_info();

}  // namespace cairn::report
