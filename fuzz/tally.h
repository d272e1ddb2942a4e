// SPDX-License-Identifier: Apache-2.0
// Tally: how much of something a fuzzer has tried, for one input is not one command. Printed when
// the fuzzer ends. CAIRN_FUZZ_GOAL=n in the environment ends it as soon as there were so many.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace cairn::fuzz {

// One of a process, in a static: its end is the end of the process.
class Tally {
 public:
  explicit Tally(const char* what) : what_(what) {
    if (const char* const goal = std::getenv("CAIRN_FUZZ_GOAL")) {
      goal_ = std::strtoull(goal, nullptr, 10);
    }
  }
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;
  ~Tally() { print(); }

  // Of one input.
  void add(uint64_t count) {
    ++inputs_;
    count_ += count;
    if (goal_ == 0 || count_ < goal_) return;
    print();
    std::_Exit(0);  // libFuzzer takes exit() for a failure of what it tests
  }

 private:
  void print() const {
    std::fprintf(stderr, "tried: %llu %s in %llu inputs\n", static_cast<unsigned long long>(count_),
                 what_, static_cast<unsigned long long>(inputs_));
  }

  const char* what_;
  uint64_t goal_ = 0;
  uint64_t count_ = 0;
  uint64_t inputs_ = 0;
};

}  // namespace cairn::fuzz
