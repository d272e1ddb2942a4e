// SPDX-License-Identifier: Apache-2.0
#include "server/events/event_format.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::server {
namespace {

using drive::Health;

Event leg_lost() {
  return {.id = 7,
          .time = *parse_time("2026-11-19T20:01:02.345Z"),
          .severity = Health::kDegraded,
          .role = "serve",
          .kind = "drive",
          .subject = "safe",
          .health = Health::kDegraded,
          .code = "leg_lost",
          .state = Event::State::kBegan,
          .place = "0.1",
          .what = "mirror (layer 0): leg lost",
          .action = "cairn drive show safe"};
}

constexpr const char* kLine =
    R"({"schema_version":1,"id":7,"time":"2026-11-19T20:01:02.345Z","severity":"warning",)"
    R"("role":"serve","kind":"drive","subject":"safe","health":"degraded","code":"leg_lost",)"
    R"("state":"began","place":"0.1","what":"mirror (layer 0): leg lost",)"
    R"("action":"cairn drive show safe"})";

TEST(EventFormat, IsOneLineOfJson) {
  EXPECT_EQ(encode_event(leg_lost()), kLine);
  EXPECT_EQ(decode_event(kLine), leg_lost());
}

TEST(EventFormat, PassesOverFieldsOfLaterVersions) {
  std::string line = kLine;
  line.insert(1, R"("more":{"a":[1]},)");
  EXPECT_EQ(decode_event(line), leg_lost());
}

TEST(EventFormat, RefusesWhatIsNoEvent) {
  const std::string line = kLine;
  for (size_t size = 0; size < line.size(); ++size) {
    EXPECT_FALSE(decode_event(line.substr(0, size))) << size;
  }
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = line;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  for (const std::string& bad :
       {with("\"id\":7", "\"id\":0"), with("\"id\":7", "\"id\":-7"), with("\"id\":7", "\"id\":1e9"),
        with("\"id\":7", "\"id\":9007199254740993"), with("warning", "bad"),
        with("degraded", "well"), with("began", "ended"),
        with("\"schema_version\":1", "\"schema_version\":2"), with("2026-11-19", "2026-13-19"),
        with("\"safe\"", "[]"), with("\"what\"", "\"wat\""),
        with("safe", std::string(kEventNameMax + 1, 'x')), with("safe", "\xff"), with("safe", "\n"),
        std::string("[]"), std::string(kEventLineMax + 1, ' ') + line,
        with("{", R"({"deep":[[[[[[1]]]]]],)")}) {
    EXPECT_FALSE(decode_event(bad)) << bad.substr(0, 300);
  }
}

TEST(EventFormat, CutsWhatIsTooLongBetweenLetters) {
  Event event = leg_lost();
  event.what = std::string(kEventWhatMax - 1, 'x') + "\u00e4\u00e4";
  event.subject = std::string(10'000, '\x01');
  event.time.ns += 999'999;
  fit(event);
  EXPECT_EQ(event.what, std::string(kEventWhatMax - 1, 'x'));
  const std::string line = encode_event(event);
  EXPECT_LE(line.size(), kEventLineMax);
  EXPECT_EQ(decode_event(line), event);
}

TEST(EventFormat, MakesBytesThatAreNoTextReadable) {
  Event event = leg_lost();
  event.what = "file:\xff\xfe" + std::string(kEventWhatMax, '\xff');
  fit(event);
  EXPECT_LE(event.what.size(), kEventWhatMax);
  EXPECT_EQ(decode_event(encode_event(event)), event);
}

TEST(EventFormat, KeepsANewlineWithinTheLine) {
  Event event = leg_lost();
  event.what = "one\ntwo \x1b[31m";
  EXPECT_EQ(encode_event(event).find('\n'), std::string::npos);
  EXPECT_EQ(encode_event(event).find('\x1b'), std::string::npos);
  EXPECT_EQ(decode_event(encode_event(event)), event);
}

TEST(EventFormat, ReadsTimesOfAllZones) {
  const WallTime noon = *parse_time("2026-11-19T12:00:00Z");
  EXPECT_EQ(time_text(noon), "2026-11-19T12:00:00.000Z");
  EXPECT_EQ(parse_time("2026-11-19T13:00:00+01:00"), noon);
  EXPECT_EQ(parse_time("2026-11-19t03:30:00.0-08:30"), noon);
  EXPECT_EQ(time_text(*parse_time("2026-11-19T12:00:00.0019999Z")), "2026-11-19T12:00:00.001Z");
  EXPECT_EQ(time_text(WallTime{}), "1970-01-01T00:00:00.000Z");
  for (const char* bad :
       {"", "2026-11-19", "2026-11-19T12:00:00", "2026-11-19 12:00:00Z", "2026-02-30T12:00:00Z",
        "2026-11-19T24:00:00Z", "2026-11-19T12:00:00.Z", "1969-11-19T12:00:00Z",
        "9999-11-19T12:00:00Z", "1970-01-01T00:00:00+00:01", "2199-12-31T23:59:59-00:01",
        "2026-11-19T12:00:00ZZ", "2026-11-19T12:00:00+1:00", "2026-11-19T12:00:00+24:00"}) {
    EXPECT_FALSE(parse_time(bad)) << bad;
  }
}

TEST(EventFormat, SaysInOneLineWhatIsWrong) {
  Event event = leg_lost();
  EXPECT_EQ(event_line(event), "drive safe is degraded: mirror (layer 0): leg lost");
  event.state = Event::State::kOver;
  event.health = Health::kOk;
  EXPECT_EQ(event_line(event), "drive safe is ok again: mirror (layer 0): leg lost");
}

}  // namespace
}  // namespace cairn::server
