// SPDX-License-Identifier: Apache-2.0
// ContentChanger: a layer that can be told to hold something else, as a rollback does.
#pragma once

#include <string>
#include <vector>

namespace cairn::drive {

// For drives. Layers above that keep something of what they wrote or read, a cache or a map, would
// go on with it: LiveStack::tell() refuses such a command below any but filters.
class ContentChanger {
 public:
  // Whether these words, told to the drive, change what reads of it give.
  virtual bool changes_contents(const std::vector<std::string>& args) const = 0;

 protected:
  ~ContentChanger() = default;
};

}  // namespace cairn::drive
