// SPDX-License-Identifier: Apache-2.0
// Subjects: the stacks of which every promise of docs/drive.md is tested. They come from the table
// of services, so that a new one is among them without another word.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

namespace cairn::stack {

struct Subject {
  std::string name;   // of a test
  std::string stack;  // on simulated disks d0, d1, ...
};
void PrintTo(const Subject& subject, std::ostream* out);

// Each service by its example, and in the other ways in which it works.
std::vector<Subject> every_service();
// Each service over each.
std::vector<Subject> every_pair();

inline std::string subject_name(const testing::TestParamInfo<Subject>& info) {
  return info.param.name;
}

}  // namespace cairn::stack
