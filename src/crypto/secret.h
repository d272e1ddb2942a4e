// SPDX-License-Identifier: Apache-2.0
// Memory for secrets: wiped when it goes, and never in a core file where it is kept for long.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"

namespace cairn::crypto {

// Overwrites bytes in a way that no compiler leaves out.
void wipe(MutableBytes bytes);

// Whether both are the same, in a time that depends on the sizes only.
bool is_equal(Bytes a, Bytes b);

// Up to Max bytes in place, wiped when they go. For what lives as long as a computation.
template <size_t Max>
class SecretBytes {
 public:
  SecretBytes() = default;
  // `size` is at most Max; the bytes are zero.
  explicit SecretBytes(size_t size) : size_(size) { CHECK(size <= Max); }
  explicit SecretBytes(Bytes bytes) : SecretBytes(bytes.size()) {
    std::ranges::copy(bytes, bytes_.begin());
  }
  SecretBytes(const SecretBytes&) = default;
  SecretBytes& operator=(const SecretBytes&) = default;
  ~SecretBytes() { wipe(bytes_); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Bytes bytes() const { return Bytes(bytes_).first(size_); }
  MutableBytes mutable_bytes() { return MutableBytes(bytes_).first(size_); }

 private:
  std::array<std::byte, Max> bytes_{};
  size_t size_ = 0;
};

// A secret for the life of a process, in pages of its own that core files leave out. Move-only.
class KeptSecret {
 public:
  KeptSecret() = default;
  // A copy; the caller wipes its own.
  explicit KeptSecret(Bytes bytes);
  KeptSecret(KeptSecret&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  KeptSecret& operator=(KeptSecret&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~KeptSecret();

  Bytes bytes() const { return bytes_; }

 private:
  MutableBytes bytes_;
};

}  // namespace cairn::crypto
