// SPDX-License-Identifier: Apache-2.0
// Problem: what went wrong, told to the person at the terminal.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace cairn {

// Whole sentences that name what, where and what to do next. One to a line; no final newline.
struct Problem {
  std::string text;
};

template <class T = void>
using Attempt = std::expected<T, Problem>;

inline std::unexpected<Problem> refuse(std::string text) {
  return std::unexpected(Problem{std::move(text)});
}

// What the process ends with.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

}  // namespace cairn
