// SPDX-License-Identifier: Apache-2.0
// Format: how the lines of one kind of trace become requests.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trace/record.h"

namespace cairn::trace {

// One per trace: formats without a time in each line count it themselves.
class Format {
 public:
  virtual ~Format() = default;
  // A request; nothing when the line is something else that belongs there. The Mistake has no line.
  virtual Outcome<std::optional<Record>> parse(std::string_view line) = 0;
};

struct FormatKind {
  const char* name;   // of --format
  const char* title;  // in messages
  std::unique_ptr<Format> (*make)();
  // Of formats that need their heading: what it begins with. Others may have one, but are told by
  // their requests.
  std::string_view heading;
};

// Every format; the order in which they are tried.
std::span<const FormatKind> formats();
// Null when there is none of that name.
const FormatKind* format_named(std::string_view name);
// "mqsim, systor, ...".
std::string format_names();
// The format whose heading or request one of the first lines is; null when they are of none.
const FormatKind* recognise(std::span<const std::string> first_lines);

// By the file that defines them.
std::unique_ptr<Format> make_mqsim();
std::unique_ptr<Format> make_systor();
std::unique_ptr<Format> make_msr();
std::unique_ptr<Format> make_alibaba();
std::unique_ptr<Format> make_tencent();
std::unique_ptr<Format> make_snis();
std::unique_ptr<Format> make_cairn();
std::unique_ptr<Format> make_fio();
std::unique_ptr<Format> make_blkparse_queued();
std::unique_ptr<Format> make_blkparse_issued();

}  // namespace cairn::trace
