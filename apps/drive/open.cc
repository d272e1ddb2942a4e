// SPDX-License-Identifier: Apache-2.0
#include "apps/drive/open.h"

#include <algorithm>
#include <utility>

#include "apps/box/advice.h"
#include "apps/box/drive_option.h"

namespace cairn::apps {

namespace {

constexpr std::string_view kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

// How much of the text is a name. A drive's own text has a ':' before its first '='.
size_t name_length(std::string_view text) {
  const size_t end = text.find('=');
  const bool is_name =
      end != std::string_view::npos && end > 0 && text.find_first_not_of(kNameLetters) == end;
  return is_name ? end : 0;
}

}  // namespace

Attempt<DriveWords> parse_drive_words(std::string_view text) {
  const size_t length = name_length(text);
  Attempt<drive::Spec> spec = parse_drive(length == 0 ? text : text.substr(length + 1));
  if (!spec) return std::unexpected(spec.error());
  return DriveWords{.name = std::string(text.substr(0, length)), .spec = std::move(*spec)};
}

Attempt<std::unique_ptr<drive::Source>> open_drive(env::Env& env, const DriveWords& words) {
  Result<std::unique_ptr<drive::Source>> source = drive::Source::make(env, words.spec);
  if (!source) return std::unexpected(cannot_serve(words.spec, source.error()));
  return std::move(*source);
}

}  // namespace cairn::apps
