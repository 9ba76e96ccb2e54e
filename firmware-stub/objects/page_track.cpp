// SPDX-License-Identifier: BSD-3-Clause
// General objects PAGE_TRACK: which pages of its host a virtual function has written, for who copies a
// machine while it runs. A report goes by SENDs from a QP that the function's manager names, and says what it
// is of in their immediate data.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/general_handlers.h"
#include "model/pcie/written_pages.h"

namespace hcasim::fw {

namespace {

using TrackIn = prm::create_page_track_obj_in::obj_context;
using TrackHeader = prm::general_obj_in_cmd_hdr;
using TrackContext = prm::page_track;

// page_track.state, also in the immediate data of a report, from bit 28 on.
constexpr std::uint32_t kPagesTracked = prm::k::PAGE_TRACK_STATE_TRACKING,
                        kPagesReported = prm::k::PAGE_TRACK_STATE_REPORTING,
                        kTrackError = prm::k::PAGE_TRACK_STATE_ERROR;
constexpr unsigned kStateShift = 28;
constexpr std::uint32_t kWrittenByDma = 1;  // track_type
constexpr std::uint64_t kSelectState = 1, kSelectRange = 2;

Firmware* tracked_function(Firmware& fw, std::uint32_t vhca_id) {
  for (std::uint32_t n = 1; Firmware* vf = fw.managed(n); ++n)
    if (vf->options().vhca_id == vhca_id && !vf->options().sf) return vf;
  return nullptr;
}

// Of a list behind the object: each within 64 bits; together no more than is announced, which Linux 6.1
// rounds down to a power of two.
bool read_track_ranges(const Command& cmd, std::uint32_t n, std::vector<WrittenPages::Range>& ranges) {
  using Range = prm::page_track_range;
  constexpr std::size_t kAt = prm::create_page_track_obj_in::bytes;
  if (n == 0 || n > kPageTrackRanges || cmd.in_len < kAt + n * Range::bytes) return false;
  std::uint64_t left = std::uint64_t{2} << cmd.get<TrackIn::log_addr_space_size>();
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint8_t* r = cmd.in.data() + kAt + i * Range::bytes;
    const std::uint64_t start = prm::get<Range::start_address>(r), len = prm::get<Range::length>(r);
    if (len == 0 || start + (len - 1) < start || len > left) return false;
    left -= len;
    ranges.push_back({start, len});
  }
  return true;
}

// Messages that wait for a peer that has no receive WQEs: as many as four reports of 2^20 pages may have.
constexpr std::size_t kMostReports = 8192;

// Big-endian addresses, in messages of the size that was agreed upon; the last one ends the report.
void send_report(Firmware& fw, const PageTrackObject& o, Qp& qp, const std::vector<std::uint64_t>& pages) {
  using Entry = prm::page_track_report_entry;
  const std::size_t most = (std::size_t{1} << o.log_message) / Entry::bytes;
  std::size_t done = 0;
  do {
    const std::size_t n = std::min(most, pages.size() - done);
    std::vector<std::uint8_t> message(n * Entry::bytes);
    for (std::size_t i = 0; i < n; ++i) prm::store64(&message[i * Entry::bytes], pages[done + i]);
    done += n;
    const std::uint32_t state = done < pages.size() ? kPagesReported : kPagesTracked;
    fw.device().requester().send_own(sim_now(), qp, std::move(message), state << kStateShift);
  } while (done < pages.size());
}

}  // namespace

