// SPDX-License-Identifier: Apache-2.0
// The ends of keys, as words of commands say them and replies tell them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "door/resp/command.h"

namespace cairn::door::resp {

// How a word says when a key ends: in seconds or milliseconds, from now or from 1970.
struct ExpiryForm {
  bool is_in_seconds = true;
  bool is_absolute = false;
};

// The form that an option of SET or GETEX names: EX, PX, EXAT, PXAT. None: it is another word.
std::optional<ExpiryForm> expiry_form(std::string_view option);

// When a key ends; what is later than can be kept is the latest that can. None, and an error in
// the reply: the word is no number, or too large. `is_positive`: it must be above 0.
std::optional<WallTime> expiry_word(Call& call, std::string_view word, ExpiryForm form,
                                    bool is_positive);

// Milliseconds since 1970.
constexpr int64_t ms_of(WallTime time) { return time.ns / 1'000'000; }

}  // namespace cairn::door::resp
