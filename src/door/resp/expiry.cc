// SPDX-License-Identifier: Apache-2.0
#include "door/resp/expiry.h"

#include <fmt/format.h>

#include <algorithm>

#include "door/resp/number.h"

namespace cairn::door::resp {

namespace {

constexpr int64_t kMsMax = INT64_MAX / 1'000'000;

}  // namespace

std::optional<ExpiryForm> expiry_form(std::string_view option) {
  if (is_word(option, "ex")) return ExpiryForm{.is_in_seconds = true, .is_absolute = false};
  if (is_word(option, "px")) return ExpiryForm{.is_in_seconds = false, .is_absolute = false};
  if (is_word(option, "exat")) return ExpiryForm{.is_in_seconds = true, .is_absolute = true};
  if (is_word(option, "pxat")) return ExpiryForm{.is_in_seconds = false, .is_absolute = true};
  return std::nullopt;
}

std::optional<WallTime> expiry_word(Call& call, std::string_view word, ExpiryForm form,
                                    bool is_positive) {
  const std::optional<int64_t> value = integer_word(call, word);
  if (!value) return std::nullopt;
  int64_t ms = *value;
  bool is_wrong = is_positive && ms <= 0;
  if (form.is_in_seconds) is_wrong |= __builtin_mul_overflow(ms, int64_t{1000}, &ms);
  if (!form.is_absolute) is_wrong |= __builtin_add_overflow(ms, ms_of(call.now), &ms);
  if (is_wrong) {
    call.reply.error(fmt::format("ERR invalid expire time in '{}' command", call.command.name));
    return std::nullopt;
  }
  return WallTime{std::clamp<int64_t>(ms, 0, kMsMax) * 1'000'000};
}

}  // namespace cairn::door::resp
