// SPDX-License-Identifier: Apache-2.0
#include "stack/stack_text.h"

#include <gtest/gtest.h>

#include <string>

#include "drive/source.h"
#include "stack/services.h"

namespace cairn::drive {
namespace {

std::string canonical(std::string_view text) {
  const auto stack = Stack::parse(text);
  return stack ? stack->text() : "error: " + stack.error().text;
}

TEST(StackText, ReadsWhatItPrints) {
  for (const char* text :
       {"mem:size=1G", "nvme-tcp://10.0.0.1:4420/nqn.2026-11.io.cairn:a?nsid=2&queues=4",
        "limit(mem:size=1G, iops=5)", "slice(file:/d0,size=8G,block=512, offset=4096)",
        "priority(stripe(nvme-tcp://[fd00::7]/nqn.a, file:/b, chunk=64K), floor=10)",
        "limit(\"file:/a (b), c\", iops=5)", "limit(mem:size=1G, note=\"a, \\\"b\\\" \\\\ c\")"}) {
    EXPECT_EQ(canonical(text), text);
  }
}

TEST(StackText, SpacesAndOrderOfOptionsDoNotMatter) {
  EXPECT_EQ(canonical(" stripe( chunk=64K ,file:/a , size=1G\n,mem:size=1G )"),
            "stripe(file:/a,size=1G, mem:size=1G, chunk=64K)");
  EXPECT_EQ(canonical("limit(\"mem:size=1G\",iops=5)"), "limit(mem:size=1G, iops=5)");
}

TEST(StackText, OptionsOfASourceBelongToItAndOthersToTheService) {
  const auto stack = Stack::parse("slice(file:/a,size=8G,direct=off,offset=1M,length=2M)");
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->below[0].name, "file:/a,size=8G,direct=off");
  ASSERT_EQ(stack->options.size(), 2U);
  EXPECT_EQ(stack->options[0].key, "offset");
}

TEST(StackText, NoServiceHasAnOptionOfASource) {
  for (const Service* service : services()) {
    for (const ServiceOption& option : service->options) {
      EXPECT_FALSE(is_source_option(option.key)) << service->name << " " << option.key;
    }
  }
}

TEST(StackText, SaysWhatIsWrongAndWhere) {
  struct Case {
    const char* text;
    size_t place;
    const char* message;
  };
  const Case cases[] = {
      {"", 0, "a drive is missing here"},
      {"mirror", 0, "neither a service nor a drive"},
      {"limit(mem:size=1G", 17, "close limit( with ')'"},
      {"limit(mem:size=1G))", 18, "complete before this"},
      {"limit(mem:size=1G iops=5)", 18, "write ','"},
      {"limit(, iops=5)", 6, "a drive is missing here"},
      {"limit(mem:size=1G, iops=)", 24, "iops has no value"},
      {"limit(mem:size=1G, iops=1, iops=2)", 27, "given twice"},
      {"limit(\"mem:size=1G)", 6, "quote is not closed"},
      {"limit(file:/a(b))", 13, "double quotes"},
      {"limit(\"a\")", 6, "this is no drive"},
      {"limit(nvme-tcp://a/b, size=1G)", 22, "an option of mem:"},
  };
  for (const Case& one : cases) {
    const auto stack = Stack::parse(one.text);
    ASSERT_FALSE(stack) << one.text;
    EXPECT_EQ(stack.error().place, one.place) << one.text;
    EXPECT_NE(stack.error().text.find(one.message), std::string::npos)
        << one.text << ": " << stack.error().text;
  }
}

TEST(StackText, ShowsThePlaceWithACaret) {
  EXPECT_EQ((StackError{6, "here"}).show("limit(x)"), "limit(x)\n      ^ here");
  EXPECT_EQ((StackError{8, "here"}).show("\"\xc3\xa4\xc3\xb6\"\tx,y"),
            "\"\xc3\xa4\xc3\xb6\" x,y\n      ^ here");
  const std::string shown = StackError{200, "here"}.show(std::string(400, 'a'));
  EXPECT_EQ(shown, "... " + std::string(90, 'a') + " ...\n" + std::string(64, ' ') + "^ here");
}

TEST(StackText, DepthLayersAndLengthHaveALimit) {
  std::string deep;
  for (size_t i = 0; i < kStackDepthMax; ++i) deep += "a(";
  EXPECT_NE(canonical(deep + "mem:").find("layers deep"), std::string::npos);
  std::string wide = "a(mem:";
  for (size_t i = 0; i < kStackLayersMax; ++i) wide += ", mem:";
  EXPECT_NE(canonical(wide + ")").find("256 layers"), std::string::npos);
  EXPECT_NE(canonical(std::string(kStackTextMax + 1, 'a')).find("bytes"), std::string::npos);
}

std::string checked(std::string_view text) {
  const auto stack = Stack::parse(text);
  if (!stack) return stack.error().text;
  const auto good = check_stack(*stack);
  return good ? "" : good.error().show(text);
}

TEST(CheckStack, KnowsServicesTheirDrivesAndOptions) {
  EXPECT_EQ(checked("limit(stripe(mem:size=1G, mem:size=1G), iops=5)"), "");
  const std::pair<const char*, const char*> cases[] = {
      {"frobnicate(mem:size=1G)", "there is no service 'frobnicate': choose one of "},
      {"limit(mem:size=1G, mem:size=1G)", "limit stands on 1 drive, and here are 2"},
      {"stripe(mem:size=1G)", "stripe stands on 2 to 32 drives, and here are 1"},
      {"limit(mem:size=1G, iops=many)", "iops 'many' is not a whole number"},
      {"stripe(mem:, mem:, chunk=64X)", "chunk '64X' is not a size"},
      {"stripe(mem:, mem:, chunk=1)", "chunk is 512 to 1073741824"},
      {"limit(mem:size=1G, colour=red)", "limit has no option 'colour': it has iops, bytes"},
      {"stripe(file:/a, limit(file:/a, iops=1))", "this drive is in the stack already"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_NE(checked(text).find(message), std::string::npos) << text << ":\n" << checked(text);
  }
}

}  // namespace
}  // namespace cairn::drive
