// SPDX-License-Identifier: Apache-2.0
#include "apps/doctor/tls_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/words.h"
#include "fabric/host/tls.h"
#include "server/open/explain.h"
#include "tls/alert.h"

namespace cairn::apps::doctor {

namespace {

using tls::Alert;

// One verdict after the other; from the first failure on the rest is skipped.
class Way {
 public:
  void pass(std::string name, std::string found) {
    add(std::move(name), TlsStep::Outcome::kPass, std::move(found), "");
  }
  void fail(std::string name, std::string found, std::string next) {
    add(std::move(name), TlsStep::Outcome::kFail, std::move(found), std::move(next));
    has_failed_ = true;
  }
  // `error` decides.
  void judge(std::string name, const std::optional<Error>& error, std::string found,
             std::string next) {
    if (error && !has_failed_)
      return fail(std::move(name), server::error_sentence(*error), std::move(next));
    pass(std::move(name), std::move(found));
  }
  bool has_failed() const { return has_failed_; }
  std::vector<TlsStep> steps() && { return std::move(steps_); }

 private:
  void add(std::string name, TlsStep::Outcome outcome, std::string found, std::string next) {
    if (has_failed_) {
      steps_.push_back({.name = std::move(name)});
      return;
    }
    steps_.push_back({std::move(name), outcome, std::move(found), std::move(next)});
  }
  bool has_failed_ = false;
  std::vector<TlsStep> steps_;
};

// What a handshake that failed was about.
enum class About : uint8_t { kNothing, kAnswer, kVersion, kCipher, kIdentity, kKey, kOther };

About about(const TlsFacts& facts) {
  if (!facts.handshake_error) return About::kNothing;
  const tls::HandshakeReport& report = facts.report;
  if (!report.heard_tls) return About::kAnswer;
  if (report.showed_certificate) return About::kIdentity;
  switch (static_cast<Alert>(report.alert)) {
    case Alert::kProtocolVersion:
      return About::kVersion;
    case Alert::kInsufficientSecurity:
      return About::kCipher;
    case Alert::kUnknownPskIdentity:
    case Alert::kHandshakeFailure:
      return About::kIdentity;
    case Alert::kIllegalParameter:
    case Alert::kDecryptError:
      return About::kKey;
    default:
      break;
  }
  const std::string_view what = facts.handshake_error->what();
  if (what.find("TLS 1.3") != std::string_view::npos) return About::kVersion;
  if (what.find("cipher") != std::string_view::npos) return About::kCipher;
  if (what.find("ignored our TLS key") != std::string_view::npos) return About::kIdentity;
  return About::kOther;
}

void judge_answer(const TlsFacts& facts, Way& way) {
  const Error error = facts.handshake_error.value_or(Error(Errc::kReset, ""));
  if (std::string_view(error.what()) == fabric::kTargetIsPlain) {
    return way.fail("tls", "it answers in plain NVMe/TCP",
                    "use this port without TLS, or have it demanded there: --tls required, or tls "
                    "= \"required\" of its [[listener]]");
  }
  if (facts.report.heard_anything) {
    return way.fail("tls", "it answers, but neither in TLS nor in NVMe/TCP",
                    "check the port: something else listens there");
  }
  if (error == Errc::kTimedOut) {
    return way.fail("tls", "it takes the connection and says nothing",
                    "check that an NVMe/TCP target listens there, and its load");
  }
  if (error == Errc::kInvalid) {
    return way.fail("tls", error.what(), "use names without spaces, or tls_identity=1");
  }
  way.fail("tls", fmt::format("it hangs up at the first word ({})", error.what()),
           "perhaps a target without TLS: try without, and see what it has logged");
}

void judge_identity(const TlsFacts& facts, Way& way) {
  const std::string offered = fmt::format("'{}'", escaped(facts.identity));
  if (!facts.has_key) {
    return way.fail("identity", "there was no key to offer; the target speaks TLS",
                    "name this host's key: tls=required&tls_key=FILE in the URI");
  }
  if (facts.report.showed_certificate) {
    return way.fail("identity", "it shows a certificate instead of taking a key",
                    "check the port: this is no NVMe/TCP target, or it has no TLS keys");
  }
  way.fail("identity", fmt::format("it does not know {}", offered),
           fmt::format("give the target the key of this host for this subsystem (tls_key in its "
                       "[[subsystem.host]], or --tls-key {}=FILE); names and key must be the same "
                       "at both ends; old targets need tls_identity=0 in the URI",
                       escaped(facts.host_nqn)));
}

void judge_handshake(const TlsFacts& facts, Way& way) {
  const About what = about(facts);
  if (what == About::kAnswer) {
    judge_answer(facts, way);
  } else {
    way.pass("tls", "it answers in TLS");
  }
  if (what == About::kVersion) {
    way.fail("version", facts.handshake_error->what(), "it needs TLS 1.3: bring it up to date");
  } else if (what == About::kOther) {
    way.fail("version", facts.handshake_error->what(), "see what the target has logged");
  } else {
    way.pass("version", "TLS 1.3");
  }
  const bool is_sha384 =
      facts.identity.starts_with("NVMe0R02") || facts.identity.starts_with("NVMe1R02");
  const char* cipher = is_sha384 ? "TLS_AES_256_GCM_SHA384" : "TLS_AES_128_GCM_SHA256";
  if (what == About::kCipher) {
    way.fail("cipher", fmt::format("it does not take {}", cipher),
             fmt::format("use a key of the other hash: 'cairn key new tls --hmac {}'",
                         is_sha384 ? 1 : 2));
  } else {
    way.pass("cipher", cipher);
  }
  if (what == About::kIdentity) {
    judge_identity(facts, way);
  } else {
    way.pass("identity", escaped(facts.identity));
  }
  if (what == About::kKey) {
    way.fail("key", fmt::format("it has another key ({})", facts.handshake_error->what()),
             "copy the same key file to both ends; check names and case of both NQNs");
  } else {
    way.pass("key", "both ends have it");
  }
}

}  // namespace

std::vector<TlsStep> judge_tls(const TlsFacts& facts) {
  Way way;
  way.judge("connect", facts.connect_error, facts.address,
            "check address and port, that the target runs, and firewalls on the way");
  judge_handshake(facts, way);
  way.judge("greeting", facts.greeting_error, "ICReq was answered with ICResp",
            "it speaks TLS, but no NVMe/TCP inside: check the port");
  way.judge("session", facts.session_error,
            fmt::format("{} lets {} in", escaped(facts.nqn), escaped(facts.host_nqn)),
            "allow this host there ('cairn host add'), name a subsystem that 'cairn nvme "
            "discover' lists, or add dhchap_key=FILE if it demands authentication too");
  return std::move(way).steps();
}

bool have_passed(const std::vector<TlsStep>& steps) {
  return std::ranges::all_of(
      steps, [](const TlsStep& step) { return step.outcome == TlsStep::Outcome::kPass; });
}

namespace {

const char* word_of(TlsStep::Outcome outcome) {
  switch (outcome) {
    case TlsStep::Outcome::kPass:
      return "pass";
    case TlsStep::Outcome::kFail:
      return "FAIL";
    case TlsStep::Outcome::kSkipped:
      break;
  }
  return "-";
}

}  // namespace

std::string text_of(const std::vector<TlsStep>& steps) {
  size_t width = 0;
  for (const TlsStep& step : steps) width = std::max(width, step.name.size());
  std::string out;
  for (const TlsStep& step : steps) {
    const std::string line =
        fmt::format("{:<4}  {:<{}}  {}", word_of(step.outcome), step.name, width, step.found);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    if (!step.next.empty()) out += fmt::format("{:{}}next: {}\n", "", 8 + width, step.next);
  }
  return out;
}

nlohmann::ordered_json json_of(const std::vector<TlsStep>& steps) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TlsStep& step : steps) {
    const std::string outcome = step.outcome == TlsStep::Outcome::kPass   ? "pass"
                                : step.outcome == TlsStep::Outcome::kFail ? "fail"
                                                                          : "skipped";
    list.push_back(
        {{"name", step.name}, {"outcome", outcome}, {"found", step.found}, {"next", step.next}});
  }
  return {{"passed", have_passed(steps)}, {"steps", std::move(list)}};
}

}  // namespace cairn::apps::doctor
