// SPDX-License-Identifier: Apache-2.0
#include "nvme/format/nqn.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "base/error.h"

namespace cairn::nvme {

// Whether `text` has the form of `shape`, in which 0 stands for any digit.
static bool has_shape(std::string_view text, std::string_view shape) {
  return std::ranges::equal(text, shape, [](char c, char form) {
    return form == '0' ? c >= '0' && c <= '9' : c == form;
  });
}

bool is_nqn(std::string_view text) {
  constexpr std::string_view kShape = "nqn.0000-00.";
  if (text.size() <= kShape.size() || text.size() > kNqnMax) return false;
  if (!has_shape(text.substr(0, kShape.size()), kShape)) return false;
  return std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= ' ' || byte == 0x7f;
  });
}

void NqnField::set(std::string_view nqn) {
  CHECK(nqn.size() <= kNqnMax);
  chars_.fill('\0');
  std::ranges::copy(nqn, chars_.begin());
}

Result<std::string_view> NqnField::get() const {
  const std::string_view all(chars_.data(), chars_.size());
  const std::string_view text = all.substr(0, all.find('\0'));
  if (text.empty()) return fail(Errc::kInvalid, "an NVMe qualified name is empty");
  if (text.size() > kNqnMax) return fail(Errc::kInvalid, "an NVMe qualified name does not end");
  return text;
}

}  // namespace cairn::nvme
