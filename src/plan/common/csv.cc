// SPDX-License-Identifier: Apache-2.0
#include "plan/common/csv.h"

#include <fmt/format.h>

#include <charconv>

namespace cairn::plan {

namespace {

std::vector<std::string> cut(std::string_view line) {
  std::vector<std::string> fields;
  for (;;) {
    const size_t comma = line.find(',');
    fields.emplace_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

Attempt<Csv> Csv::parse(std::string_view text) {
  Csv csv;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    std::vector<std::string> fields = cut(line);
    if (csv.heading_.empty()) {
      csv.heading_ = fields;
      for (size_t i = 0; i < fields.size(); ++i) csv.columns_[fields[i]] = i;
      continue;
    }
    if (fields.size() > csv.heading_.size()) {
      return refuse(fmt::format("line {} has {} fields under a heading of {}", number,
                                fields.size(), csv.heading_.size()));
    }
    csv.rows_.push_back(std::move(fields));
  }
  if (csv.heading_.empty()) return refuse("has no heading");
  return csv;
}

std::string Csv::text(size_t row, const std::string& column) const {
  const auto found = columns_.find(column);
  if (found == columns_.end() || row >= rows_.size()) return {};
  return found->second < rows_[row].size() ? rows_[row][found->second] : std::string{};
}

double Csv::number(size_t row, const std::string& column) const {
  const std::string field = text(row, column);
  double value = 0;
  std::from_chars(field.data(), field.data() + field.size(), value);
  return value;
}

}  // namespace cairn::plan
