// SPDX-License-Identifier: Apache-2.0
// The file that servers of a benchmark serve.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace cairn::bench {

// Makes it, full of what no server can tell from data: nothing in it is zero or alike. `size` is in
// whole MiB.
Result<void> make_served_file(const std::string& path, uint64_t size);
// Direct reads write back the pages that somebody else left dirty, and pay for it: after this, no
// contestant finds any.
Result<void> write_back(const std::string& path);

}  // namespace cairn::bench
