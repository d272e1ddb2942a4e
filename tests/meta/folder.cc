// SPDX-License-Identifier: Apache-2.0
#include "meta/folder.h"

#include <cstdlib>
#include <filesystem>  // lint: allow(scratch files)
#include <system_error>

#include "base/check.h"

namespace cairn::meta_tests {

Folder::Folder() : path_("/var/tmp/cairn-meta-XXXXXX") {
  CHECK(::mkdtemp(path_.data()) != nullptr, "/var/tmp takes a folder");
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);  // lint: allow(scratch files)
}

}  // namespace cairn::meta_tests
