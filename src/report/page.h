// SPDX-License-Identifier: Apache-2.0
// Page: one HTML file that needs nothing else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cairn::report {

// In light and dark surroundings, on wide and narrow screens. Text is escaped.
class Page {
 public:
  Page(std::string_view title, std::string_view introduction);

  void heading(std::string_view text);
  void paragraph(std::string_view text);
  // `svg` as chart.h makes it; `caption` may be empty. Figures in a row share it if it is wide.
  void figure(std::string_view svg, std::string_view caption);
  // The first column is text, the others are numbers. Rows as long as the header.
  void table(const std::vector<std::string>& header,
             const std::vector<std::vector<std::string>>& rows);

  std::string html() const;

 private:
  void leave_figures();
  std::string title_;
  std::string body_;
  bool in_figures_ = false;
};

}  // namespace cairn::report
