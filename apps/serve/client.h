// SPDX-License-Identifier: Apache-2.0
// What the commands that ask a running server have in common.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/problem.h"
#include "env/env.h"
#include "server/control/control_client.h"
#include "server/control/control_format.h"
#include "task/task.h"

namespace CLI {
class App;
}

namespace cairn::apps {

class ServerClient {
 public:
  // Declares --control, --nqn, --timeout and --json.
  explicit ServerClient(CLI::App& app);

  // Asks the one server that the options and the request's drive mean. `request.nqn` is set from
  // the options.
  Attempt<server::Json> ask(server::ControlRequest request) const;
  // Asks each server that is meant: one, or all of this user. With the path of its socket.
  using Answers = std::vector<std::pair<std::string, server::Json>>;
  Attempt<Answers> ask_all(server::ControlRequest request) const;
  // The drives of all of them as one answer, each with the socket it was asked at.
  task::Task<Attempt<server::Json>> ask_for_drives(env::Env& env,
                                                   server::ControlRequest request) const;
  // The socket of the only server that is not that of the drive.
  Attempt<std::string> find_another(const std::string& drive) const;

  // Prints the answer as JSON if that was asked for, else `text`.
  void print(const server::Json& answer, std::string_view text) const;
  bool json() const { return json_; }
  // An answer as programs are told, with its version.
  static std::string json_text(const server::Json& answer);

 private:
  server::Wanted wanted_by(const server::ControlRequest& request) const;
  task::Task<Attempt<server::Json>> ask_one(env::Env& env, server::ControlRequest request) const;
  task::Task<Attempt<Answers>> ask_each(env::Env& env, server::ControlRequest request) const;
  task::Task<Attempt<std::string>> find_another_in(env::Env& env, std::string drive) const;

  std::string control_;  // empty: to be found
  std::string nqn_;
  double timeout_s_ = 60;
  bool json_ = false;
};

}  // namespace cairn::apps
