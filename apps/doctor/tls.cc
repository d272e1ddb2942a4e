// SPDX-License-Identifier: Apache-2.0
// `cairn doctor tls`: which step towards a target through TLS fails.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/doctor/tls_judge.h"
#include "apps/nvme/connect.h"
#include "base/words.h"
#include "config/json_text.h"
#include "server/open/key_file.h"
#include "server/open/target_uri.h"

namespace cairn::apps {

namespace {

constexpr std::string_view kScheme = "nvme-tcp://";

using doctor::TlsStep;

class DoctorTlsCommand final : public Command {
 public:
  explicit DoctorTlsCommand(CLI::App& app) {
    required(add_text(app, "PLACE", place_,
                      "nvme-tcp://HOST:PORT/NQN?tls=required&tls_key=FILE, or HOST:PORT"));
    add_nvme_options(app, options_);
    set_examples(app, {"cairn doctor tls 'nvme-tcp://box1/NQN?tls=required&tls_key=host.key'",
                       "cairn doctor tls 192.0.2.7:4420"});
  }

  Attempt<int> run() override {
    std::vector<TlsStep> steps;
    const Attempt<fabric::Uri> uri = resolve_place(steps);
    if (!uri) return std::unexpected(uri.error());
    if (doctor::have_passed(steps)) {
      doctor::TlsFacts facts;
      const Attempt<void> ran = run_in_world(
          options_, [&](env::Env& env) { return doctor::gather_tls(env, *uri, facts); });
      if (!ran) return std::unexpected(ran.error());
      for (TlsStep& step : doctor::judge_tls(facts)) steps.push_back(std::move(step));
    }
    say(options_.json ? config::json_text(doctor::json_of(steps)) : doctor::text_of(steps));
    return doctor::have_passed(steps) ? kExitOk : kExitFailed;
  }

 private:
  // The first steps, which need no network but the resolver. A place of the wrong form is a
  // Problem.
  Attempt<fabric::Uri> resolve_place(std::vector<TlsStep>& steps) {
    const bool is_uri = place_.find("://") != std::string::npos;
    const std::string text = is_uri ? place_ : std::string(kScheme) + place_;
    if (Attempt<void> checked = server::check_target_uri(text, server::Needs::kDiscovery);
        !checked) {
      return std::unexpected(checked.error());
    }
    const Attempt<std::string> resolved = server::resolve_names(text, server::system_resolver());
    if (!resolved) {
      steps.push_back({"resolve", TlsStep::Outcome::kFail, resolved.error().text,
                       "write an IP address, or mend the name service"});
      return fabric::Uri{};
    }
    auto uri = fabric::Uri::parse(*resolved);
    if (!uri) return refuse(uri.error());
    steps.push_back({"resolve", TlsStep::Outcome::kPass, uri->paths.front().text(), ""});
    server::name_host_stably(server::gather_host(), uri->options);
    if (Attempt<void> loaded = server::load_credentials(uri->options); !loaded) {
      steps.push_back({"key file", TlsStep::Outcome::kFail, loaded.error().text,
                       "'cairn key inspect FILE' says more"});
    } else if (uri->options.tls) {
      steps.push_back(
          {"key file", TlsStep::Outcome::kPass, escaped(uri->options.tls_key_file), ""});
    }
    return std::move(*uri);
  }

  NvmeOptions options_;
  std::string place_;
};

}  // namespace

std::unique_ptr<Command> make_doctor_tls(CLI::App& app) {
  return std::make_unique<DoctorTlsCommand>(app);
}

}  // namespace cairn::apps
