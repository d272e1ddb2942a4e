// SPDX-License-Identifier: Apache-2.0
#include "server/events/event_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "drive/health.h"

namespace cairn::server {

namespace {

using drive::Health;

constexpr int kYearFirst = 1970;
constexpr int kYearLast = 2199;
constexpr int64_t kMillisecond = 1'000'000;
constexpr int kDepthMax = 4;

constexpr std::array<std::pair<Event::State, std::string_view>, 4> kStates = {
    {{Event::State::kBegan, "began"},
     {Event::State::kChanged, "changed"},
     {Event::State::kOver, "over"},
     {Event::State::kNoted, "noted"}}};

constexpr std::array<Health, 3> kHealths = {Health::kOk, Health::kDegraded, Health::kFailing};

// Two digits or more as a number; -1: something else.
int digits(std::string_view text) {
  int number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    number = number * 10 + (c - '0');
  }
  return text.empty() ? -1 : number;
}

// "Z", "+01:00", "-08:30": minutes before UTC.
std::optional<int> parse_zone(std::string_view text) {
  if (text == "Z" || text == "z") return 0;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return {};
  const int hours = digits(text.substr(1, 2));
  const int minutes = digits(text.substr(4, 2));
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return {};
  return (text[0] == '+' ? 1 : -1) * (hours * 60 + minutes);
}

// What is not UTF-8 becomes signs that say so; cut not within a letter of several bytes.
void fit_text(std::string& text, size_t size_max) {
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) > 0x7F; })) {
    const std::string sound = Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
    text = Json::parse(sound).get<std::string>();
  }
  if (text.size() <= size_max) return;
  size_t end = size_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
}

// Reads fields of an object, and remembers whether one of them is not as it should be.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  std::string text(const char* name, size_t size_max, bool may_lack = false) {
    const auto found = json_.find(name);
    if (found == json_.end()) {
      is_sound_ = is_sound_ && may_lack;
      return "";
    }
    const auto* text = found->get_ptr<const Json::string_t*>();
    is_sound_ = is_sound_ && text != nullptr && text->size() <= size_max;
    return is_sound_ ? *text : "";
  }
  uint64_t number(const char* name, uint64_t max) {
    const auto found = json_.find(name);
    const auto* number =
        found == json_.end() ? nullptr : found->get_ptr<const Json::number_unsigned_t*>();
    is_sound_ = is_sound_ && number != nullptr && *number <= max;
    return is_sound_ ? *number : 0;
  }
  template <class Value, class Values, class Word>
  Value one_of(const char* name, const Values& values, const Word& word) {
    const std::string text = this->text(name, kEventNameMax);
    const auto* const found =
        std::ranges::find_if(values, [&](Value value) { return word(value) == text; });
    if (found != values.end()) return *found;
    is_sound_ = false;
    return values[0];
  }
  void expect(bool holds) { is_sound_ = is_sound_ && holds; }
  bool is_sound() const { return is_sound_; }

 private:
  const Json& json_;
  bool is_sound_ = true;
};

}  // namespace

std::string_view severity_word(Health severity) {
  switch (severity) {
    case Health::kOk:
      return "info";
    case Health::kDegraded:
      return "warning";
    case Health::kFailing:
      return "error";
  }
  return "error";
}

std::string_view state_word(Event::State state) {
  return std::ranges::find(kStates, state, &decltype(kStates)::value_type::first)->second;
}

