// SPDX-License-Identifier: Apache-2.0
// One of our numbers beside the reference's.
#pragma once

#include <cmath>
#include <string>
#include <utility>

namespace cairn::plan {

struct Comparison {
  std::string file;
  std::string case_name;
  std::string measure;
  double ours = 0;
  double reference = 0;
  double error = 0;      // relative; of exact measures the part that differs
  double tolerance = 0;  // 0 means exact
  bool ok() const { return error <= tolerance; }
};

// What is compared: the file that tells the reference, the case in it, and the measure.
struct Compared {
  std::string file;
  std::string case_name;
  std::string measure;
};

inline Comparison compare(Compared what, double ours, double reference, double tolerance) {
  const double scale = reference == 0 ? 1 : std::abs(reference);
  return {std::move(what.file),
          std::move(what.case_name),
          std::move(what.measure),
          ours,
          reference,
          std::abs(ours - reference) / scale,
          tolerance};
}

}  // namespace cairn::plan
