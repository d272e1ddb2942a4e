// SPDX-License-Identifier: Apache-2.0
#include "apps/up/client.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/units.h"
#include "server/control/control_client.h"

namespace cairn::apps {

using server::Json;

Attempt<std::string> default_up_folder() {
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && data[0] == '/') return fmt::format("{}/cairn", data);
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return fmt::format("{}/.local/share/cairn", home);
  return refuse("there is no HOME to keep drives in: name a folder with --data DIR");
}

UpClient::UpClient(CLI::App& app) {
  add_text(app, "--data DIR", data_, "its data folder (~/.local/share/cairn)");
}

namespace {

std::string whole_folder(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error).lexically_normal();
  return error ? path : whole.string();
}

}  // namespace

Attempt<server::UpRunning> running_up(const std::string& folder) {
  return server::UpFolder::running(whole_folder(folder));
}

Attempt<std::string> UpClient::folder() const {
  if (data_.empty()) return default_up_folder();
  return whole_folder(data_);
}

Attempt<server::UpRunning> UpClient::find() const {
  const Attempt<std::string> path = folder();
  if (!path) return std::unexpected(path.error());
  return server::UpFolder::running(*path);
}

task::Task<Attempt<Json>> UpClient::ask(env::Env& env, std::string control,
                                        server::ControlRequest request) {
  Attempt<Json> answer =
      co_await server::ask_server(env, std::move(control), std::move(request), 60_s);
  co_return answer;
}

}  // namespace cairn::apps
