// SPDX-License-Identifier: Apache-2.0
#include "bench/temporary_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace cairn::bench {

Result<TemporaryFolder> TemporaryFolder::make(const std::string& within) {
  std::string path = (std::filesystem::path(within) / "cairn-bench-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) {
    return fail(Error::from_errno(errno, "make a folder for the files of this run"));
  }
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::file(std::string_view name) const {
  return fmt::format("{}/{}", path_, name);
}

}  // namespace cairn::bench