Syndrome create_page_track(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t n = cmd.get<TrackIn::num_ranges>(), qpn = cmd.get<TrackIn::reporting_qpn>();
  const unsigned log_page = cmd.get<TrackIn::log_page_size>(), log_message = cmd.get<TrackIn::log_msg_size>(),
                 log_space = cmd.get<TrackIn::log_addr_space_size>();
  Firmware* vf = tracked_function(fw, cmd.get<TrackIn::vhca_id>());
  if (vf == nullptr) return Syndrome::kMigrationFunction;
  const FunctionId f = vf->function().id();
  if (cmd.get<TrackIn::track_type>() != kWrittenByDma || cmd.get<TrackIn::state>() != kPagesTracked ||
      log_page < kLogMinTrackedPage || log_page > kLogMaxTrackedPage || log_message < kLogMinTrackMessage ||
      log_message > kLogMaxTrackMessage || log_space < kLogMinTrackSpace || log_space > kLogMaxTrackSpace)
    return Syndrome::kPageTrackValue;
  std::vector<WrittenPages::Range> ranges;
  if (!read_track_ranges(cmd, n, ranges)) return Syndrome::kPageTrackRange;
  QpObject* qp = o.qps.find(qpn);
  const Qp* hardware = fw.function().qps().find(qpn);
  if (qp == nullptr || !qp->is_qp() || hardware == nullptr || hardware->type != QpType::kRc ||
      hardware->has_sq)
    return Syndrome::kPageTrackQp;
  if (fw.device().dma().written_pages(f) != nullptr) return Syndrome::kPageTrackBusy;
  if (o.page_tracks.full()) return Syndrome::kPageTrackLimit;
  std::uint32_t id = 0;
  PageTrackObject* made = o.page_tracks.create(id);
  made->function = f;
  made->vhca_id = cmd.get<TrackIn::vhca_id>();
  made->log_space = log_space;
  made->log_page = log_page;
  made->log_message = log_message;
  made->ranges = n;
  made->qpn = qpn;
  made->qp = Ref(qp);
  fw.device().dma().watch_pages(f, std::make_unique<WrittenPages>(log_page, std::move(ranges)));
  cmd.put<prm::general_obj_out_cmd_hdr::obj_id>(id);
  return Syndrome::kOk;
}

Syndrome modify_page_track(Firmware& fw, Command& cmd) {
  PageTrackObject* o = fw.objects().page_tracks.find(cmd.get<TrackHeader::obj_id>());
  if (o == nullptr) return Syndrome::kPageTrackNumber;
  if (cmd.get<TrackIn::modify_field_select>() != (kSelectState | kSelectRange) ||
      cmd.get<TrackIn::state>() != kPagesReported)
    return Syndrome::kPageTrackValue;
  const std::uint64_t start = cmd.get<TrackIn::range_start_address>(), len = cmd.get<TrackIn::length>();
  if (len == 0 || start + (len - 1) < start) return Syndrome::kPageTrackRange;
  WrittenPages* pages = fw.device().dma().written_pages(o->function);
  Qp* qp = fw.function().qps().find(o->qpn);
  if (o->state == kTrackError || pages == nullptr || qp == nullptr || qp->state != QpState::kRts) {
    // Whoever waits for the report asks for the state.
    o->state = kTrackError;
    fw.device().eqs().object_event(cmd.now, fw.function().id(), prm::k::OBJ_TYPE_PAGE_TRACK,
                                   cmd.get<TrackHeader::obj_id>());
    return Syndrome::kOk;
  }
  if (qp->req.own.size() > kMostReports) return Syndrome::kPageTrackReports;
  // What has been posted is written before it is said.
  fw.device().dma().flush(o->function);
  send_report(fw, *o, *qp, pages->take(start, len));
  return Syndrome::kOk;
}

Syndrome query_page_track(Firmware& fw, Command& cmd) {
  const PageTrackObject* o = fw.objects().page_tracks.find(cmd.get<TrackHeader::obj_id>());
  if (o == nullptr) return Syndrome::kPageTrackNumber;
  std::uint8_t* c = cmd.out.data() + prm::general_obj_out_cmd_hdr::bytes;
  prm::set<TrackContext::vhca_id>(c, o->vhca_id);
  prm::set<TrackContext::state>(c, o->state);
  prm::set<TrackContext::track_type>(c, kWrittenByDma);
  prm::set<TrackContext::log_addr_space_size>(c, o->log_space);
  prm::set<TrackContext::log_page_size>(c, o->log_page);
  prm::set<TrackContext::log_msg_size>(c, o->log_message);
  prm::set<TrackContext::reporting_qpn>(c, o->qpn);
  prm::set<TrackContext::num_ranges>(c, o->ranges);
  return Syndrome::kOk;
}

Syndrome destroy_page_track(Firmware& fw, Command& cmd) {
  const std::uint32_t id = cmd.get<TrackHeader::obj_id>();
  const PageTrackObject* o = fw.objects().page_tracks.find(id);
  if (o == nullptr) return Syndrome::kPageTrackNumber;
  fw.device().dma().watch_pages(o->function, nullptr);
  fw.objects().page_tracks.destroy(id);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
