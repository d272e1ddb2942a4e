// SPDX-License-Identifier: Apache-2.0
#include "server/control/control_path.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include "base/words.h"
#include "env/address.h"
#include "server/common/run_folder.h"

namespace cairn::server {

namespace {

constexpr std::string_view kOtherwise = "name a socket elsewhere with --control PATH";

Attempt<std::string> make_path(const std::string& name) {
  const Attempt<std::string> folder = make_run_folder(kOtherwise);
  if (!folder) return std::unexpected(folder.error());
  return check_control_path(fmt::format("{}/{}.sock", *folder, name));
}

}  // namespace

Attempt<std::string> make_control_path(std::string_view kind) {
  return make_path(fmt::format("{}-{}", kind, ::getpid()));
}

namespace {

std::vector<std::string> paths_of(std::span<const std::string_view> kinds) {
  std::vector<std::string> paths;
  for (const std::string& folder : run_folders_to_ask()) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      const bool is_one = std::ranges::any_of(kinds, [&name](std::string_view kind) {
        return name.starts_with(fmt::format("{}-", kind)) && name.ends_with(".sock");
      });
      if (is_one) paths.push_back(entry.path().string());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

}  // namespace

std::vector<std::string> control_paths() {
  constexpr std::array<std::string_view, 1> kKinds = {"server"};
  return paths_of(kKinds);
}

std::vector<std::string> all_control_paths() {
  constexpr std::array<std::string_view, 4> kKinds = {"server", "arbiter", "kv", "rack"};
  return paths_of(kKinds);
}

Attempt<std::string> check_control_path(const std::string& path) {
  if (env::Address::parse("unix:" + path)) return path;
  return refuse(
      fmt::format("{} cannot be the path of a socket: name a shorter one, of 1 to 107 "
                  "characters",
                  in_quotes(path)));
}

}  // namespace cairn::server
