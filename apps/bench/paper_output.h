// SPDX-License-Identifier: Apache-2.0
// Where `cairn bench paper` puts what it made: --out, --svg and --json.
#pragma once

#include <string>

#include "base/problem.h"
#include "bench/paper.h"

namespace CLI {
class App;
}

namespace cairn::apps {

class PaperOutput {
 public:
  // `page` is the file for a person who names none.
  PaperOutput(CLI::App& app, std::string page);
  PaperOutput(const PaperOutput&) = delete;
  PaperOutput& operator=(const PaperOutput&) = delete;

  // Writes the page and the plots, and says the numbers. The Problem names what cannot be written.
  Attempt<int> put(const bench::Paper& paper) const;

 private:
  std::string page_;
  std::string page_file_;
  std::string plot_folder_;
  bool json_ = false;
};

}  // namespace cairn::apps
