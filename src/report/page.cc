// SPDX-License-Identifier: Apache-2.0
#include "report/page.h"

#include <fmt/format.h>

#include "report/svg.h"

namespace cairn::report {

namespace {

constexpr std::string_view kStyle = R"(:root{color-scheme:light dark;--paper:#f4f3ef;--ink:#1b1b19;
--soft:#5c5b57;--line:#d8d6cf}
@media (prefers-color-scheme:dark){:root{--paper:#121211;--ink:#f3f2ee;--soft:#b6b5ae;
--line:#3a3935}}
body{margin:0 auto;max-width:62rem;padding:1.5rem 1rem 4rem;background:var(--paper);
color:var(--ink);font:16px/1.55 system-ui,sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .5rem}
h2{font-size:1.2rem;margin:2.5rem 0 .5rem}
p{max-width:44rem;margin:.5rem 0}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,24rem),1fr));
gap:1rem;margin:1rem 0}
figure{margin:0}
figure svg{display:block;width:100%;height:auto;border:1px solid var(--line);border-radius:6px;
box-sizing:border-box}
figcaption{font-size:.85rem;color:var(--soft);margin:.35rem .1rem 0}
.wide{overflow-x:auto;margin:1rem 0}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .8rem .3rem 0;text-align:right;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:600;vertical-align:bottom}
th:first-child,td:first-child{text-align:left}
)";

}  // namespace

Page::Page(std::string_view title, std::string_view introduction) : title_(escape(title)) {
  body_ = fmt::format("<h1>{}</h1>\n", title_);
  paragraph(introduction);
}

void Page::leave_figures() {
  if (in_figures_) body_ += "</div>\n";
  in_figures_ = false;
}

void Page::heading(std::string_view text) {
  leave_figures();
  body_ += fmt::format("<h2>{}</h2>\n", escape(text));
}

void Page::paragraph(std::string_view text) {
  leave_figures();
  body_ += fmt::format("<p>{}</p>\n", escape(text));
}

void Page::figure(std::string_view svg, std::string_view caption) {
  if (!in_figures_) body_ += "<div class=\"figures\">\n";
  in_figures_ = true;
  body_ += fmt::format("<figure>{}", svg);
  if (!caption.empty()) body_ += fmt::format("<figcaption>{}</figcaption>", escape(caption));
  body_ += "</figure>\n";
}

void Page::table(const std::vector<std::string>& header,
                 const std::vector<std::vector<std::string>>& rows) {
  leave_figures();
  const auto row = [this](const std::vector<std::string>& cells, std::string_view tag) {
    body_ += "<tr>";
    for (const std::string& cell : cells) body_ += fmt::format("<{0}>{1}</{0}>", tag, escape(cell));
    body_ += "</tr>\n";
  };
  body_ += "<div class=\"wide\"><table>\n";
  row(header, "th");
  for (const std::vector<std::string>& cells : rows) row(cells, "td");
  body_ += "</table></div>\n";
}

std::string Page::html() const {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}{}</body>\n</html>\n",
      title_, kStyle, body_, in_figures_ ? "</div>\n" : "");
}

}  // namespace cairn::report
