// SPDX-License-Identifier: Apache-2.0
// Files: small files that services of a stack name, such as keys, read by whoever opens the stack.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include "crypto/secret.h"

namespace cairn::drive {

inline constexpr size_t kServiceFileMax = 512;
inline constexpr std::string_view kNoFile = "none";
using FileContent = crypto::SecretBytes<kServiceFileMax>;

class Files {
 public:
  // What the file holds, without the white space at its end; or why it cannot be had, as a
  // sentence that names the file and shows none of it. By default there are no files.
  virtual std::expected<FileContent, std::string> read_file(const std::string& path) {
    return std::unexpected("'" + path + "' cannot be read: this program has no files for services");
  }

 protected:
  ~Files() = default;
};

}  // namespace cairn::drive
