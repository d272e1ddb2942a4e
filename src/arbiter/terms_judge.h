// SPDX-License-Identifier: Apache-2.0
// TermsJudge: whoever knows what drives can do says whether a volume's terms can be kept.
#pragma once

#include <string>

#include "arbiter/pool.h"
#include "base/problem.h"
#include "share/auction.h"

namespace cairn::arbiter {

class TermsJudge {
 public:
  virtual ~TermsJudge() = default;
  // Beside what the pool's other volumes were promised. The Problem names what cannot be kept. The
  // volume need not be there yet.
  virtual Attempt<void> judge(const Pool& pool, const std::string& volume,
                              const share::Terms& terms) const = 0;
};

}  // namespace cairn::arbiter
