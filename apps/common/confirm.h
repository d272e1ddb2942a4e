// SPDX-License-Identifier: Apache-2.0
// Confirmation: the user's word before something is lost that nobody can bring back.
#pragma once

#include <string_view>

#include "base/problem.h"

namespace CLI {
class App;
}

namespace cairn::apps {

class Confirmation {
 public:
  // Declares --yes.
  explicit Confirmation(CLI::App& app);

  // `loss` says what is lost, as a sentence without its end. On a terminal the user is asked, and
  // "y" or "yes" means to go on; elsewhere --yes must have been given. The Problem: it was not.
  Attempt<void> ask(std::string_view loss) const;

 private:
  bool yes_ = false;
};

}  // namespace cairn::apps
