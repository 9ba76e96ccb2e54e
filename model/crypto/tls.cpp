// SPDX-License-Identifier: BSD-3-Clause
#include "model/crypto/tls.h"

#include <algorithm>
#include <cstring>

namespace hcasim {

namespace {

constexpr std::uint8_t kChangeCipherSpec = 20, kApplicationData = 23;  // ContentType, first and last
// Bytes behind a header beyond 2^14 (RFC 5246 6.2.3, with this cipher; RFC 8446 5.2).
constexpr std::uint32_t kMost = 1u << 14, kMostMore12 = kTlsNonce + kGcmTag, kMostMore13 = 256;

std::int32_t distance(std::uint32_t to, std::uint32_t from) { return static_cast<std::int32_t>(to - from); }

}  // namespace

bool TlsParams::read(const std::uint8_t* p) {
  using s = prm::tls_static_params;
  const auto version = prm::get<s::tls_version>(p);
  if ((version != prm::kTlsVersion12 && version != prm::kTlsVersion13) ||
      prm::get<s::const_1>(p) != prm::kTlsConst1 || prm::get<s::const_2>(p) != prm::kTlsConst2 ||
      prm::get<s::encryption_standard>(p) != prm::kEncryptionTls)
    return false;
  set = true;
  v13 = version == prm::kTlsVersion13;
  first_record = prm::get<s::initial_record_number>(p);
  resync_sn = prm::get<s::resync_tcp_sn>(p);
  prm::store32(salt.data(), prm::get<s::gcm_iv>(p));
  std::memcpy(iv.data(), p + s::implicit_iv::bit_off / 8, iv.size());
  dek = prm::get<s::dek_index>(p);
  return true;
}

// 1.2: the nonce is the salt and what the record brings (RFC 5288 3); the additional data are the number, the
// type, the version and the length of what was encrypted (RFC 5246 6.2.3.3). 1.3: the IV, and the number over
// its last bytes; the record's header (RFC 8446 5.2, 5.3).
void TlsParams::start(const GcmKey& key, GcmStream& gcm, bool decrypt, std::uint64_t record,
                      const TlsHead& first) const {
  std::array<std::uint8_t, kGcmNonce> nonce{};
  static_assert(kGcmNonce == sizeof salt + kTlsNonce);
  std::memcpy(nonce.data(), salt.data(), salt.size());
  std::uint8_t* const rest = nonce.data() + salt.size();
  if (v13) {
    prm::store64(rest, prm::load64(iv.data()) ^ record);
    return gcm.start(key, decrypt, nonce, first.data(), kTlsHeader);
  }
  std::memcpy(rest, first.data() + kTlsHeader, kTlsNonce);
  std::uint8_t aad[8 + kTlsHeader];
  prm::store64(aad, record);
  std::memcpy(aad + 8, first.data(), 3);
  prm::store16(aad + 11, tls_length(first.data()) - overhead());
  gcm.start(key, decrypt, nonce, aad, sizeof aad);
}

bool TlsParams::header(const std::uint8_t* h) const {
  // Of 1.3 all look like application data.
  const std::uint8_t least = v13 ? kApplicationData : kChangeCipherSpec;
  return h[0] >= least && h[0] <= kApplicationData && header_of_any_type(h);
}

bool TlsParams::header_of_any_type(const std::uint8_t* h) const {
  const std::uint32_t length = tls_length(h), more = v13 ? kMostMore13 : kMostMore12;
  return h[1] == 3 && h[2] == 3 && length >= overhead() && length <= kMost + more;
}

// ---- TX ----

void TlsTx::set(const TlsParams& next) {
  if (next.v13 != params.v13) {
    restart();
    started = false;
  }
  params = next;
}

void TlsTx::restart() {
  started = true;
  record = params.first_record;
  have = tag_done = 0;
  left = 0;
}

bool TlsTx::push(const GcmKey& key, std::uint8_t* data, std::size_t len) {
  while (len != 0) {
    std::size_t n;
    if (have < params.head()) {
      n = std::min(len, params.head() - have);
      std::memcpy(head.data() + have, data, n);
      have = static_cast<std::uint8_t>(have + n);
      if (have >= kTlsHeader && !params.header_of_any_type(head.data())) return false;
      if (have == params.head()) {
        params.start(key, gcm, false, record, head);
        left = tls_length(head.data()) - params.overhead();
        tag_done = 0;
      }
    } else if (left != 0) {
      n = std::min<std::size_t>(len, left);
      gcm.crypt(key, data, n);
      left -= static_cast<std::uint32_t>(n);
    } else {
      if (tag_done == 0) tag = gcm.tag(key);
      n = std::min<std::size_t>(len, kGcmTag - tag_done);
      std::memcpy(data, tag.data() + tag_done, n);
      tag_done = static_cast<std::uint8_t>(tag_done + n);
      if (tag_done == kGcmTag) {
        have = 0;
        ++record;
      }
    }
    data += n;
    len -= n;
  }
  return true;
}

// ---- RX ----

void TlsRx::set(const TlsParams& next) {
  if (next.v13 != params.v13) {
    restart(0);
    started = false;
  }
  params = next;
}

void TlsRx::restart(std::uint32_t sn) {
  started = true;
  tracker = prm::kTrackerStart;
  auth = prm::kAuthNoOffload;
  next_sn = next_record = sn;
  resync_sn = offset = 0;
  have = tag_done = 0;
  open = false;
}

bool TlsRx::confirm() {
  if (tracker != prm::kTrackerTracking || auth != prm::kAuthNoOffload || params.resync_sn != resync_sn)
    return false;
  record = params.first_record + offset;
  auth = prm::kAuthOffload;
  return true;
}

void TlsRx::write_progress(std::uint8_t* p) const {
  using s = prm::tls_progress_params;
  prm::set<s::next_record_tcp_sn>(p, next_record);
  prm::set<s::hw_resync_tcp_sn>(p, resync_sn);
  prm::set<s::record_tracker_state>(p, tracker);
  prm::set<s::auth_state>(p, auth);
  prm::set<s::hw_offset_record_number>(p, offset);
}

void TlsRx::lose(Events& events) {
  events.lost = true;
  events.found = false;
  tracker = prm::kTrackerSearching;
  auth = prm::kAuthNoOffload;
  open = false;
  have = 0;
}

// Something that looks like a header, whole within the segment.
void TlsRx::search(Walk& w, Events& events) {
  w.decrypted = false;
  while (w.len >= kTlsHeader && !params.header(w.data)) advance(w, 1);
  if (w.len < kTlsHeader) return advance(w, w.len);
  tracker = prm::kTrackerTracking;
  resync_sn = next_record = next_sn;
  offset = 0;
  events.found = true;
}

void TlsRx::take_header(const GcmKey& key, Walk& w, Events& events) {
  const std::size_t n = std::min(w.len, kTlsHeader - have);
  std::memcpy(head.data() + have, w.data, n);
  have = static_cast<std::uint8_t>(have + n);
  advance(w, n);
  if (auth != prm::kAuthOffload) w.decrypted = false;
  if (have < kTlsHeader) return;
  if (params.header(head.data())) {
    next_record = next_sn + tls_length(head.data());
    open = auth == prm::kAuthOffload;
    tag_done = 0;
    if (open && have == params.head()) params.start(key, gcm, true, record, head);
    return;
  }
  // Where no record begins none was tracked. One may begin within what was taken for its header.
  w.data -= n;
  w.len += n;
  next_sn -= static_cast<std::uint32_t>(n);
  lose(events);
}

void TlsRx::end_record() {
  if (auth == prm::kAuthOffload)
    ++record;
  else
    ++offset;
  have = 0;
  open = false;
}

void TlsRx::take_open(const GcmKey& key, Walk& w) {
  if (have < params.head()) {
    const std::size_t n = std::min(w.len, params.head() - have);
    std::memcpy(head.data() + have, w.data, n);
    have = static_cast<std::uint8_t>(have + n);
    advance(w, n);
    if (have == params.head()) params.start(key, gcm, true, record, head);
    return;
  }
  const std::uint32_t left = next_record - next_sn;  // with the tag
  if (left > kGcmTag) {
    const std::size_t n = std::min<std::size_t>(w.len, left - kGcmTag);
    gcm.crypt(key, w.data, n);
    return advance(w, n);
  }
  const std::size_t n = std::min<std::size_t>(w.len, left);
  std::memcpy(tag.data() + tag_done, w.data, n);
  tag_done = static_cast<std::uint8_t>(tag_done + n);
  advance(w, n);
  if (tag_done < kGcmTag) return;
  if (tag != gcm.tag(key)) w.forged = true;
  end_record();
}

prm::CqeTls TlsRx::take(const GcmKey& key, std::uint32_t sn, std::uint8_t* data, std::size_t len,
                        Events& events) {
  using prm::CqeTls;
  if (!started || len == 0) return CqeTls::kNotDecrypted;
  Walk w{data, len};
  const std::int32_t ahead = distance(sn, next_sn);
  if (ahead < 0) {  // again, all of it or its start
    const std::uint32_t old = next_sn - sn;
    if (old >= len) return CqeTls::kNotDecrypted;
    w.data += old;
    w.len -= old;
    w.decrypted = false;
  } else if (ahead > 0) {
    const bool known = tracker == prm::kTrackerTracking && have >= kTlsHeader;
    if (known && distance(sn, next_record) <= 0) {
      open = false;
      next_sn = sn;
      if (next_sn == next_record) end_record();
    } else {
      if (tracker != prm::kTrackerSearching) lose(events);
      next_sn = sn;
    }
  }
  if (tracker == prm::kTrackerStart) {
    tracker = prm::kTrackerTracking;
    auth = prm::kAuthOffload;
    record = params.first_record;
  }
  while (w.len != 0) {
    if (tracker == prm::kTrackerSearching) {
      search(w, events);
    } else if (have < kTlsHeader) {
      take_header(key, w, events);
    } else if (open) {
      take_open(key, w);
    } else {
      w.decrypted = false;
      advance(w, std::min<std::size_t>(w.len, next_record - next_sn));
      if (next_sn == next_record) end_record();
    }
  }
  if (events.found) return CqeTls::kResync;
  if (w.forged) return CqeTls::kError;
  return w.decrypted ? CqeTls::kDecrypted : CqeTls::kNotDecrypted;
}

}  // namespace hcasim
