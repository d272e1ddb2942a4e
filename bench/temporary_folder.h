// SPDX-License-Identifier: Apache-2.0
// TemporaryFolder: a folder of our own, gone with all in it at the end.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace cairn::bench {

class TemporaryFolder {
 public:
  // In `within`, a folder that exists. Errors of the file system.
  static Result<TemporaryFolder> make(const std::string& within);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  std::string file(std::string_view name) const;

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace cairn::bench
