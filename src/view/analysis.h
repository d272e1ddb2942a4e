// SPDX-License-Identifier: Apache-2.0
// Who suffers from what: bottlenecks and their victims, and why a volume is slow. Pure functions of
// a view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "view/types.h"
#include "view/view.h"

namespace cairn::view {

struct Victim {
  size_t flow = 0;        // of the view
  ComponentId because;    // the component that is at its limit
  bool is_direct = true;  // it uses that one; else it only shares a NetPipe with those that do
  bool suffers = false;   // its requests do wait
};
struct Bottlenecks {
  std::vector<ComponentId> congested;  // ascending: drives, their IOPipes, full NetPipes
  std::vector<Victim> victims;         // by flow; each once, direct before indirect
};

// Algorithm 1 of Flint: from drives that are congested back to their IOPipes, to the NetPipes of
// those who use them, and to who else passes there. And, what it leaves out, NetPipes that are full
// themselves.
Bottlenecks find_bottlenecks(const View& view);

struct Sharer {
  std::string volume;
  IoType type = IoType::kRead;
  size_t size_class = 0;  // that most of its bytes are in
};
struct Cause {
  ComponentId component;  // a drive, or a NetPipe
  uint32_t permille = 0;  // of the time that the slowest requests took
  bool is_congested = false;
  std::optional<Sharer> shared_with;  // who else loads it most
};
struct Why {
  std::string volume;
  uint64_t requests = 0;  // in the window
  Duration p99;
  std::vector<Cause> causes;  // the largest first; their sum is 1000, if there are any
  // It, or those that use its drives, when they do not keep to their share.
  std::vector<Offender> offenders = {};
};

// What the slowest hundredth of a volume's requests waited for. The view has all flows.
Why explain(const View& view, std::string_view volume);
// "vol1: 99% of 1200 requests in the last 200 ms took 2.38 ms or less.\n"
// "61% of its p99 is drive b1/d7 (congested), shared with vol3's 128 KiB writes.\n" ...
std::string text(const View& view, const Why& why);
// A sentence: who does what.
std::string text(const View& view, const Offender& offender);

}  // namespace cairn::view
