// SPDX-License-Identifier: Apache-2.0
// The fuzzer's bytes, taken from the front.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/bytes.h"

namespace cairn::fuzz {

class Input {
 public:
  explicit Input(Bytes bytes) : bytes_(bytes) {}
  bool is_over() const { return bytes_.empty(); }
  // As many as there are.
  Bytes take(size_t count) {
    const Bytes taken = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  // What is missing is zero.
  template <class T>
  T value() {
    std::array<std::byte, sizeof(T)> room{};
    std::ranges::copy(take(sizeof(T)), room.begin());
    return load<T>(room);
  }

 private:
  Bytes bytes_;
};

}  // namespace cairn::fuzz
