// SPDX-License-Identifier: Apache-2.0
#include "apps/box/shelf_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "apps/words.h"
#include "fabric/host/uuid.h"
#include "posix/fd.h"

namespace cairn::apps {

namespace {

bool is_uuid(const std::string& name) {
  const auto id = fabric::parse_uuid(name);
  return id && fabric::uuid_text(*id) == name;
}

// A file that was made for somebody who was never told.
bool is_blank_and_free(const std::string& path) {
  const posix::Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat info = {};
  return file.get() >= 0 && ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode) &&
         info.st_blocks == 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

void remove_shelf_file(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
}

Attempt<std::vector<std::string>> sweep_shelf(const std::string& folder,
                                              const std::set<std::string>& needed) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::filesystem::directory_iterator all;
  if (!error) all = std::filesystem::directory_iterator(folder, error);
  if (error) {
    return refuse(
        fmt::format("the shelf's folder {} cannot be used ({}): name one that this user "
                    "may write to",
                    in_quotes(folder), error.message()));
  }
  std::vector<std::string> left;
  for (const auto& entry : all) {
    const std::string name = entry.path().filename().string();
    if (!is_uuid(name) || needed.contains(name)) continue;
    const std::string path = entry.path().string();
    if (is_blank_and_free(path)) {
      remove_shelf_file(path);
    } else {
      left.push_back(path);
    }
  }
  return left;
}

}  // namespace cairn::apps