std::string time_text(WallTime time) {
  using std::chrono::floor;
  const std::chrono::sys_time<std::chrono::nanoseconds> at{std::chrono::nanoseconds(time.ns)};
  const auto day = floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(floor<std::chrono::milliseconds>(at - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

std::optional<WallTime> parse_time(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (text.size() <= kForm.size()) return {};
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    const bool fits =
        kForm[i] == 'd' ? is_digit : text[i] == kForm[i] || (kForm[i] == 'T' && text[i] == 't');
    if (!fits) return {};
  }
  const std::chrono::year_month_day date(
      std::chrono::year(digits(text.substr(0, 4))),
      std::chrono::month(static_cast<unsigned>(digits(text.substr(5, 2)))),
      std::chrono::day(static_cast<unsigned>(digits(text.substr(8, 2)))));
  const int hour = digits(text.substr(11, 2));
  const int minute = digits(text.substr(14, 2));
  const int second = digits(text.substr(17, 2));
  const int year = static_cast<int>(date.year());
  if (!date.ok() || year < kYearFirst || year > kYearLast) return {};
  if (hour > 23 || minute > 59 || second > 60) return {};  // 60: a leap second
  text.remove_prefix(kForm.size());
  int64_t fraction = 0;
  if (text.front() == '.') {
    size_t end = 1;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end == 1) return {};
    std::string thousandths(text.substr(1, std::min<size_t>(end - 1, 3)));
    thousandths.resize(3, '0');
    fraction = digits(thousandths) * kMillisecond;
    text.remove_prefix(end);
  }
  const std::optional<int> zone = parse_zone(text);
  if (!zone) return {};
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const int64_t seconds = days * 86400 + hour * 3600 + (minute - *zone) * 60 + second;
  const WallTime time{seconds * 1'000'000'000 + fraction};
  // A zone may lead out of the years that there are.
  if (seconds < 0 || time_text(time) > "2199-12-31T23:59:59.999Z") return {};
  return time;
}

void fit(Event& event) {
  for (std::string* name : {&event.role, &event.kind, &event.subject, &event.code, &event.place}) {
    fit_text(*name, kEventNameMax);
  }
  fit_text(event.what, kEventWhatMax);
  fit_text(event.action, kEventWhatMax);
  event.time.ns = std::max<int64_t>(event.time.ns, 0);
  event.time.ns -= event.time.ns % kMillisecond;
}

Json event_json(const Event& event) {
  Json json = {{"schema_version", kEventSchema},
               {"id", event.id},
               {"time", time_text(event.time)},
               {"severity", severity_word(event.severity)},
               {"role", event.role},
               {"kind", event.kind},
               {"subject", event.subject},
               {"health", drive::name(event.health)},
               {"code", event.code},
               {"state", state_word(event.state)}};
  if (!event.place.empty()) json["place"] = event.place;
  json["what"] = event.what;
  if (!event.action.empty()) json["action"] = event.action;
  return json;
}

std::string encode_event(const Event& event) {
  return event_json(event).dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::optional<Event> decode_event(std::string_view line) {
  if (line.size() > kEventLineMax) return {};
  bool is_too_deep = false;
  const auto watch = [&is_too_deep](int depth, Json::parse_event_t, Json&) {
    is_too_deep = is_too_deep || depth > kDepthMax;
    return !is_too_deep;
  };
  const Json json = Json::parse(line, watch, /*allow_exceptions=*/false);
  if (is_too_deep || json.is_discarded() || !json.is_object()) return {};
  Reader reader(json);
  reader.expect(reader.number("schema_version", UINT64_MAX) == kEventSchema);
  Event event;
  event.id = reader.number("id", kEventIdMax);
  reader.expect(event.id > 0);
  const std::optional<WallTime> time = parse_time(reader.text("time", kEventNameMax));
  reader.expect(time.has_value());
  event.time = time.value_or(WallTime());
  event.severity = reader.one_of<Health>("severity", kHealths, severity_word);
  event.role = reader.text("role", kEventNameMax);
  event.kind = reader.text("kind", kEventNameMax);
  event.subject = reader.text("subject", kEventNameMax);
  event.health =
      reader.one_of<Health>("health", kHealths, [](Health health) { return drive::name(health); });
  event.code = reader.text("code", kEventNameMax);
  constexpr std::array<Event::State, 4> kAll = {Event::State::kBegan, Event::State::kChanged,
                                                Event::State::kOver, Event::State::kNoted};
  event.state = reader.one_of<Event::State>("state", kAll, state_word);
  event.place = reader.text("place", kEventNameMax, /*may_lack=*/true);
  event.what = reader.text("what", kEventWhatMax);
  event.action = reader.text("action", kEventWhatMax, /*may_lack=*/true);
  if (!reader.is_sound()) return {};
  return event;
}

std::string event_line(const Event& event) {
  const bool is_well_again = event.state == Event::State::kOver && event.health == Health::kOk;
  std::string line =
      fmt::format("{} {} is {}{}: {}", event.kind, event.subject, drive::name(event.health),
                  is_well_again ? " again" : "", event.what);
  if (event.state == Event::State::kNoted) {
    line = fmt::format("{} {}: {}", event.kind, event.subject, event.what);
  }
  return line;
}

}  // namespace cairn::server
