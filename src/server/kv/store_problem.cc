// SPDX-License-Identifier: Apache-2.0
#include "server/kv/store_problem.h"

#include <fmt/format.h>

#include <string>

#include "base/error_text.h"
#include "base/words.h"

namespace cairn::server {

Problem cannot_use_store(std::string_view stack, const Error& error) {
  const std::string which = in_quotes(stack);
  if (error == Errc::kNotFound) {
    return {fmt::format("{} holds no keys and values: 'cairn kv serve' makes a store of a drive",
                        which)};
  }
  if (error == Errc::kUnsupported) {
    return {
        fmt::format("{} holds keys and values of another version of cairn: serve it with that "
                    "one",
                    which)};
  }
  if (error == Errc::kCorrupt) {
    return {
        fmt::format("the keys and values on {} are damaged: {}; take back a copy of the drive, "
                    "or another drive",
                    which, error_text(error))};
  }
  return {fmt::format("{} cannot be used for keys and values: {}", which, error_text(error))};
}

}  // namespace cairn::server
