// SPDX-License-Identifier: Apache-2.0
#include "server/common/default_nqn.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace cairn::server {
namespace {

std::vector<nvme::NamespaceOptions> drives(std::string_view spec) {
  nvme::NamespaceOptions options;
  options.drive = drive::Spec::parse(spec).value();
  return {options};
}

TEST(DefaultNqn, OfMemoryIsDrawnAndOfFilesStays) {
  const auto memory = drives("mem:size=1M");
  EXPECT_NE(*make_default_nqn("box", "", memory), *make_default_nqn("box", "", memory));
  EXPECT_EQ(*make_default_nqn("box", "", drives("file:/a,size=1M")),
            *make_default_nqn("box", "", drives("file:/a,size=2M")));
  EXPECT_NE(*make_default_nqn("box", "", drives("file:/a,size=1M")),
            *make_default_nqn("box", "", drives("file:/b,size=1M")));
}

TEST(DefaultNqn, IsKeptInTheStateFolder) {
  const std::filesystem::path folder = testing::TempDir() + "default_nqn";
  std::filesystem::remove_all(folder);
  const auto memory = drives("mem:size=1M");
  const std::string first = *make_default_nqn("box", folder / "a", memory);
  EXPECT_EQ(*make_default_nqn("box", folder / "a", memory), first);
  EXPECT_NE(*make_default_nqn("box", folder / "b", memory), first);
  // One of a box from before names were kept.
  std::filesystem::create_directories(folder / "c");
  std::ofstream(folder / "c" / "changes.toml") << "";
  EXPECT_EQ(*make_default_nqn("box", folder / "c", memory), "nqn.2026-11.io.cairn:box");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cairn::server
