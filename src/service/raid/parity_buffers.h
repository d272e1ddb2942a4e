// SPDX-License-Identifier: Apache-2.0
// ParityBuffers: blocks of the same rows, by symbol or by leg.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "drive/scratch.h"
#include "env/env.h"
#include "service/raid/parity_code.h"

namespace cairn::drive {

using ParityBuffers = std::array<Scratch, kSymbolsMax>;

// Room that is there already stays as it is. kLimit: there is none.
inline Result<void> make_room(env::Env& env, Scratch& buffer, uint64_t bytes) {
  if (!buffer.empty()) return {};
  Result<Scratch> made = Scratch::make(env, bytes);
  if (!made) return fail(made.error());
  buffer = std::move(*made);
  return {};
}

// As ParityCode takes them.
inline std::array<std::byte*, kSymbolsMax> pointers(const ParityBuffers& buffers) {
  std::array<std::byte*, kSymbolsMax> all{};
  for (size_t i = 0; i < buffers.size(); ++i) all[i] = buffers[i].data();
  return all;
}

}  // namespace cairn::drive
