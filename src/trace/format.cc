// SPDX-License-Identifier: Apache-2.0
#include "trace/format.h"

#include <algorithm>
#include <array>

namespace cairn::trace {

namespace {

constexpr std::array<FormatKind, 10> kFormats = {{
    {"fio", "fio iolog", make_fio, "fio version "},
    {"snis", "SNIS", make_snis, "RequestID,"},
    {"cairn", "Cairn", make_cairn, "cairn-trace,"},
    {"mqsim", "MQSim", make_mqsim, ""},
    {"systor", "SYSTOR '17", make_systor, ""},
    {"msr", "MSR Cambridge", make_msr, ""},
    {"alibaba", "Alibaba", make_alibaba, ""},
    {"tencent", "Tencent CBS", make_tencent, ""},
    {"blkparse", "blkparse", make_blkparse_queued, ""},
    {"blkparse-issued", "blkparse", make_blkparse_issued, ""},
}};

}  // namespace

std::span<const FormatKind> formats() { return kFormats; }

const FormatKind* format_named(std::string_view name) {
  const auto found =
      std::ranges::find_if(kFormats, [&](const FormatKind& kind) { return kind.name == name; });
  return found == kFormats.end() ? nullptr : found;
}

std::string format_names() {
  std::string names;
  for (const FormatKind& kind : kFormats) {
    if (!names.empty()) names += ", ";
    names += kind.name;
  }
  return names;
}

const FormatKind* recognise(std::span<const std::string> first_lines) {
  if (first_lines.empty()) return nullptr;
  for (const FormatKind& kind : kFormats) {
    if (!kind.heading.empty() && first_lines.front().starts_with(kind.heading)) return &kind;
  }
  // The first line may be a heading of names; the next then tells.
  for (const std::string& line : first_lines) {
    for (const FormatKind& kind : kFormats) {
      const Outcome<std::optional<Record>> parsed = kind.make()->parse(line);
      if (parsed && *parsed) return &kind;
    }
  }
  return nullptr;
}

}  // namespace cairn::trace
