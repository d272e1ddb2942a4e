// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <deque>
#include <string>
#include <vector>

#include "config/settings.h"
#include "env/address.h"

namespace cairn::config {
namespace {

// The problem with `text` as a file of settings; "" when there is none.
std::string problem_of(std::string_view text) {
  Settings settings;
  const Attempt<void> checked = check_config(text, "f.toml", settings_keys(settings));
  return checked ? "" : checked.error().text;
}

TEST(Config, EmptyFileKeepsEveryDefault) {
  Settings settings;
  ASSERT_TRUE(check_config("", "f.toml", settings_keys(settings)));
  // A setting that is added does not compile here, so that nobody forgets it.
  const auto& [io, cores, poll, poll_cores, spin, nap, log_level] = settings;
  EXPECT_EQ(io, IoChoice::kAuto);
  EXPECT_TRUE(cores.empty());
  EXPECT_FALSE(poll);
  EXPECT_TRUE(poll_cores.empty());
  EXPECT_EQ(spin, Duration(0));
  EXPECT_EQ(nap, std::nullopt) << "each core finds out";
  EXPECT_EQ(log_level, LogLevel::kInfo);
}

TEST(Config, KeysPresentAreStored) {
  Settings settings;
  ASSERT_TRUE(
      check_config("[runtime]\nio = 'epoll'\ncores = [3, 1]\npoll = true\n"
                   "[log]\nlevel = \"debug\" # loud\n",
                   "f.toml", settings_keys(settings)));
  EXPECT_EQ(settings.io, IoChoice::kEpoll);
  EXPECT_EQ(settings.cores, (std::vector<int>{3, 1}));
  EXPECT_TRUE(settings.poll);
  EXPECT_EQ(settings.log_level, LogLevel::kDebug);
}

TEST(Config, UnknownKeyIsNamedWithItsPlaceAndTheNearestOne) {
  EXPECT_EQ(problem_of("[runtime]\n\n  pol = true\n"),
            "f.toml:3:3: unknown key 'pol' in [runtime]; did you mean 'poll'? "
            "(allowed: io, cores, poll, poll_cores, spin, nap)");
  EXPECT_EQ(problem_of("[rumtime]\nio = 'auto'\n"),
            "f.toml:1:2: unknown key 'rumtime' in this file; did you mean 'runtime'? "
            "(allowed: runtime, log)");
  EXPECT_EQ(problem_of("zebra = 1"),
            "f.toml:1:1: unknown key 'zebra' in this file (allowed: runtime, log)");
}

TEST(Config, WrongTypeSaysWhatIsWanted) {
  EXPECT_EQ(problem_of("runtime.poll = 1"),
            "f.toml:1:16: runtime.poll must be true or false; this is an integer");
  EXPECT_EQ(problem_of("runtime.io = 1"),
            "f.toml:1:14: runtime.io must be one of auto, uring, epoll; this is an integer");
  EXPECT_EQ(problem_of("runtime.cores = 1"),
            "f.toml:1:17: runtime.cores must be a list of whole numbers like [0, 1]; "
            "this is an integer");
  EXPECT_EQ(problem_of("runtime.cores = [0, 'b']"),
            "f.toml:1:21: runtime.cores[1] must be a whole number, 0 to 1023; this is text");
  EXPECT_EQ(problem_of("runtime = 5"),
            "f.toml:1:11: runtime must be a table headed [runtime]; this is an integer");
  EXPECT_EQ(problem_of("log.level = 2024-01-01"),
            "f.toml:1:13: log.level must be one of debug, info, warn, error; "
            "this is a date or time");
}

TEST(Config, OutOfRangeSaysTheRange) {
  EXPECT_EQ(problem_of("runtime.cores = [0, 1024]"),
            "f.toml:1:21: runtime.cores[1] is 1024 (allowed: 0 to 1023)");
  EXPECT_EQ(problem_of("runtime.cores = [-1]"),
            "f.toml:1:18: runtime.cores[0] is -1 (allowed: 0 to 1023)");
  EXPECT_EQ(problem_of("log.level = 'wran'"),
            "f.toml:1:13: log.level is 'wran'; did you mean 'warn'? "
            "(allowed: debug, info, warn, error)");
}

TEST(Config, EveryMistakeIsReportedInTheOrderOfTheFile) {
  EXPECT_EQ(problem_of("[runtime]\nz = 1\npoll = 2\na = 3\n"),
            "f.toml:2:1: unknown key 'z' in [runtime] (allowed: io, cores, "
            "poll, poll_cores, spin, nap)\n"
            "f.toml:3:8: runtime.poll must be true or false; this is an integer\n"
            "f.toml:4:1: unknown key 'a' in [runtime] (allowed: io, cores, "
            "poll, poll_cores, spin, nap)");
}

TEST(Config, ManyMistakesAreCut) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "k" + std::to_string(i) + " = 1\n";
  const std::string problem = problem_of(text);
  EXPECT_TRUE(problem.ends_with("f.toml: 480 more like these; mend the first ones and check again"))
      << problem;
}

TEST(Config, BadTomlIsNamedWithItsPlace) {
  EXPECT_TRUE(problem_of("[runtime]\nio = \n").starts_with("f.toml:2:6: this is not TOML: "))
      << problem_of("[runtime]\nio = \n");
  EXPECT_TRUE(problem_of("io = 'a'\nio = 'b'\n").starts_with("f.toml:2:"));
  EXPECT_TRUE(problem_of("a = \"\xFF\"").starts_with("f.toml:1:"));
}

TEST(Config, DeepDottedKeysAreRefusedAndNotParsed) {
  std::string text = "a";
  for (int i = 0; i < 100'000; ++i) text += " . a";
  EXPECT_EQ(problem_of("# a.b\n" + text + " = 1"),
            "f.toml:2:63: this is not TOML: a dotted key has at most 16 parts; write a [table] "
            "header instead; mend this line");
  EXPECT_NE(problem_of("[" + text + "]"), "");
  EXPECT_NE(problem_of("x = {" + text + " = 1}"), "");
  EXPECT_NE(problem_of("'#'." + text + " = 1"), "");
  EXPECT_NE(problem_of("\"\\\"\" . " + text + " = 1"), "");
}

TEST(Config, DotsInStringsCommentsAndNumbersAreNotKeys) {
  std::string dots(100, '.');
  std::string numbers;
  for (int i = 0; i < 100; ++i) numbers += "1.5, ";
  for (const std::string& text : {"# " + dots, "a = '" + dots + "'", "a = \"\\\"" + dots + "\"",
                                  "a = \"\"\"\n\"" + dots + "\n" + dots + "\"\"\"\"\"",
                                  "a = '''" + dots + "''' # " + dots, "a = [" + numbers + "]"}) {
    EXPECT_EQ(problem_of(text).find("dotted"), std::string::npos) << text;
  }
}

// What a later command might declare.
struct Listener {
  env::Address address;
  uint16_t queue_depth = 128;
};

Section listener_keys(std::deque<Listener>& listeners) {
  Section root;
  root.tables("listener", 3, [&listeners] {
    Listener& listener = listeners.emplace_back();
    Section keys;
    keys.parsed("address", listener.address, &env::Address::parse, "127.0.0.1:4420").required();
    keys.integer("queue_depth", listener.queue_depth, {.min = 1, .max = 1024});
    return keys;
  });
  return root;
}

TEST(Config, TablesMakeOneOfEach) {
  std::deque<Listener> listeners;
  const Attempt<void> checked = check_config(
      "[[listener]]\naddress = '10.0.0.1:4420'\n"
      "[[listener]]\naddress = '[::1]:1'\nqueue_depth = 7\n",
      "f.toml", listener_keys(listeners));
  ASSERT_TRUE(checked) << checked.error().text;
  ASSERT_EQ(listeners.size(), 2U);
  EXPECT_EQ(listeners[0].address.text(), "10.0.0.1:4420");
  EXPECT_EQ(listeners[0].queue_depth, 128);
  EXPECT_EQ(listeners[1].queue_depth, 7);
}

std::string listener_problem(std::string_view text) {
  std::deque<Listener> listeners;
  const Attempt<void> checked = check_config(text, "f.toml", listener_keys(listeners));
  return checked ? "" : checked.error().text;
}

TEST(Config, TablesNameTheirIndex) {
  EXPECT_EQ(listener_problem("[[listener]]\nqueue_depth = 0\n"),
            "f.toml:2:15: listener[0].queue_depth is 0 (allowed: 1 to 1024)\n"
            "f.toml:1:1: [listener[0]] needs the key 'address'; add it");
  EXPECT_EQ(listener_problem("[listener]\n"),
            "f.toml:1:1: listener must be tables, each headed [[listener]]; this is a table");
  EXPECT_EQ(listener_problem("[[listener]]\n[[listener]]\n[[listener]]\n[[listener]]\n"),
            "f.toml:1:1: there are 4 of [[listener]]; at most 3 are allowed");
}

TEST(Config, ParsedTextSaysWhyAndGivesAnExample) {
  const std::string problem = listener_problem("[[listener]]\naddress = 'here'\n");
  EXPECT_TRUE(problem.starts_with("f.toml:2:11: listener[0].address is 'here': ")) << problem;
  EXPECT_TRUE(problem.ends_with("; write something like \"127.0.0.1:4420\"")) << problem;
}

// Whatever the bytes, the answer is success or lines that start with the file's name.
void expect_clear_answer(const std::string& text) {
  const std::string problem = problem_of(text);
  RC_ASSERT(problem.empty() || problem.starts_with("f.toml:"));
  RC_ASSERT(problem.size() < 40'000U);
}

TEST(ConfigProperty, AnyBytesGetAClearAnswer) {
  EXPECT_TRUE(rc::check([] {
    const auto texts = *rc::gen::container<std::vector<std::string>>(
        50, rc::gen::container<std::string>(rc::gen::arbitrary<char>()));
    for (const std::string& text : texts) expect_clear_answer(text);
  }));
}

TEST(ConfigProperty, AnyPiecesOfTomlGetAClearAnswer) {
  const std::vector<std::string> pieces = {"[",          "]",     "[[",
                                           "]]",         "{",     "}",
                                           "\n",         "=",     ".",
                                           ",",          "'",     "\"",
                                           "\"\"\"",     "'''",   "\\",
                                           "#",          " ",     "\\u",
                                           "\xFF",       "\r",    "é",
                                           "runtime",    "io",    "poll",
                                           "true",       "0x",    "1e999",
                                           "1979-05-27", "-",     "auto",
                                           "nan",        "cores", std::string(1, '\0')};
  EXPECT_TRUE(rc::check([&pieces] {
    const auto piece = rc::gen::elementOf(pieces);
    const auto texts = *rc::gen::container<std::vector<std::vector<std::string>>>(
        50, rc::gen::container<std::vector<std::string>>(piece));
    for (const std::vector<std::string>& parts : texts) {
      std::string text;
      for (const std::string& part : parts) text += part;
      expect_clear_answer(text);
    }
  }));
}

TEST(ConfigProperty, AGoodFileWithOneByteChangedGetsAClearAnswer) {
  const std::string good =
      "[runtime]\nio = \"auto\"\ncores = [0, 1]\npoll = false\n\n[log]\nlevel = 'info'\n";
  ASSERT_EQ(problem_of(good), "");
  EXPECT_TRUE(rc::check([&good](char byte) {
    std::string text = good;
    text[*rc::gen::inRange<size_t>(0, good.size())] = byte;
    expect_clear_answer(text);
  }));
}

TEST(Config, BracketsNestOnlySoDeep) {
  EXPECT_NE(problem_of("a = " + std::string(100'000, '[')), "");
  EXPECT_NE(problem_of("a = " + std::string(100'000, '{')), "");
  std::string text = "a = ";
  for (int i = 0; i < 50'000; ++i) text += "{a.a.a.a.a.a.a.a.a.a = [";
  EXPECT_NE(problem_of(text), "");
}

}  // namespace
}  // namespace cairn::config
