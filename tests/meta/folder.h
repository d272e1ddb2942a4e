// SPDX-License-Identifier: Apache-2.0
// Folder: a scratch folder on a real disk, removed with everything in it.
#pragma once

#include <string>
#include <string_view>

namespace cairn::meta_tests {

class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace cairn::meta_tests
