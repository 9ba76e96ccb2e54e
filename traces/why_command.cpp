// SPDX-License-Identifier: BSD-3-Clause
/// Why a command ended as it did, or never ended.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "prm/cmd_queue.h"
#include "traces/fault_list.h"
#include "traces/report.h"
#include "traces/story.h"

namespace hcasim::traces {
namespace {

bool is(const Record& r, FaultType kind) {
  return r.p() == Point::kFaultInjected && (r.a0 & 0xff) == static_cast<std::uint64_t>(kind);
}
bool is(const Record& r, FaultAction action) {
  return r.p() == Point::kFaultInjected && (r.a0 >> 8 & 0xff) == static_cast<std::uint64_t>(action);
}

/// Of the card as a whole, or of one of its functions that is not told apart: the kinds that name none.
bool is_of_the_card(const Record& r) {
  if (r.p() == Point::kModelFault) return true;
  const std::uint64_t kind = r.a0 & 0xff;
  return r.p() == Point::kFaultInjected && kind < kFaultKinds &&
         (own_keys(static_cast<FaultType>(kind)) & fault_keys(FaultKey::kFunction)) == 0;
}

class CommandExplainer {
 public:
  CommandExplainer(const Analysis& a, const CommandRow& c) : a_(a), c_(c) {
    const std::int64_t from = c.start != kNoTime ? c.start : c.end;
    // What ended while the command was under way has held it up, or was ended by a reset, in which it was
    // lost.
    const auto well_again = [&](const Record& since, bool (*well)(const Record&)) {
      return std::any_of(a.health().begin(), a.health().end(), [&](const Record& h) {
        return h.hca == c.hca && h.function == c.function && h.time_ps > since.time_ps && h.time_ps <= from &&
               well(h);
      });
    };
    for (const Record& r : a.errors()) {
      if (r.hca != c.hca || (r.function != c.function && !is_of_the_card(r))) continue;
      const bool meanwhile = r.time_ps >= from && (c.end == kNoTime || r.time_ps <= c.end);
      if ((is(r, FaultType::kCommand) || is(r, FaultAction::kPagesRefused)) &&
          static_cast<std::uint32_t>(r.a1) == c.seq) {
        own_ = r;
        continue;
      }
      // The firmware's state at the command's start: the latest change before it.
      if (r.time_ps <= from || meanwhile) {
        if (is(r, FaultAction::kStall)) stall_ = r;
        if (is(r, FaultAction::kSyndrome) && (r.a1 & 0xff) != 0) health_ = r;
        if (is(r, FaultType::kModel) || r.p() == Point::kModelFault) broken_ = r;
      }
      if (is(r, FaultType::kFwReset) || is(r, FaultAction::kNicDisabled)) {
        if (meanwhile) reset_ = r;
        if (r.time_ps <= from) stall_.reset(), health_.reset(), broken_.reset();
      }
      if (!meanwhile) continue;
      if (r.p() == Point::kFaultInjected) faults_.push_back(r);
      if (r.p() == Point::kDmaErr) dma_.push_back(r);
    }
    if (stall_ && well_again(*stall_, [](const Record& h) { return h.index == 0; })) stall_.reset();
    if (health_ && well_again(*health_, [](const Record& h) { return (h.a0 & 0xff) == 0; })) health_.reset();
  }

  std::vector<Reason> run() {
    if (c_.end == kNoTime) {
      unanswered();
    } else if (c_.delivery != 0) {
      undelivered();
    } else if (c_.status != 0) {
      refused();
    } else {
      good();
    }
    if (!dma_.empty()) say("The host refused a DMA meanwhile.", dma_);
    if (!faults_.empty()) say("Faults were injected on purpose meanwhile.", faults_);
    return std::move(out_);
  }

 private:
  void say(std::string text, std::vector<Record> proof = {}) {
    out_.push_back({std::move(text), std::move(proof)});
  }
  std::string name() const { return fmt::format("command {} ({})", c_.seq, c_.name()); }

  void unanswered() {
    std::size_t later = 0;
    for (const CommandRow& x : a_.commands())
      if (x.hca == c_.hca && x.function == c_.function && x.start > c_.start && x.end != kNoTime) later++;
    if (own_ && is(*own_, FaultAction::kNever))
      say(fmt::format("The {} was never answered: fault injected, {}.", name(), in_words(*own_)), {*own_});
    else if (reset_)
      say(fmt::format("The {} was lost when the card was reset: fault injected, {}.", name(),
                      in_words(*reset_)),
          {*reset_});
    else if (stall_)
      say(fmt::format("The {} was not answered as the firmware stands still since {}: fault injected, {}.",
                      name(), time_text(stall_->time_ps), in_words(*stall_)),
          {*stall_});
    else
      say(fmt::format("The card took the {} and has not answered it by the trace's end.", name()));
    say("A driver that waits for it times out (mlx5_core: 60 s), says \"timeout. Will cause a leak of a "
        "command resource\", and may call for a recovery.");
    say(later != 0 ? fmt::format("{} later commands were answered: the card's processor lives.", later)
                   : std::string("No later command was answered either."));
  }

  void undelivered() {
    if (static_cast<prm::CmdDelivery>(c_.delivery) == prm::CmdDelivery::kFwErr && (health_ || broken_)) {
      const Record& r = health_ ? *health_ : *broken_;
      say(fmt::format("The {} was not executed: the firmware was in its fatal state since {}, {}.", name(),
                      time_text(r.time_ps), in_words(r)),
          {r});
      return;
    }
    say(
        fmt::format("The command could not be read or answered: {}. Its entry or its mailbox chain is wrong, "
                    "or memory was refused.",
                    c_.status_name()));
  }

  void refused() {
    if (own_)
      say(fmt::format("The {} was refused with {}, syndrome {:#x}, and not executed: fault injected, {}.",
                      name(), c_.status_name(), c_.syndrome, in_words(*own_)),
          {*own_});
    else
      say(fmt::format("The card refused it: {}, syndrome {:#x}.", c_.status_name(), c_.syndrome));
    say("What it asked for: " + input_fields(c_));
  }

  void good() {
    std::vector<std::int64_t> others;
    for (const CommandRow& x : a_.commands())
      if (x.opcode == c_.opcode && x.op_mod == c_.op_mod && x.start != kNoTime && x.end != kNoTime)
        others.push_back(x.end - x.start);
    std::sort(others.begin(), others.end());
    say(fmt::format("It succeeded, in {}; the median of {} of its kind is {}.",
                    c_.start != kNoTime ? time_text(c_.end - c_.start) : "an unknown time", others.size(),
                    time_text(percentile(others, 50))));
    if (own_ && is(*own_, FaultAction::kNoEvent))
      say("No command event was sent: fault injected. A driver that does not look at the owner bit "
          "by itself waits for ever, or until its time-out.",
          {*own_});
    else if (own_)
      say(fmt::format("It was held back: fault injected, {}.", in_words(*own_)), {*own_});
    else if (stall_ && c_.start != kNoTime && c_.end - c_.start > 2 * percentile(others, 50))
      say("The firmware stood still for a while: fault injected.", {*stall_});
  }

  const Analysis& a_;
  const CommandRow& c_;
  std::optional<Record> own_, stall_, health_, broken_, reset_;
  std::vector<Record> faults_, dma_;
  std::vector<Reason> out_;
};

}  // namespace

std::vector<Reason> why(const Analysis& a, const CommandRow& c) { return CommandExplainer(a, c).run(); }

}  // namespace hcasim::traces
