// SPDX-License-Identifier: Apache-2.0
// FabricBoxes: the boxes of one benchmark, each started when somebody needs it first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "bench/fabric_pair.h"

namespace cairn::bench {

// What distinguishes one box from another.
struct BoxKind {
  bool poll = false;
  std::optional<Duration> nap = Duration{0};  // env::WorldOptions
  fabric::DoorbellOptions doorbell;
  uint32_t targets = 1;
  uint32_t block_size = 4096;
  bool time_calls = false;
  std::string only_host;  // as BoxProcessOptions has it
};

// What all of them have in common.
struct BoxesOptions {
  WorldFactory world;  // of boxes and hosts
  int box_cpu = 0;
  int host_cpu = 1;
  uint64_t memory = 256_MiB;  // of each box
};

class FabricBoxes {
 public:
  explicit FabricBoxes(BoxesOptions options) : options_(std::move(options)) {}
  // A host and such a box. Lives as long as this. Errors as FabricPair::start.
  Result<FabricPair*> get(const BoxKind& kind);

 private:
  struct Started {
    BoxKind kind;
    std::unique_ptr<FabricPair> pair;
  };
  const BoxesOptions options_;
  std::vector<Started> started_;
};

}  // namespace cairn::bench
