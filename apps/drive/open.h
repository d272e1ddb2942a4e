// SPDX-License-Identifier: Apache-2.0
// Drives as `cairn drive` names them, and the one place where such a text becomes a drive.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apps/problem.h"
#include "drive/source.h"
#include "env/env.h"

namespace cairn::apps {

// [NAME=]DRIVE, understood and not yet opened.
struct DriveWords {
  std::string name;  // empty: none was given
  drive::Spec spec;
};
Attempt<DriveWords> parse_drive_words(std::string_view text);

// The Problem names the drive and what to do.
Attempt<std::unique_ptr<drive::Source>> open_drive(env::Env& env, const DriveWords& words);

}  // namespace cairn::apps
