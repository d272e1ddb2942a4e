// SPDX-License-Identifier: Apache-2.0
#include "apps/box_client.h"

#include <CLI/CLI.hpp>

#include "apps/box/control_client.h"
#include "apps/box/control_place.h"
#include "apps/command.h"
#include "apps/errand.h"
#include "apps/json_text.h"
#include "apps/output.h"

namespace cairn::apps {

namespace {

// What is asked, and of whom.
struct Errand {
  std::string control;  // empty: to be found
  std::string nqn;
  ControlRequest request;
  Duration timeout;
};

task::Task<Attempt<Json>> ask_one(env::Env& env, Errand errand) {
  std::string path = errand.control;
  if (path.empty()) {
    Attempt<std::string> found =
        co_await find_box(env, control_paths(), errand.nqn, errand.timeout);
    if (!found) co_return std::unexpected(found.error());
    path = std::move(*found);
  }
  Attempt<Json> answer = co_await ask_box(env, path, errand.request, errand.timeout);
  co_return answer;
}

using Answers = std::vector<std::pair<std::string, Json>>;

task::Task<Attempt<Answers>> ask_each(env::Env& env, Errand errand) {
  std::vector<std::string> paths = {errand.control};
  if (errand.control.empty()) {
    Attempt<std::vector<std::string>> found =
        co_await find_boxes(env, control_paths(), errand.nqn, errand.timeout);
    if (!found) co_return std::unexpected(found.error());
    paths = std::move(*found);
  }
  Answers answers;
  for (const std::string& path : paths) {
    Attempt<Json> answer = co_await ask_box(env, path, errand.request, errand.timeout);
    if (!answer) co_return std::unexpected(answer.error());
    answers.emplace_back(path, std::move(*answer));
  }
  co_return answers;
}

}  // namespace

BoxClient::BoxClient(CLI::App& app) {
  add_value(app, "--control PATH", "the box's control socket, when there are several boxes",
            [this](const std::string& text) -> Attempt<void> {
              Attempt<std::string> path = check_control_path(text);
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

Attempt<Json> BoxClient::ask(ControlRequest request) const {
  request.nqn = nqn_;
  const Errand errand{control_, nqn_, std::move(request), Duration::from_seconds(timeout_s_)};
  return run_errand<Json>([&errand](env::Env& env) { return ask_one(env, errand); });
}

Attempt<Answers> BoxClient::ask_all(ControlRequest request) const {
  request.nqn = nqn_;
  const Errand errand{control_, nqn_, std::move(request), Duration::from_seconds(timeout_s_)};
  return run_errand<Answers>([&errand](env::Env& env) { return ask_each(env, errand); });
}

void BoxClient::print(const Json& answer, std::string_view text) const {
  say(json_ ? json_text(answer) : text);
}

}  // namespace cairn::apps
