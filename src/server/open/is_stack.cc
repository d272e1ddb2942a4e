// SPDX-License-Identifier: Apache-2.0
#include "server/open/is_stack.h"

namespace cairn::server {

bool is_stack(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return false;
  text.remove_prefix(begin);
  const size_t name = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-");
  if (text.front() == '"') return true;
  if (name == std::string_view::npos) return false;
  if (text.starts_with("volume:")) return true;
  return text[name] == '(' || text.substr(name).starts_with("://");
}

bool is_drive_name(std::string_view text) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  return !text.empty() && text.find_first_not_of(kLetters) == text.npos;
}

}  // namespace cairn::server
