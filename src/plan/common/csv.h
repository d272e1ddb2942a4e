// SPDX-License-Identifier: Apache-2.0
// Tables of numbers as comma-separated lines under a heading.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"

namespace cairn::plan {

class Csv {
 public:
  // The Problem names the line.
  static Attempt<Csv> parse(std::string_view text);

  const std::vector<std::string>& heading() const { return heading_; }
  size_t rows() const { return rows_.size(); }
  bool has(const std::string& column) const { return columns_.contains(column); }
  // Empty when the row or the column is missing.
  std::string text(size_t row, const std::string& column) const;
  // Zero for what is empty or not a number.
  double number(size_t row, const std::string& column) const;

 private:
  std::vector<std::string> heading_;
  std::map<std::string, size_t> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace cairn::plan
