// SPDX-License-Identifier: Apache-2.0
// What a service is: its name, what it takes, and how one is opened.
//
// A new service is a file that defines its Service, a test, and a line in stack/services.cc; the
// language of stacks, its checks, the help and the tests of all pairs follow from that table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "drive/drive.h"
#include "env/env.h"
#include "service/common/files.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::drive {

struct Stack;
struct StackError;

struct ServiceOption {
  enum class Kind : uint8_t {
    kNumber,
    kSize,   // "64K"
    kYesNo,  // "yes", "no"
    kText,
    kFile,  // a small file, handed to the service as ServiceParts::contents; "none": no file
  };
  std::string_view key;
  Kind kind = Kind::kNumber;
  std::string_view default_value;  // when it is not given; empty: it must be
  std::string_view what;           // for the help, in a few words
  uint64_t min = 0;                // of numbers and sizes
  uint64_t max = UINT64_MAX;
};

// The options of one layer, checked: each of the service's has a value.
class ServiceOptions {
 public:
  explicit ServiceOptions(std::span<const ServiceOption> known) : known_(known) {}
  // Numbers and sizes; yes is 1. The key is one of the service's.
  uint64_t number(std::string_view key) const;
  bool is_yes(std::string_view key) const { return number(key) != 0; }
  const std::string& text(std::string_view key) const;

 private:
  friend std::expected<ServiceOptions, StackError> read_options(const Stack& layer);
  size_t index(std::string_view key) const;

  struct Value {
    std::string text;
    uint64_t number = 0;
  };
  std::span<const ServiceOption> known_;
  std::vector<Value> values_;  // in the order of known_
};

// Opens drives below a service, when they could not be opened with it.
class LateDrives {
 public:
  virtual ~LateDrives() = default;
  // The drive of that number among those below. kUnreachable: it still cannot be opened, and what
  // shows the stack says why; errors of the token.
  virtual task::Task<Result<std::unique_ptr<Drive>>> open(size_t index,
                                                          task::CancelToken token) = 0;
  // Opens one of the drives below anew, with all that it stands on, because its medium is not what
  // it was; nothing uses it meanwhile. On failure it fails everything, until this succeeds.
  virtual task::Task<Result<void>> reopen(Drive& drive, task::CancelToken token) = 0;
};

// What a service is opened with.
struct ServiceParts {
  env::Env& env;
  // As many as the service takes, all open; null only for a service that survives_loss.
  std::vector<std::unique_ptr<Drive>>& below;
  ServiceOptions options;
  std::map<std::string_view, FileContent> contents;  // of the options that name a file, by key
  Files& files;                                      // outlives the drive
  // For what is null below, or is to be opened anew; null: nothing comes later. Outlives it.
  LateDrives* late = nullptr;
  // The user has said that what the drives below hold may be lost: they are taken though they are
  // not blank.
  bool may_format = false;
};

struct Service {
  std::string_view name;
  std::string_view what;     // for the help, in one line
  std::string_view example;  // with {} for each drive below: "stripe({}, {}, chunk=64K)"
  size_t below_min = 1;
  size_t below_max = 1;
  bool survives_loss = false;  // opens though some of the drives below cannot be
  bool is_filter = false;      // block n is block n of the one drive below; it keeps nothing
  // How the leaves begin on which alone it stands, "flash:"; layers of the stack, and of others,
  // share such a leaf and each takes its part. Empty: it stands on anything.
  std::string_view leaf_only = {};
  std::span<const ServiceOption> options;
  // Takes the drives out of `below` on success; on failure the caller closes those left there, and
  // nothing was written to them. The service closes what it took.
  task::Task<Result<std::unique_ptr<Drive>>> (*open)(ServiceParts parts) = nullptr;
};

}  // namespace cairn::drive
