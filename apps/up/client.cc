// SPDX-License-Identifier: Apache-2.0
#include "apps/up/client.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
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

Attempt<std::string> UpClient::folder() const {
  if (data_.empty()) return default_up_folder();
  std::error_code error;
  const auto whole = std::filesystem::absolute(data_, error).lexically_normal();
  return error ? data_ : whole.string();
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

std::string up_reason_text(const Json& reason) {
  const std::string drive = server::text_at(reason, "drive");
  const std::string volume = server::text_at(reason, "volume");
  std::string text = fmt::format("{}: ", server::text_at(reason, "health"));
  if (!drive.empty()) text += fmt::format("drive {}: ", escaped(drive));
  if (!volume.empty()) text += fmt::format("volume {}: ", escaped(volume));
  text += escaped(server::text_at(reason, "what"));
  text += fmt::format(" (for {} s", server::number_at(reason, "since_s"));
  if (reason.contains("percent")) {
    text += fmt::format(", {}% done", server::number_at(reason, "percent"));
  }
  return text + ")";
}

std::string up_status_text(const Json& status) {
  std::string text = server::text_at(status, "health") + "\n";
  for (const Json& reason : server::list_at(status, "reasons")) {
    text +=
        fmt::format("  {}\n    {}\n", up_reason_text(reason), server::text_at(reason, "command"));
  }
  std::vector<std::vector<std::string>> rows = {{"DRIVE", "STATE", "SIZE", "USED"}};
  for (const Json& each : server::list_at(status, "drives")) {
    rows.push_back({server::text_at(each, "name"), server::text_at(each, "state"),
                    text_bytes(server::number_at(each, "bytes")),
                    text_bytes(server::number_at(each, "used_bytes"))});
  }
  text += table_text(rows);
  rows = {{"VOLUME", "SIZE", "COPIES", "WRITTEN"}};
  for (const Json& each : server::list_at(status, "volumes")) {
    rows.push_back({escaped(server::text_at(each, "name")),
                    text_bytes(server::number_at(each, "bytes")),
                    fmt::format("{}", server::number_at(each, "replicas")),
                    text_bytes(server::number_at(each, "mapped_bytes"))});
  }
  return text + table_text(rows);
}

}  // namespace cairn::apps
