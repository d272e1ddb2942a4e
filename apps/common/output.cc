// SPDX-License-Identifier: Apache-2.0
#include "apps/common/output.h"

#include <cstdio>

namespace cairn::apps {

void say(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

bool finish_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  std::fputs("cairn: the output could not be written: make room where it goes.\n", stderr);
  return false;
}

}  // namespace cairn::apps
