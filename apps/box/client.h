// SPDX-License-Identifier: Apache-2.0
// What the commands that ask a running box have in common.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/problem.h"
#include "server/control/control_format.h"

namespace CLI {
class App;
}

namespace cairn::apps {

class BoxClient {
 public:
  // Declares --control, --nqn, --timeout and --json.
  explicit BoxClient(CLI::App& app);

  // Asks the box that the options mean. `request.nqn` is set from them.
  Attempt<server::Json> ask(server::ControlRequest request) const;
  // Asks each box that the options mean: one, or all of this user. With the path of its socket.
  Attempt<std::vector<std::pair<std::string, server::Json>>> ask_all(
      server::ControlRequest request) const;
  // Prints the answer as JSON if that was asked for, else `text`.
  void print(const server::Json& answer, std::string_view text) const;
  bool json() const { return json_; }

 private:
  std::string control_;
  std::string nqn_;
  double timeout_s_ = 30;
  bool json_ = false;
};

}  // namespace cairn::apps
