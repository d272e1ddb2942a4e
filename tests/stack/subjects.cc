// SPDX-License-Identifier: Apache-2.0
#include "stack/subjects.h"

#include <fmt/format.h>

#include "stack/services.h"
#include "testing/stack/files.h"

namespace cairn::stack {

namespace {

std::string over_disks(const drive::Service& service) {
  int disks = 0;
  return drive::example_over(
      service, [&] { return drive::testing_leaf(service, fmt::format("d{}", disks++)); });
}

std::string over_service(const drive::Service& above, const drive::Service& below) {
  int disks = 0;
  const auto leaf = [&] { return drive::testing_leaf(below, fmt::format("d{}", disks++)); };
  return drive::example_over(above, [&] { return drive::example_over(below, leaf); });
}

}  // namespace

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.stack; }

std::vector<Subject> every_service() {
  // Ways of working that differ as much as services do.
  std::vector<Subject> subjects = {
      {"cache_in_memory", "cache(file:d0,size=4M, memory=256K)"},
      {"cache_through", "cache(file:d0,size=4M, file:d1,size=2M, mode=through)"},
      {"compress_zstd", "compress(file:d0,size=4M, codec=zstd)"},
      {"mirror_of_three", "mirror(file:d0,size=4M, file:d1,size=4M, file:d2,size=4M)"},
      {"parity_of_two",
       "parity(file:d0,size=4M, file:d1,size=4M, file:d2,size=4M, file:d3,size=4M, parity=2)"},
      {"spillover_small", "spillover(file:d0,size=512K, file:d1,size=4M, drain_ms=1)"},
      {"thin_small_chunks", "thin(file:d0,size=4M, chunk=16K)"},
  };
  for (const drive::Service* service : drive::services()) {
    subjects.push_back({std::string(service->name), over_disks(*service)});
  }
  return subjects;
}

std::vector<Subject> every_pair() {
  std::vector<Subject> subjects;
  for (const drive::Service* above : drive::services()) {
    if (!above->leaf_only.empty()) continue;
    for (const drive::Service* below : drive::services()) {
      subjects.push_back(
          {fmt::format("{}_over_{}", above->name, below->name), over_service(*above, *below)});
    }
  }
  return subjects;
}

}  // namespace cairn::stack
