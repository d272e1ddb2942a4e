// SPDX-License-Identifier: Apache-2.0
// Fields of a message one after the other: numbers as they lie in memory, texts behind their size.
// A format names its fields once and lets either of these go through them.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "base/bytes.h"

namespace cairn {

class FieldWriter {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void number(const T& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void text(const std::string& value) {
    number(static_cast<uint32_t>(value.size()));
    out += value;
  }
  std::string out;
};

// Bytes from strangers: what does not fit spoils it, and everything after reads as nothing.
class FieldReader {
 public:
  explicit FieldReader(Bytes from) : left_(from) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  void number(T& value) {
    value = {};
    if (left_.size() < sizeof(T)) return spoil();
    value = load<T>(left_);
    left_ = left_.subspan(sizeof(T));
  }
  void text(std::string& value) {
    uint32_t size = 0;
    number(size);
    if (size > left_.size()) return spoil();
    value = as_text(left_.first(size));
    left_ = left_.subspan(size);
  }
  void spoil() {
    good_ = false;
    left_ = {};
  }
  bool is_good() const { return good_; }
  // All of it was read, and it was sound.
  bool is_over() const { return good_ && left_.empty(); }

 private:
  Bytes left_;
  bool good_ = true;
};

}  // namespace cairn
