// SPDX-License-Identifier: Apache-2.0
#include "drive/shared_sources.h"

#include <utility>

#include "env/call.h"

namespace cairn::drive {

namespace {

// That a share is no more, on its way to the core of the media.
struct Farewell : env::Message {
  using Message::Message;
  SharedSources* to = nullptr;
  std::string name;
};

}  // namespace

class SharedSources::Share final : public Source {
 public:
  Share(env::Env& env, SharedSources& of, Source& medium, std::string name)
      : env_(env), of_(of), medium_(medium), name_(std::move(name)) {}
  ~Share() override {
    if (env_.core() == of_.core_) {
      of_.give_back(name_);
      return;
    }
    auto farewell = std::make_unique<Farewell>(&Share::arrive);
    farewell->to = &of_;
    farewell->name = std::move(name_);
    env_.post(of_.core_, *farewell.release());
  }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  Result<std::unique_ptr<Drive>> open(env::Env& env) override { return medium_.open(env); }
  std::vector<env::Disk::Extent> data() const override { return medium_.data(); }
  const ModelledMedium* modelled() const override { return medium_.modelled(); }

 private:
  static void arrive(env::Message& message, env::Env&) {
    const std::unique_ptr<Farewell> farewell(static_cast<Farewell*>(&message));
    farewell->to->give_back(farewell->name);
  }

  env::Env& env_;  // of the core that uses it
  SharedSources& of_;
  Source& medium_;
  std::string name_;
};

task::Task<Result<std::unique_ptr<Source>>> SharedSources::make(env::Env& env, Spec spec) {
  std::string name = spec.text();
  const Result<Source*> medium = co_await env::call_on(
      env, core_, [this, &spec, &name](env::Env& here) { return take(here, spec, name); });
  if (!medium) co_return fail(medium.error());
  co_return std::make_unique<Share>(env, *this, **medium, std::move(name));
}

Result<Source*> SharedSources::take(env::Env& here, const Spec& spec, const std::string& name) {
  auto known = media_.find(name);
  if (known == media_.end()) {
    Result<std::unique_ptr<Source>> made = Source::make(here, spec);
    if (!made) return fail(made.error());
    known = media_.emplace(name, Medium{.source = std::move(*made)}).first;
  }
  ++known->second.shares;
  return known->second.source.get();
}

void SharedSources::give_back(const std::string& name) {
  const auto known = media_.find(name);
  if (--known->second.shares == 0) media_.erase(known);
}

}  // namespace cairn::drive
