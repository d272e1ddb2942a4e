// SPDX-License-Identifier: Apache-2.0
// Leaves for tests whose services name files.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "crypto/base64.h"
#include "drive/encrypt.h"
#include "drive/stack.h"

namespace cairn::drive {

// Sources, and files that are in memory.
class LeavesWithFiles final : public SourceLeaves {
 public:
  explicit LeavesWithFiles(std::map<std::string, std::string> files) : files_(std::move(files)) {}
  std::expected<FileContent, std::string> read_file(const std::string& path) override {
    const auto found = files_.find(path);
    if (found == files_.end()) return std::unexpected("there is no file '" + path + "'");
    return FileContent(as_bytes(found->second));
  }

 private:
  std::map<std::string, std::string> files_;
};

// The text of a key file, another for each number.
inline std::string testing_key(uint8_t number) {
  std::vector<std::byte> key(kDriveKeySize, std::byte{number});
  key[0] = std::byte{0xa5};
  return crypto::to_base64(key);
}

}  // namespace cairn::drive
