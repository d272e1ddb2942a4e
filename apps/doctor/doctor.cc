// SPDX-License-Identifier: Apache-2.0
// `cairn doctor`: what this machine can do, and what to do about the rest.
#include <nlohmann/json.hpp>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/doctor/judge.h"
#include "config/json_text.h"
#include "world/machine/facts.h"

namespace cairn::apps {

namespace {

class DoctorCommand final : public Command {
 public:
  explicit DoctorCommand(CLI::App& app) {
    add_switch(app, "--json", json_, "print the same as one JSON object");
    set_examples(app, {"cairn doctor", "cairn doctor --json | jq -r .io.chosen"});
  }

  Attempt<int> run() override {
    const machine::Facts facts = machine::gather();
    const doctor::Diagnosis diagnosis = doctor::judge(facts);
    say(json_ ? config::json_text(doctor::json_of(diagnosis, facts)) : doctor::table_of(diagnosis));
    return diagnosis.can_run ? kExitOk : kExitFailed;
  }

 private:
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_doctor(CLI::App& app) { return std::make_unique<DoctorCommand>(app); }

}  // namespace cairn::apps
