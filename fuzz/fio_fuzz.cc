// SPDX-License-Identifier: Apache-2.0
// Any bytes as what fio measured: points that a model can run, or a refusal that says something.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "plan/flash/fio_points.h"

namespace {

void check_side(const std::optional<cairn::plan::LoadSide>& side) {
  if (!side) return;
  CHECK(std::isfinite(side->iops) && side->iops > 0);
  CHECK(std::isfinite(side->mean_ns) && side->mean_ns > 0);
  CHECK(std::isfinite(side->p99_ns) && side->p99_ns >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn::plan;
  const auto found = parse_fio({reinterpret_cast<const char*>(data), size});
  if (!found) {
    CHECK(!found.error().text.empty());
    return 0;
  }
  CHECK(!found->points.empty());
  for (const FioPoint& point : found->points) {
    CHECK(point.read || point.write);
    CHECK(point.block_bytes > 0 && point.block_bytes % cairn::flash::kSectorBytes == 0);
    CHECK(point.depth > 0 && point.depth <= 65535);
    CHECK(point.read_fraction >= 0 && point.read_fraction <= 1);
    CHECK(point.size_part > 0 && point.size_part <= 1);
    check_side(point.read);
    check_side(point.write);
    CHECK(!load_text(point).empty());
  }
  return 0;
}
