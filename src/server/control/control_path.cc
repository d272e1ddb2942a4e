// SPDX-License-Identifier: Apache-2.0
#include "server/control/control_path.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/words.h"
#include "env/address.h"

namespace cairn::server {

namespace {

// The same for servers and for those who ask them.
std::string control_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::error_code error;
  if (runtime != nullptr && runtime[0] == '/' && std::filesystem::is_directory(runtime, error)) {
    return fmt::format("{}/cairn", runtime);
  }
  return fmt::format("/tmp/cairn-{}", ::getuid());
}

// Anybody may have made a folder in /tmp before us.
Attempt<void> check_folder(const std::string& folder) {
  struct stat info = {};
  if (::lstat(folder.c_str(), &info) != 0) {
    return refuse(
        fmt::format("the folder {} cannot be used ({}): name a socket with --control PATH",
                    in_quotes(folder), std::strerror(errno)));
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::getuid()) {
    return refuse(
        fmt::format("{} is not a folder of this user: remove it, or name a socket "
                    "elsewhere with --control PATH",
                    in_quotes(folder)));
  }
  if ((info.st_mode & 0077) != 0) {
    return refuse(
        fmt::format("{} is open to others: run 'chmod 700 {}', or name a socket "
                    "elsewhere with --control PATH",
                    in_quotes(folder), folder));
  }
  return {};
}

Attempt<std::string> make_path(const std::string& name) {
  const std::string folder = control_folder();
  (void)::mkdir(folder.c_str(), 0700);  // why it could not be made, check_folder finds out
  if (const Attempt<void> checked = check_folder(folder); !checked) {
    return std::unexpected(checked.error());
  }
  return check_control_path(fmt::format("{}/{}.sock", folder, name));
}

}  // namespace

Attempt<std::string> make_control_path() { return make_path(fmt::format("server-{}", ::getpid())); }

std::vector<std::string> control_paths() {
  std::vector<std::string> paths;
  const std::string folder = control_folder();
  if (!check_folder(folder)) return paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("server-") && name.ends_with(".sock"))
      paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths);
  return paths;
}

Attempt<std::string> check_control_path(const std::string& path) {
  if (env::Address::parse("unix:" + path)) return path;
  return refuse(
      fmt::format("{} cannot be the path of a socket: name a shorter one, of 1 to 107 "
                  "characters",
                  in_quotes(path)));
}

}  // namespace cairn::server
