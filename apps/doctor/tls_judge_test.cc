// SPDX-License-Identifier: Apache-2.0
#include "apps/doctor/tls_judge.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "fabric/host/tls.h"
#include "tls/alert.h"

namespace cairn::apps::doctor {
namespace {

TlsFacts all_well() {
  TlsFacts facts{.address = "192.0.2.7:4420",
                 .host_nqn = "nqn.host",
                 .nqn = "nqn.box",
                 .identity = "NVMe0R01 nqn.host nqn.box",
                 .has_key = true};
  facts.report.heard_anything = facts.report.heard_tls = true;
  return facts;
}

TlsFacts with_alert(tls::Alert alert) {
  TlsFacts facts = all_well();
  facts.report.alert = static_cast<uint8_t>(alert);
  facts.handshake_error = tls::error_of(facts.report.alert);
  return facts;
}

// The step that fails, if all before it pass and all after it are skipped.
std::string failed(const TlsFacts& facts) {
  std::string name = "none";
  bool after = false;
  for (const TlsStep& step : judge_tls(facts)) {
    const auto expected = after ? TlsStep::Outcome::kSkipped : TlsStep::Outcome::kPass;
    if (!after && step.outcome == TlsStep::Outcome::kFail) {
      name = step.name;
      after = true;
      EXPECT_FALSE(step.next.empty()) << name;
      EXPECT_FALSE(step.found.empty()) << name;
    } else {
      EXPECT_EQ(step.outcome, expected) << step.name;
    }
  }
  EXPECT_EQ(have_passed(judge_tls(facts)), !after);
  return name;
}

TEST(DoctorTls, PassesWhenAllIsWell) {
  EXPECT_EQ(failed(all_well()), "none");
  EXPECT_EQ(judge_tls(all_well()).size(), 8u);
}

TEST(DoctorTls, NamesTheStepThatFails) {
  TlsFacts facts = all_well();
  facts.connect_error = Error(Errc::kUnreachable, "connect");
  EXPECT_EQ(failed(facts), "connect");

  facts = all_well();
  facts.report = {};
  for (const Error& error :
       {Error(Errc::kUnsupported, fabric::kTargetIsPlain),
        Error(Errc::kTimedOut, "the TLS handshake took too long"),
        Error(Errc::kReset, "the peer hung up"), Error(Errc::kInvalid, "names")}) {
    facts.handshake_error = error;
    EXPECT_EQ(failed(facts), "tls") << error.text();
  }
  facts.report.heard_anything = true;
  facts.handshake_error = Error(Errc::kUnsupported, "the peer does not speak TLS");
  EXPECT_EQ(failed(facts), "tls");

  EXPECT_EQ(failed(with_alert(tls::Alert::kProtocolVersion)), "version");
  EXPECT_EQ(failed(with_alert(tls::Alert::kInternalError)), "version");
  EXPECT_EQ(failed(with_alert(tls::Alert::kInsufficientSecurity)), "cipher");
  EXPECT_EQ(failed(with_alert(tls::Alert::kUnknownPskIdentity)), "identity");
  EXPECT_EQ(failed(with_alert(tls::Alert::kHandshakeFailure)), "identity");
  EXPECT_EQ(failed(with_alert(tls::Alert::kIllegalParameter)), "key");
  EXPECT_EQ(failed(with_alert(tls::Alert::kDecryptError)), "key");

  facts = all_well();
  facts.handshake_error = Error(Errc::kDenied, "the peer showed a certificate");
  facts.report.showed_certificate = true;
  EXPECT_EQ(failed(facts), "identity");
  facts = all_well();
  facts.handshake_error = Error(Errc::kUnsupported, "the peer does not speak TLS 1.3");
  EXPECT_EQ(failed(facts), "version");
  facts.handshake_error = Error(Errc::kUnsupported, "the peer has no cipher in common with us");
  EXPECT_EQ(failed(facts), "cipher");

  facts = all_well();
  facts.greeting_error = Error(Errc::kInvalid, "ICResp");
  EXPECT_EQ(failed(facts), "greeting");
  facts = all_well();
  facts.session_error = Error(Errc::kDenied, "Connect was refused");
  EXPECT_EQ(failed(facts), "session");
}

TEST(DoctorTls, WithoutAKeySaysThatOneIsMissing) {
  TlsFacts facts = with_alert(tls::Alert::kUnknownPskIdentity);
  facts.has_key = false;
  EXPECT_EQ(failed(facts), "identity");
  EXPECT_NE(text_of(judge_tls(facts)).find("tls_key=FILE"), std::string::npos);
}

TEST(DoctorTls, PrintsTextAndJson) {
  const auto steps = judge_tls(with_alert(tls::Alert::kIllegalParameter));
  const std::string text = text_of(steps);
  EXPECT_NE(text.find("pass  identity  NVMe0R01 nqn.host nqn.box\n"), std::string::npos) << text;
  EXPECT_NE(text.find("FAIL  key       it has another key"), std::string::npos) << text;
  EXPECT_NE(text.find("-     session\n"), std::string::npos) << text;
  const auto json = json_of(steps);
  EXPECT_EQ(json["passed"], false);
  EXPECT_EQ(json["steps"][5]["outcome"], "fail");
  EXPECT_EQ(json["steps"][7]["outcome"], "skipped");
}

}  // namespace
}  // namespace cairn::apps::doctor
