// SPDX-License-Identifier: Apache-2.0
// Row: a line cut into fields that have names. Reading a field never fails; the first field that
// was not what it should be is remembered, and what was read counts only without one.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "trace/record.h"

namespace cairn::trace {

class Row {
 public:
  static constexpr size_t kFieldsMax = 24;

  // Both live as long as the row. Runs of blanks are one separator, of ',' each counts.
  Row(std::string_view line, char separator, std::span<const char* const> names);

  size_t size() const { return count_; }
  std::string_view operator[](size_t field) const {
    return field < count_ ? fields_[field] : std::string_view{};
  }

  // There must be as many fields as names.
  void expect_all();
  uint64_t whole(size_t field, uint64_t max);
  // "12.000000345" of a unit that has so many nanoseconds; digits beyond nanoseconds are cut.
  Nanos time(size_t field, Nanos unit);
  void offset(size_t field, uint64_t unit, Record& into);
  void bytes(size_t field, uint64_t unit, Record& into);
  void direction(size_t field, std::string_view read, std::string_view write, Record& into);
  void refuse(size_t field, std::string text);

  // With no line number.
  const std::optional<Mistake>& mistake() const { return mistake_; }

 private:
  const char* name(size_t field) const { return field < names_.size() ? names_[field] : ""; }

  std::span<const char* const> names_;
  std::array<std::string_view, kFieldsMax> fields_;
  size_t count_ = 0;
  std::optional<Mistake> mistake_;
};

// What somebody wrote, short and printable.
std::string shown(std::string_view text);

}  // namespace cairn::trace
