// SPDX-License-Identifier: Apache-2.0
#include "server/common/default_nqn.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/rng.h"
#include "base/words.h"
#include "config/files.h"

namespace cairn::server {

namespace {

std::string plain_nqn(const std::string& kind) {
  return fmt::format("nqn.2026-11.io.cairn:{}", kind);
}

uint64_t hash_of(std::string_view text) {
  uint64_t value = 1;
  for (const char c : text) value = mix64(value ^ static_cast<uint8_t>(c));
  return value;
}

std::string named(const std::string& kind, uint64_t number) {
  return fmt::format("{}-{:012x}", plain_nqn(kind), number & 0xffff'ffff'ffff);
}

Attempt<std::string> draw_nqn(const std::string& kind) {
  const char* source = "/proc/sys/kernel/random/uuid";
  const std::optional<std::string> drawn = config::first_line(source);
  if (!drawn || drawn->empty()) {
    return refuse(
        fmt::format("{} gives no new name for the subsystem: mount /proc, or name it with --nqn "
                    "nqn.2026-11.io.cairn:NAME",
                    source));
  }
  return named(kind, hash_of(*drawn));
}

// What stays of a drive when this process ends; empty: nothing.
std::string lasting_part(const nvme::NamespaceOptions& drive) {
  if (drive.stack.empty()) {
    if (drive.drive.path.empty()) return "";
    std::error_code error;
    const auto whole = std::filesystem::absolute(drive.drive.path, error).lexically_normal();
    return error ? drive.drive.path : whole.string();
  }
  const bool lasts = drive.stack.find("file:") != std::string::npos ||
                     drive.stack.find("file=") != std::string::npos ||
                     drive.stack.find("://") != std::string::npos;
  return lasts ? drive.stack : "";
}

Attempt<std::string> kept_nqn(const std::string& kind, const std::string& state) {
  std::error_code error;
  const std::string file = state + "/nqn";
  if (const std::optional<std::string> kept = config::first_line(file)) {
    if (!kept->empty()) return *kept;
    return refuse(fmt::format(
        "{} is empty: write the box's NQN into it, or delete it for a new one", in_quotes(file)));
  }
  // That of every box, when names were not kept.
  if (std::filesystem::exists(state + "/changes.toml", error)) return plain_nqn(kind);
  std::filesystem::create_directories(state, error);  // if not, writing says why
  Attempt<std::string> drawn = draw_nqn(kind);
  if (!drawn) return drawn;
  if (Attempt<void> written = config::replace_file(file, *drawn + "\n"); !written) {
    return std::unexpected(written.error());
  }
  return drawn;
}

}  // namespace

Attempt<std::string> make_default_nqn(const std::string& kind, const std::string& state,
                                      const std::vector<nvme::NamespaceOptions>& drives) {
  if (!state.empty()) return kept_nqn(kind, state);
  std::string lasting;
  for (const nvme::NamespaceOptions& drive : drives) {
    const std::string part = lasting_part(drive);
    if (!part.empty()) lasting += part + "\n";
  }
  if (lasting.empty()) return draw_nqn(kind);
  return named(kind, hash_of(config::first_line("/etc/machine-id").value_or("") + "\n" + lasting));
}

}  // namespace cairn::server
