// SPDX-License-Identifier: Apache-2.0
#include "trace/record.h"

#include <fmt/format.h>

namespace cairn::trace {

std::string Mistake::about(const std::string& file) const {
  std::string place = file;
  if (line > 0) place += fmt::format(", line {}", line);
  if (!field.empty()) place += fmt::format(", field {}", field);
  return fmt::format("{}: {}", place, text);
}

}  // namespace cairn::trace
