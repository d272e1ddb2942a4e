// SPDX-License-Identifier: Apache-2.0
// Rows of words in aligned columns.
#pragma once

#include <string>
#include <vector>

namespace cairn {

// Two spaces between columns, none at the ends of lines, each line ended. The first row is usually
// the heading. Rows may be shorter than others.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

}  // namespace cairn
