// SPDX-License-Identifier: Apache-2.0
#include "apps/box/drive_option.h"

#include <filesystem>
#include <utility>

namespace cairn::apps {

Attempt<drive::Spec> parse_drive(std::string_view text) {
  auto spec = drive::Spec::parse(text);
  if (!spec) return refuse(spec.error());
  if (spec->kind == drive::Spec::Kind::kFile) {
    std::error_code error;
    const auto whole = std::filesystem::absolute(spec->path, error).lexically_normal();
    if (!error) spec->path = whole.string();
  }
  return std::move(*spec);
}

}  // namespace cairn::apps
