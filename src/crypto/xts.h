// SPDX-License-Identifier: Apache-2.0
// AES-256-XTS (IEEE 1619, NIST SP 800-38E): encryption of sectors in place, length kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"

namespace cairn::crypto {

inline constexpr size_t kXtsKeySize = 64;       // two keys of 32 bytes
inline constexpr size_t kXtsSectorMin = 16;     // bytes
inline constexpr size_t kXtsSectorMax = 65536;  // far below the 2^20 blocks that the norm allows

// A key made ready. The tweak of a sector is its number as 16 bytes, little-endian, as IEEE 1619
// has it for data units. Used on one core; its memory is wiped when it goes.
class Xts {
 public:
  // `key` is kXtsKeySize bytes (CHECK); the caller wipes its own. Its halves differ (CHECK): the
  // norm forbids equal ones, and keys that were drawn or derived never have them.
  explicit Xts(Bytes key);
  Xts(Xts&&) noexcept;
  Xts& operator=(Xts&&) noexcept;
  ~Xts();

  // `to` may be `from`, and is as long: a multiple of 16 within the limits above (CHECK).
  void encrypt(uint64_t sector, Bytes from, MutableBytes to);
  void decrypt(uint64_t sector, Bytes from, MutableBytes to);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::crypto
