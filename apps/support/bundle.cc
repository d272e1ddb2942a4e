// SPDX-License-Identifier: Apache-2.0
// `cairn support-bundle`: what somebody needs who is to help, in a folder, without secrets.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/common/errand.h"
#include "apps/common/output.h"
#include "apps/doctor/judge.h"
#include "apps/support/commands.h"
#include "base/words.h"
#include "config/files.h"
#include "config/json_text.h"
#include "report/build_info.h"
#include "server/control/control_path.h"
#include "server/support/bundle.h"
#include "world/machine/facts.h"

namespace cairn::apps {

namespace {

using server::BundleFile;
using Json = nlohmann::ordered_json;

constexpr size_t kConfigMax = 1 << 20;

class BundleCommand final : public Command {
 public:
  explicit BundleCommand(CLI::App& app) {
    required(add_text(app, "FOLDER", folder_, "where it is put; it must not be there yet"));
    add_values(app, "--config FILE", "a configuration file to be put in, without its secrets",
               [this](const std::string& text) -> Attempt<void> {
                 configs_.push_back(text);
                 return {};
               });
    add_values(app, "--control PATH",
               "a process to be asked, at its control socket; several allowed (all of this user)",
               [this](const std::string& text) -> Attempt<void> {
                 controls_.push_back(text);
                 return {};
               });
    add_switch(app, "--json", json_, "say which files it has as JSON");
    set_examples(app, {"cairn support-bundle /tmp/bundle",
                       "cairn support-bundle /tmp/bundle --config /etc/cairn.toml"});
  }

  Attempt<int> run() override {
    std::vector<BundleFile> files = of_machine();
    for (size_t i = 0; i < configs_.size(); ++i) {
      const Attempt<std::string> text = config::read_file(configs_[i], kConfigMax);
      if (!text) return std::unexpected(text.error());
      files.push_back(server::bundle_file(fmt::format("config-{}.toml", i), *text));
    }
    const std::vector<std::string> places =
        controls_.empty() ? server::all_control_paths() : controls_;
    const auto told = run_errand<std::vector<BundleFile>>(
        [&places](env::Env& env) { return ask_all(env, places); });
    if (!told) return std::unexpected(told.error());
    files.insert(files.end(), told->begin(), told->end());
    if (const Attempt<void> made = make_folder(); !made) return std::unexpected(made.error());
    for (const BundleFile& each : files) {
      if (const Attempt<void> kept = keep(each); !kept) return std::unexpected(kept.error());
    }
    tell(files);
    return kExitOk;
  }

 private:
  static task::Task<Attempt<std::vector<BundleFile>>> ask_all(env::Env& env,
                                                              std::vector<std::string> places) {
    std::vector<BundleFile> files;
    for (const std::string& each : places) {
      std::vector<BundleFile> of_it = co_await server::collect_process(env, each);
      files.insert(files.end(), of_it.begin(), of_it.end());
    }
    co_return files;
  }

  static std::vector<BundleFile> of_machine() {
    const report::BuildInfo& info = report::build_info();
    const Json version = {{"schema_version", 1},
                          {"version", info.version},
                          {"commit", info.commit},
                          {"compiler", info.compiler},
                          {"build_type", info.build_type}};
    const machine::Facts facts = machine::gather();
    return {server::bundle_file("version.json", config::json_text(version)),
            server::bundle_file("doctor.json",
                                config::json_text(doctor::json_of(doctor::judge(facts), facts)))};
  }

  // This user's alone: names of hosts, drives and volumes are in it.
  Attempt<void> make_folder() const {
    if (::mkdir(folder_.c_str(), 0700) == 0) return {};
    return refuse(fmt::format("the folder {} cannot be made ({}): name another one",
                              in_quotes(folder_), std::strerror(errno)));
  }

  Attempt<void> keep(const BundleFile& file) const {
    const std::filesystem::path path = std::filesystem::path(folder_) / file.name;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    return config::replace_file(path.string(), file.text);
  }

  void tell(const std::vector<BundleFile>& files) const {
    if (json_) {
      Json json = {{"schema_version", 1}, {"folder", folder_}, {"files", Json::array()}};
      for (const BundleFile& each : files) json["files"].push_back(each.name);
      say(config::json_text(json));
      return;
    }
    for (const BundleFile& each : files) say(fmt::format("{}/{}\n", folder_, each.name));
    say(
        fmt::format("Secrets were taken out as far as they can be told: look before you send it.\n"
                    "  tar -czf {0}.tar.gz {0}\n",
                    folder_));
  }

  std::string folder_;
  std::vector<std::string> configs_;
  std::vector<std::string> controls_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_support_bundle(CLI::App& app) {
  return std::make_unique<BundleCommand>(app);
}

}  // namespace cairn::apps
