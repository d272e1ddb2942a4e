// SPDX-License-Identifier: Apache-2.0
#include "base/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace cairn {

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) text += fmt::format("{:<{}}  ", row[i], widths[i]);
    if (!row.empty()) text += row.back();
    text += '\n';
  }
  return text;
}

}  // namespace cairn
