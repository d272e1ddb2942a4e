// SPDX-License-Identifier: Apache-2.0
#include "apps/box/shelf_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "apps/words.h"
#include "fabric/host/uuid.h"

namespace cairn::apps {

namespace {

bool is_uuid(const std::string& name) {
  const auto id = fabric::parse_uuid(name);
  return id && fabric::uuid_text(*id) == name;
}

}  // namespace

void remove_shelf_file(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
}

Attempt<void> sweep_shelf(const std::string& folder, const std::set<std::string>& needed) {
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
  for (const auto& entry : all) {
    const std::string name = entry.path().filename().string();
    if (is_uuid(name) && !needed.contains(name) && entry.is_regular_file(error)) {
      remove_shelf_file(entry.path().string());
    }
  }
  return {};
}

}  // namespace cairn::apps
