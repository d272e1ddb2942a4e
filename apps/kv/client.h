// SPDX-License-Identifier: Apache-2.0
// What the commands that ask a key-value door have in common.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "apps/common/errand.h"
#include "apps/kv/door_args.h"
#include "base/problem.h"
#include "door/resp/client.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/task.h"

namespace CLI {
class App;
}

namespace cairn::apps {

class KvClient {
 public:
  // Declares --at, --password-file, --tls-ca and --timeout.
  explicit KvClient(CLI::App& app);

  // A connected client that the server knows, for as long as the errand takes.
  class Door {
   public:
    Door(door::resp::RespClient& client, task::CancelToken token, std::string at)
        : client_(client), token_(token), at_(std::move(at)) {}
    // The reply. The Problem: the connection failed, or the server answers with an error.
    task::Task<Attempt<door::resp::Value>> call(std::vector<std::string_view> args);

   private:
    door::resp::RespClient& client_;
    task::CancelToken token_;
    std::string at_;
  };
  // The exit status, or why there is no answer.
  using Errand = std::function<task::Task<Attempt<int>>(Door&)>;
  Attempt<int> run(const Errand& errand) const;

 private:
  task::Task<Attempt<int>> run_in(env::Env& env, const Errand& errand) const;
  task::Task<Attempt<int>> ask(std::unique_ptr<env::Stream> stream, const Errand& errand,
                               task::CancelToken token) const;

  env::Address at_ = env::Address::loopback(kRespPort);
  std::string password_file_;
  std::string ca_file_;
  double timeout_s_ = 60;
};

}  // namespace cairn::apps
