// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/paper_output.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "base/words.h"
#include "config/files.h"
#include "config/json_text.h"

namespace cairn::apps {

namespace {

Attempt<void> write_plot(const std::string& folder, const std::string& name, std::string_view svg) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return refuse(fmt::format("cannot make the folder {} ({}): name another with --svg",
                              in_quotes(folder), error.message()));
  }
  return config::replace_file(fmt::format("{}/{}.svg", folder, name), svg);
}

}  // namespace

PaperOutput::PaperOutput(CLI::App& app, std::string page) : page_(std::move(page)) {
  add_value(app, "--out FILE",
            fmt::format("write the page to this file ({}; with --json: none)", page_),
            [this](const std::string& path) -> Attempt<void> {
              page_file_ = path;
              return {};
            });
  add_text(app, "--svg DIR", plot_folder_, "also write each plot into this folder");
  add_switch(app, "--json", json_, "print one JSON object instead of a table");
}

Attempt<int> PaperOutput::put(const bench::Paper& paper) const {
  const std::string& page = page_file_.empty() && !json_ ? page_ : page_file_;
  if (!page.empty()) {
    if (const Attempt<void> written = config::replace_file(page, paper.html); !written) {
      return std::unexpected(written.error());
    }
  }
  for (const bench::PaperChart& chart : paper.charts) {
    if (plot_folder_.empty()) break;
    if (const Attempt<void> written = write_plot(plot_folder_, chart.name, chart.svg); !written) {
      return std::unexpected(written.error());
    }
  }
  say(json_ ? config::json_text(paper.report.json()) : paper.report.table());
  if (!json_) say(fmt::format("the page is in {}\n", page));
  return kExitOk;
}

}  // namespace cairn::apps
