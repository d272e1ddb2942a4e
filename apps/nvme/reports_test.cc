// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "apps/nvme/discovery_report.h"
#include "apps/nvme/perf_report.h"
#include "apps/nvme/range.h"
#include "apps/nvme/verify_report.h"
#include "nvme/format/status_format.h"
#include "server/open/explain.h"

namespace cairn::apps {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// --- perf ----------------------------------------------------------------------------------------

TEST(Pattern, NamesOrderAndShare) {
  loadgen::DriveLoad load;
  ASSERT_TRUE(parse_pattern("write", load));
  EXPECT_EQ(load.order, loadgen::DriveLoad::Order::kSequential);
  EXPECT_EQ(load.read_share, 0);
  ASSERT_TRUE(parse_pattern("mixed:70", load));
  EXPECT_EQ(load.order, loadgen::DriveLoad::Order::kRandom);
  EXPECT_DOUBLE_EQ(load.read_share, 0.7);
  for (const char* text : {"", "mixed:", "mixed:101", "mixed:-1", "mixed:7x", "READ"}) {
    EXPECT_FALSE(parse_pattern(text, load)) << text;
  }
}

TEST(PerfReport, IsReadableAndComplete) {
  PerfReport report{.uri = "u", .pattern = "mixed:50"};
  report.result = {.reads = 10,
                   .writes = 10,
                   .bytes_read = 40960,
                   .bytes_written = 40960,
                   .measured = 2_s,
                   .per_second = 1234567,
                   .request_size = 4096,
                   .unsent = 3};
  report.result.read_latency_ns.record(50'000);
  report.result.write_latency_ns.record(70'000);
  const std::string text = text_of(report);
  for (const char* part :
       {"1,234,567", "5.057 GB/s", "read latency", "write latency", "3 requests were due"}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
  const nlohmann::ordered_json json = json_of(report);
  EXPECT_EQ(json["read"]["ios"], 10);
  EXPECT_EQ(json["unsent"], 3);
  EXPECT_TRUE(json["error"].is_null());
}

TEST(PerfReport, NothingMeasuredIsNoLatency) {
  const PerfReport report;
  EXPECT_TRUE(json_of(report)["latency_us"].is_null());
  EXPECT_TRUE(has(text_of(report), "none"));
}

// --- verify --------------------------------------------------------------------------------------

TEST(VerifyReport, AMismatchSaysWhereWhatAndWhich) {
  VerifyReport report{.seed = 5, .block_size = 4096};
  report.result.mismatch = loadgen::BlockMismatch{
      .lba = Lba(3), .allowed = {.low = 7, .high = 7}, .found = "generation 6 of this block"};
  const std::string text = problem_of(report).text;
  for (const char* part :
       {"block 3", "byte 12288", "generation 6 of this block", "generation 7", "Seed 5"}) {
    EXPECT_TRUE(has(text, part)) << part;
  }
  EXPECT_EQ(json_of(report)["ok"], false);
  EXPECT_EQ(json_of(report)["mismatch"]["byte"], 12288);
}

// --- discovery -----------------------------------------------------------------------------------

TEST(DiscoveryReport, ReferralsAndOtherTransportsAreShown) {
  const fabric::DiscoveryRecord referral{.transport = nvme::TransportType::kTcp,
                                         .family = nvme::AddressFamily::kIp6,
                                         .type = nvme::SubsystemType::kReferral,
                                         .nqn = "nqn.2014-08.org.nvmexpress.discovery",
                                         .address = "fd00::7",
                                         .service = "8009"};
  const fabric::DiscoveryRecord rdma{.transport = nvme::TransportType::kRdma,
                                     .family = nvme::AddressFamily::kIp4,
                                     .type = nvme::SubsystemType::kNvm,
                                     .nqn = "nqn.a\x1b",
                                     .address = "10.0.0.1",
                                     .service = "4420"};
  DiscoveredService service{.log = {.generation = 2, .records = {referral, rdma}}};
  const std::string text = text_of({&service, 1});
  EXPECT_TRUE(has(text, "discovery subsystem referral"));
  EXPECT_TRUE(has(text, "nvme-tcp://[fd00::7]:8009\n"));
  EXPECT_TRUE(has(text, "nqn.a\\x1b"));
  const nlohmann::ordered_json json = json_of({&service, 1});
  EXPECT_EQ(json["records"][0]["uri"], "nvme-tcp://[fd00::7]:8009");
  EXPECT_FALSE(json["records"][1].contains("uri"));
}

// --- ranges and errors ---------------------------------------------------------------------------

TEST(Range, IsWithinTheDriveAndOfWholeBlocks) {
  const drive::Geometry geometry{.blocks = 100};
  const auto text = [&](const RangeOptions& options) {
    const Attempt<ByteRange> range = check_range(options, geometry);
    return range ? std::to_string(range->offset) + "+" + std::to_string(range->length)
                 : range.error().text;
  };
  EXPECT_EQ(text({}), "0+409600");
  EXPECT_EQ(text({.offset = 4096}), "4096+405504");
  EXPECT_EQ(text({.offset = 4096, .length = 8192}), "4096+8192");
  EXPECT_TRUE(has(text({.offset = 5000}), "4096 or 8192 would do"));
  EXPECT_TRUE(has(text({.length = 1}), "0 or 4096 would do"));
  EXPECT_TRUE(has(text({.offset = 409600}), "behind the end"));
  EXPECT_TRUE(has(text({.offset = 4096, .length = 409600}), "--length 405504"));
  EXPECT_TRUE(has(text({.offset = 4096, .length = UINT64_MAX - 4095}), "would reach its end"));
}

TEST(Explain, StatusesOfATargetHaveTheirNames) {
  const Error error(Errc::kInvalid, "NVMe status of the target", 0x80);
  EXPECT_TRUE(has(server::error_sentence(error), "(080h)"));
  EXPECT_TRUE(has(server::cannot_do("reading", error).text, "reading failed"));
  EXPECT_FALSE(has(server::error_sentence(Error(Errc::kReset, "the connection", 104)), "068h"));
}

// A target that answers is not gone, and starting it again would not help.
TEST(Explain, ANamespaceThatAnaClosesIsNotATargetThatIsGone) {
  const Error closed(Errc::kUnreachable, "ANA closes every path to the namespace for too long");
  const Error by_status(Errc::kUnreachable, "NVMe status of the target",
                        static_cast<int32_t>(nvme::StatusCode::kAnaInaccessible));
  for (const Error& error : {closed, by_status}) {
    const std::string text = server::cannot_do("reading", error).text;
    EXPECT_TRUE(has(text, "the target answers")) << text;
    EXPECT_TRUE(has(text, "'cairn drive ana'")) << text;
    EXPECT_FALSE(has(text, "gone")) << text;
  }
  const Error gone(Errc::kUnreachable, "no path to the namespace for too long");
  EXPECT_TRUE(has(server::cannot_do("reading", gone).text, "the target is gone"));
}

TEST(Explain, EveryCodeOfAConnectionHasASentence) {
  fabric::Uri uri;
  uri.nqn = "nqn.a";
  const env::Address at = env::Address::loopback(4420);
  for (int number = 1; number <= static_cast<int>(Errc::kCancelled); ++number) {
    const auto code = static_cast<Errc>(number);
    const Error error(code, "Connect");
    const std::string connecting = server::cannot_connect(error, uri, at).text;
    if (code == Errc::kCancelled) {
      EXPECT_EQ(connecting, "interrupted");
    } else {
      EXPECT_TRUE(has(connecting, at.text())) << connecting;
    }
    const std::string reading = server::cannot_do("reading", error).text;
    EXPECT_TRUE(has(reading, "reading")) << reading;
    EXPECT_GT(reading.size(), std::string_view("reading failed: ").size()) << name(code);
  }
}

}  // namespace
}  // namespace cairn::apps
