// SPDX-License-Identifier: Apache-2.0
// `cairn doctor`: what this machine can do, and what to do about the rest.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/doctor/facts.h"
#include "apps/doctor/judge.h"
#include "apps/json_text.h"
#include "apps/output.h"

namespace cairn::apps {

namespace {

class DoctorCommand final : public Command {
 public:
  explicit DoctorCommand(CLI::App& app) {
    add_switch(app, "--json", json_, "print the same as one JSON object");
    set_examples(app, {"cairn doctor", "cairn doctor --json | jq -r .io.chosen"});
  }

  Attempt<int> run() override {
    const doctor::Facts facts = doctor::gather();
    const doctor::Diagnosis diagnosis = doctor::judge(facts);
    say(json_ ? json_text(doctor::json_of(diagnosis, facts)) : doctor::table_of(diagnosis));
    return diagnosis.can_run ? kExitOk : kExitFailed;
  }

 private:
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_doctor(CLI::App& app) { return std::make_unique<DoctorCommand>(app); }

}  // namespace cairn::apps
