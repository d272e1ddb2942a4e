// SPDX-License-Identifier: Apache-2.0
// `cairn drive services`: what a stack can be made of.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "base/words.h"
#include "config/json_text.h"
#include "stack/services.h"

namespace cairn::apps {

namespace {

using Json = nlohmann::ordered_json;
using drive::Service;
using drive::ServiceOption;

constexpr int kSchemaVersion = 1;

std::string_view kind_word(ServiceOption::Kind kind) {
  switch (kind) {
    case ServiceOption::Kind::kNumber:
      return "number";
    case ServiceOption::Kind::kSize:
      return "size";
    case ServiceOption::Kind::kYesNo:
      return "yes or no";
    case ServiceOption::Kind::kText:
      return "text";
    case ServiceOption::Kind::kFile:
      return "file";
  }
  return "";
}

Json json_of(const ServiceOption& option) {
  Json json = {{"key", option.key}, {"kind", kind_word(option.kind)}};
  if (option.default_value.empty()) {
    json["required"] = true;
  } else {
    json["default"] = option.default_value;
  }
  if (option.kind == ServiceOption::Kind::kNumber || option.kind == ServiceOption::Kind::kSize) {
    json["least"] = option.min;
    if (option.max != UINT64_MAX) json["most"] = option.max;
  }
  json["what"] = option.what;
  return json;
}

Json json_of(const Service& service) {
  Json options = Json::array();
  for (const ServiceOption& option : service.options) options.push_back(json_of(option));
  return {{"name", service.name},           {"what", service.what},
          {"example", service.example},     {"below_min", service.below_min},
          {"below_max", service.below_max}, {"survives_loss", service.survives_loss},
          {"leaf_only", service.leaf_only}, {"options", std::move(options)}};
}

// The example as somebody would type it.
std::string filled(const Service& service) {
  int files = 0;
  return drive::example_over(service, [&] {
    if (service.leaf_only == "flash:") {
      return fmt::format("flash:profile=laptop-tlc,file=/srv/d{},size=1G", files++);
    }
    return fmt::format("file:/srv/d{}", files++);
  });
}

std::string text_of(const Service& service) {
  std::string text = fmt::format("{}: {}\n  {}\n", service.name, service.what, filled(service));
  for (const ServiceOption& option : service.options) {
    const std::string default_value =
        option.default_value.empty() ? "required" : fmt::format("{}", option.default_value);
    text += fmt::format("    {:<14} {} ({}; {})\n", option.key, option.what, kind_word(option.kind),
                        default_value);
  }
  return text;
}

class DriveServicesCommand final : public Command {
 public:
  explicit DriveServicesCommand(CLI::App& app) {
    add_value(app, "SERVICE", "one alone (all)", [this](const std::string& text) -> Attempt<void> {
      if (drive::find_service(text) == nullptr) {
        std::vector<std::string> names;
        for (const Service* each : drive::services()) names.emplace_back(each->name);
        return refuse(fmt::format("{} is no service{} (there are {})", in_quotes(text),
                                  did_you_mean(text, names), comma_list(names)));
      }
      only_ = text;
      return {};
    });
    add_switch(app, "--json", json_, "for programs");
    set_examples(app, {"cairn drive services", "cairn drive services mirror",
                       "cairn drive services --json | jq -r '.services[].name'"});
  }

  Attempt<int> run() override {
    Json list = Json::array();
    std::string text;
    for (const Service* service : drive::services()) {
      if (!only_.empty() && service->name != only_) continue;
      list.push_back(json_of(*service));
      text += text_of(*service);
    }
    if (json_) {
      text = config::json_text(
          Json{{"schema_version", kSchemaVersion}, {"services", std::move(list)}});
    }
    say(text);
    return kExitOk;
  }

 private:
  std::string only_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_drive_services(CLI::App& app) {
  return std::make_unique<DriveServicesCommand>(app);
}

}  // namespace cairn::apps
