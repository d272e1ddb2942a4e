// SPDX-License-Identifier: Apache-2.0
#include "base/error_text.h"

#include <string_view>

namespace cairn {

std::string error_text(const Error& error) {
  const std::string_view what = error.what();
  const size_t code_size = std::string_view(": ").size() + name(error.code()).size();
  return std::string(what) + error.text().substr(what.size() + code_size);
}

}  // namespace cairn
