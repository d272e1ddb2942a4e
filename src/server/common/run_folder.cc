// SPDX-License-Identifier: Apache-2.0
#include "server/common/run_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/words.h"

namespace cairn::server {

std::string run_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::error_code error;
  if (runtime != nullptr && runtime[0] == '/' && std::filesystem::is_directory(runtime, error)) {
    return fmt::format("{}/cairn", runtime);
  }
  return fmt::format("/tmp/cairn-{}", ::getuid());
}

Attempt<void> check_run_folder(const std::string& folder, std::string_view otherwise) {
  struct stat info = {};
  if (::lstat(folder.c_str(), &info) != 0) {
    return refuse(fmt::format("the folder {} cannot be used ({}): {}", in_quotes(folder),
                              std::strerror(errno), otherwise));
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::getuid()) {
    return refuse(fmt::format("{} is not a folder of this user: remove it, or {}",
                              in_quotes(folder), otherwise));
  }
  if ((info.st_mode & 0077) != 0) {
    return refuse(fmt::format("{} is open to others: run 'chmod 700 {}', or {}", in_quotes(folder),
                              folder, otherwise));
  }
  return {};
}

Attempt<std::string> make_run_folder(std::string_view otherwise) {
  std::string folder = run_folder();
  (void)::mkdir(folder.c_str(), 0700);  // why it could not be made, the check finds out
  if (const Attempt<void> checked = check_run_folder(folder, otherwise); !checked) {
    return std::unexpected(checked.error());
  }
  return folder;
}

std::vector<std::string> run_folders_to_ask() {
  constexpr const char* kServices = "/run/cairn";
  const std::string own = run_folder();
  std::vector<std::string> folders;
  if (check_run_folder(own, "")) folders.push_back(own);
  if (own != kServices && ::access(kServices, R_OK | X_OK) == 0) folders.emplace_back(kServices);
  return folders;
}

std::string socket_to_ask(std::string_view name) {
  for (const std::string& folder : run_folders_to_ask()) {
    std::string path = fmt::format("{}/{}", folder, name);
    if (::access(path.c_str(), F_OK) == 0) return path;
  }
  return fmt::format("{}/{}", run_folder(), name);
}

}  // namespace cairn::server
