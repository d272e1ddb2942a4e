// SPDX-License-Identifier: Apache-2.0
#include "apps/box/client.h"

#include "apps/common/command.h"
#include "apps/common/errand.h"
#include "apps/common/output.h"
#include "config/json_text.h"
#include "server/control/control_client.h"
#include "server/control/control_path.h"

namespace cairn::apps {

namespace {

// What is asked, and of whom.
struct Errand {
  std::string control;  // empty: to be found
  std::string nqn;
  server::ControlRequest request;
  Duration timeout;
};

task::Task<Attempt<server::Json>> ask_one(env::Env& env, Errand errand) {
  std::string path = errand.control;
  if (path.empty()) {
    Attempt<std::string> found =
        co_await server::find_box(env, server::control_paths(), errand.nqn, errand.timeout);
    if (!found) co_return std::unexpected(found.error());
    path = std::move(*found);
  }
  Attempt<server::Json> answer =
      co_await server::ask_box(env, path, errand.request, errand.timeout);
  co_return answer;
}

using Answers = std::vector<std::pair<std::string, server::Json>>;

task::Task<Attempt<Answers>> ask_each(env::Env& env, Errand errand) {
  std::vector<std::string> paths = {errand.control};
  if (errand.control.empty()) {
    Attempt<std::vector<std::string>> found =
        co_await server::find_boxes(env, server::control_paths(), errand.nqn, errand.timeout);
    if (!found) co_return std::unexpected(found.error());
    paths = std::move(*found);
  }
  Answers answers;
  for (const std::string& path : paths) {
    Attempt<server::Json> answer =
        co_await server::ask_box(env, path, errand.request, errand.timeout);
    if (!answer) co_return std::unexpected(answer.error());
    answers.emplace_back(path, std::move(*answer));
  }
  co_return answers;
}

}  // namespace

BoxClient::BoxClient(CLI::App& app) {
  add_value(app, "--control PATH", "the box's control socket, when there are several boxes",
            [this](const std::string& text) -> Attempt<void> {
              Attempt<std::string> path = server::check_control_path(text);
              if (!path) return std::unexpected(path.error());
              control_ = std::move(*path);
              return {};
            });
  add_value(app, "--nqn NQN", "the subsystem, when the box has several; finds the box too",
            [this](const std::string& text) -> Attempt<void> {
              nqn_ = text;
              return {};
            });
  add_number(app, "--timeout SECONDS", timeout_s_, 0.1, 86400, "how long to wait (30)");
  add_switch(app, "--json", json_, "print the answer as one JSON object");
}

Attempt<server::Json> BoxClient::ask(server::ControlRequest request) const {
  request.nqn = nqn_;
  const Errand errand{control_, nqn_, std::move(request), Duration::from_seconds(timeout_s_)};
  return run_errand<server::Json>([&errand](env::Env& env) { return ask_one(env, errand); });
}

Attempt<Answers> BoxClient::ask_all(server::ControlRequest request) const {
  request.nqn = nqn_;
  const Errand errand{control_, nqn_, std::move(request), Duration::from_seconds(timeout_s_)};
  return run_errand<Answers>([&errand](env::Env& env) { return ask_each(env, errand); });
}

void BoxClient::print(const server::Json& answer, std::string_view text) const {
  say(json_ ? config::json_text(answer) : text);
}

}  // namespace cairn::apps
