// SPDX-License-Identifier: Apache-2.0
#include "server/config/shelf_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/uuid.h"
#include "base/words.h"
#include "world/posix/fd.h"

namespace cairn::server {

namespace {

bool is_uuid(const std::string& name) {
  const auto id = parse_uuid(name);
  return id && uuid_text(*id) == name;
}

// A file that was made for somebody who was never told.
bool is_blank_and_free(const std::string& path) {
  const posix::Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat info = {};
  return file.get() >= 0 && ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode) &&
         info.st_blocks == 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

uint64_t bytes_taken(const std::string& path) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_blocks) * 512 : 0;
}

std::error_code sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const posix::Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() >= 0 && ::fsync(opened.get()) == 0) return {};
  return {errno, std::generic_category()};
}

}  // namespace

Attempt<void> remove_shelf_file(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (!error) error = sync_folder_of(path);
  if (!error) return {};
  return refuse(fmt::format("{} cannot be removed ({}): see that this user may write there",
                            in_quotes(path), error.message()));
}

Attempt<std::vector<StrayFile>> sweep_shelf(const std::string& folder,
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
  std::vector<StrayFile> left;
  for (const auto& entry : all) {
    const std::string name = entry.path().filename().string();
    if (!is_uuid(name) || needed.contains(name)) continue;
    const std::string path = entry.path().string();
    const bool is_gone = is_blank_and_free(path) && remove_shelf_file(path);
    if (!is_gone) left.push_back({.path = path, .bytes = bytes_taken(path)});
  }
  return left;
}

}  // namespace cairn::server
