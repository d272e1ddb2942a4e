// SPDX-License-Identifier: Apache-2.0
#include "rack/store_text.h"

#include <fmt/format.h>

#include "base/error_text.h"

namespace cairn::rack {

std::string store_text(const Error& error) {
  if (error == Errc::kDenied || error == Errc::kUnsupported) return error_text(error);
  return fmt::format(
      "the metadata store does not answer: {}: start it ('cairn rack serve', or etcd), or name "
      "another with --rack",
      error_text(error));
}

}  // namespace cairn::rack
