// SPDX-License-Identifier: Apache-2.0
#include "server/support/bundle.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/problem.h"
#include "base/units.h"
#include "server/control/control_client.h"
#include "server/events/event_client.h"
#include "server/support/redact.h"

namespace cairn::server {

namespace {

using Command = ControlRequest::Command;

constexpr Duration kAnswer = 10_s;

struct Question {
  const char* file;
  Command command;
};
constexpr std::array<Question, 5> kQuestions = {{{"status.json", Command::kStatus},
                                                 {"up.json", Command::kUpStatus},
                                                 {"drives.json", Command::kDriveShow},
                                                 {"stats.json", Command::kStats},
                                                 {"metrics.txt", Command::kMetrics}}};

std::string text_of(const Json& answer, Command command) {
  if (command == Command::kMetrics) return text_at(answer, "metrics");
  return answer.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

// "/run/user/0/cairn/server-77.sock": "server-77".
std::string name_of(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(".sock")) name.resize(name.size() - 5);
  return name;
}

}  // namespace

BundleFile bundle_file(std::string name, std::string_view text) {
  return {.name = std::move(name), .text = redact(text)};
}

task::Task<std::vector<BundleFile>> collect_process(env::Env& env, std::string path) {
  std::vector<BundleFile> files;
  const std::string name = name_of(path);
  std::string missing;
  for (const Question& each : kQuestions) {
    const Attempt<Json> answer = co_await ask_server(env, path, {.command = each.command}, kAnswer);
    if (answer) {
      files.push_back(
          bundle_file(fmt::format("{}/{}", name, each.file), text_of(*answer, each.command)));
    } else {
      missing += fmt::format("{}: {}\n", each.file, answer.error().text);
    }
  }
  EventReader reader(env, {path}, {});
  const Attempt<std::vector<Event>> events = co_await reader.read_all();
  std::string lines;
  if (events) {
    for (const Event& each : *events) lines += encode_event(each) + "\n";
    files.push_back(bundle_file(fmt::format("{}/events.jsonl", name), lines));
  } else {
    missing += fmt::format("events.jsonl: {}\n", events.error().text);
  }
  if (!missing.empty()) {
    files.push_back(bundle_file(fmt::format("{}/not_there.txt", name), missing));
  }
  co_return files;
}

}  // namespace cairn::server
