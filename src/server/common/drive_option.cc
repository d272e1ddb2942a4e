// SPDX-License-Identifier: Apache-2.0
#include "server/common/drive_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/units.h"
#include "base/words.h"
#include "model/flash/scale.h"
#include "plan/flash/flash_profile.h"

namespace cairn::server {

namespace {

void make_whole(std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error).lexically_normal();
  if (!error) path = whole.string();
}

Attempt<void> load_profile(drive::Spec& spec) {
  const std::vector<std::string> known = plan::flash_profile_names();
  if (std::ranges::find(known, spec.profile) == known.end() &&
      spec.profile.find_first_of("/.") != std::string::npos) {
    make_whole(spec.profile);
  }
  Attempt<flash::Parameters> parameters = plan::load_flash_profile(spec.profile);
  if (!parameters) return std::unexpected(parameters.error());
  if (parameters->mqsim) {
    return refuse(fmt::format(
        "profile {} has compat = \"mqsim\", which loses requests: choose another to serve it",
        in_quotes(spec.profile)));
  }
  const uint64_t room = flash::logical_bytes(*parameters);
  if (room < spec.size) {
    return refuse(
        fmt::format("profile {} has room for {}: choose a smaller size or another profile",
                    in_quotes(spec.profile), text_bytes(room)));
  }
  spec.flash = std::make_shared<const flash::Parameters>(std::move(*parameters));
  return {};
}

}  // namespace

Attempt<drive::Spec> parse_drive(std::string_view text) {
  auto spec = drive::Spec::parse(text);
  if (!spec) return refuse(spec.error());
  if (!spec->path.empty()) make_whole(spec->path);
  if (spec->kind == drive::Spec::Kind::kFlash) {
    if (const Attempt<void> loaded = load_profile(*spec); !loaded) {
      return std::unexpected(loaded.error());
    }
  }
  return std::move(*spec);
}

}  // namespace cairn::server
