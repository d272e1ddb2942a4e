// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/verify_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/nvme/fields.h"
#include "base/units.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

std::string expected_text(const loadgen::Allowed& allowed) {
  if (allowed.high == UINT32_MAX) return "a whole block of this place";
  if (allowed.low == allowed.high) {
    return fmt::format("generation {} (its last write, acknowledged)", allowed.high);
  }
  return fmt::format("generation {} (acknowledged) to {} (begun)", allowed.low, allowed.high);
}

}  // namespace

nlohmann::ordered_json json_of(const VerifyReport& report) {
  const loadgen::VerifyResult& result = report.result;
  nlohmann::ordered_json json = {{"uri", report.uri},
                                 {"ok", result.ok()},
                                 {"seed", report.seed},
                                 {"offset", report.offset},
                                 {"size", report.size},
                                 {"check_only", report.check_only},
                                 {"interrupted", report.interrupted},
                                 {"writes", result.writes},
                                 {"reads", result.reads},
                                 {"flushes", result.flushes},
                                 {"blocks_written", result.blocks_written},
                                 {"blocks_checked", result.blocks_checked},
                                 {"mismatch", nullptr},
                                 {"error", nullptr}};
  if (result.mismatch) {
    json["mismatch"] = {{"block", result.mismatch->lba.value()},
                        {"byte", result.mismatch->lba.value() * report.block_size},
                        {"expected", expected_text(result.mismatch->allowed)},
                        {"found", result.mismatch->found}};
  }
  if (result.error) {
    json["error"] = fmt::format("{}: {}", result.failed, server::error_sentence(*result.error));
  }
  return json;
}

std::string text_of(const VerifyReport& report) {
  const loadgen::VerifyResult& result = report.result;
  std::string out =
      fmt::format("{} at byte {}, seed {}{}\n", text_bytes(report.size), report.offset, report.seed,
                  report.interrupted ? " (interrupted)" : "");
  if (!report.check_only) {
    out += fmt::format(
        "  written  {} in {}, {}\n", counted(result.blocks_written, "block"),
        counted(result.writes, "request"),
        fmt::format("{} {}", result.flushes, result.flushes == 1 ? "flush" : "flushes"));
  }
  out += fmt::format("  checked  {} in {}\n", counted(result.blocks_checked, "block"),
                     counted(result.reads, "request"));
  if (result.ok()) {
    out += result.blocks_checked == 0 ? "  Nothing was there to be checked.\n"
                                      : "  All held what they must.\n";
  }
  return out;
}

Problem problem_of(const VerifyReport& report) {
  const loadgen::VerifyResult& result = report.result;
  if (!result.mismatch) return server::cannot_do(result.failed, *result.error);
  return {fmt::format("block {} (byte {}) holds {}; expected was {}. Seed {}",
                      result.mismatch->lba.value(),
                      result.mismatch->lba.value() * report.block_size, result.mismatch->found,
                      expected_text(result.mismatch->allowed), report.seed)};
}

}  // namespace cairn::apps
