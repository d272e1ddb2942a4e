// SPDX-License-Identifier: Apache-2.0
// Manual pages, from the same source as --help.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace cairn::apps {

struct ManPage {
  std::string name;  // "cairn-drive-list.1"
  std::string text;  // roff with the macros of man(7)
};

// One for each command below `root`, and one for itself.
std::vector<ManPage> man_pages(const CLI::App& root);

}  // namespace cairn::apps
