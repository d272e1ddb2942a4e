// SPDX-License-Identifier: Apache-2.0
#include "rest/condition_trial.h"

#include <utility>

#include "rest/status.h"
#include "rest/version.h"

namespace cairn::rest {

namespace {

// An attempt whose answer was lost makes the answer to the next one say nothing.
constexpr int kTrials = 3;

class Trial {
 public:
  Trial(Client& client, std::string target, Bytes body)
      : client_(client), target_(std::move(target)), body_(body) {}

  task::Task<Result<bool>> run() {
    was_unanswered_ = false;
    const Result<uint16_t> first = co_await change(Method::kPut, "");
    if (!first) co_return fail(first.error());
    const Result<Version> one = co_await look();
    if (!one) co_return fail(one.error());
    const Result<uint16_t> second = co_await change(Method::kPut, one->condition());
    if (!second) co_return fail(second.error());
    const Result<Version> two = co_await look();
    if (!two) co_return fail(two.error());
    const Result<uint16_t> refused = co_await change(Method::kDelete, kNeverMatches);
    if (!refused) co_return fail(refused.error());
    const Result<uint16_t> removed = co_await change(Method::kDelete, two->condition());
    if (!removed) co_return fail(removed.error());
    co_return is_success(*first) && is_success(*second) && !one->is_absent &&
        one->makes_condition() && two->makes_condition() && *one != *two && *refused == 412 &&
        (is_success(*removed) || is_gone(*removed));
  }
  bool was_unanswered() const { return was_unanswered_; }

 private:
  task::Task<Result<uint16_t>> change(Method method, std::string condition) {
    const HttpRequest request{.method = method,
                              .target = target_,
                              .fields = std::move(condition),
                              .body = {&body_, method == Method::kPut ? size_t{1} : size_t{0}}};
    const Outcome outcome = co_await client_.send_change(request);
    was_unanswered_ = was_unanswered_ || outcome.was_unanswered;
    if (!outcome.answer) co_return fail(outcome.answer.error());
    co_return outcome.answer->status();
  }

  task::Task<Result<Version>> look() {
    const HttpRequest request{.method = Method::kHead, .target = target_};
    const Result<HttpAnswer> answer = co_await client_.send(request);
    if (!answer) co_return fail(answer.error());
    if (answer->status() != 200) co_return Version{.is_absent = true, .etag = ""};
    co_return Version{.is_absent = false, .etag = answer->head.etag};
  }

  Client& client_;
  std::string target_;
  Bytes body_;
  bool was_unanswered_ = false;
};

}  // namespace

task::Task<Result<bool>> conditions_order_changes(Client& client, std::string target, Bytes body) {
  Trial trial(client, std::move(target), body);
  for (int left = kTrials; left > 1; --left) {
    const Result<bool> found = co_await trial.run();
    if (!found || *found || !trial.was_unanswered()) co_return found;
  }
  const Result<bool> last = co_await trial.run();
  co_return last;
}

}  // namespace cairn::rest
