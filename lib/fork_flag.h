// SPDX-License-Identifier: Apache-2.0
// ForkFlag: set in the process that made it, and in no child of a fork, where threads are missing.
#pragma once

#include <memory>

namespace cairn::capi {

// One page of memory, which the kernel clears in a child.
class ForkFlag {
 public:
  // Holds nothing when there is no memory.
  static ForkFlag make();

  explicit operator bool() const { return page_ != nullptr; }
  bool is_set() const { return *page_; }

 private:
  struct Unmap {
    void operator()(bool* page) const;
  };
  std::unique_ptr<bool, Unmap> page_;
};

}  // namespace cairn::capi
