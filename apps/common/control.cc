// SPDX-License-Identifier: Apache-2.0
#include "apps/common/control.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "server/control/control_path.h"

namespace cairn::apps {

void add_control(CLI::App& app, std::string& into) {
  add_value(app, "--control PATH", "the control socket, or off (one per process)",
            [&into](const std::string& text) -> Attempt<void> {
              if (text == "off") {
                into = text;
                return {};
              }
              std::error_code error;
              const auto whole = std::filesystem::absolute(text, error).lexically_normal();
              Attempt<std::string> path =
                  server::check_control_path(error || text.empty() ? text : whole.string());
              if (!path) return std::unexpected(path.error());
              into = std::move(*path);
              return {};
            });
}

std::function<Attempt<std::string>()> control_path(const std::string& said, std::string kind) {
  if (said == "off") return {};
  if (said.empty()) return [kind = std::move(kind)] { return server::make_control_path(kind); };
  return [said]() -> Attempt<std::string> { return said; };
}

void add_on_event(CLI::App& app, std::string& into) {
  add_text(app, "--on-event COMMAND", into,
           "run this by /bin/sh when something changed, with the events as lines of JSON at its "
           "standard input; at most once a second, and for 30 s");
}

}  // namespace cairn::apps
