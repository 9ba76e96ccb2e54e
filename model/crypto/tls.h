// SPDX-License-Identifier: BSD-3-Clause
// TLS records with AES-GCM, of 1.2 (RFC 5246 6.2, RFC 5288) and 1.3 (RFC 8446 5.2), in a TCP stream, as a TIS
// encrypts and a TIR decrypts them. What drivers say of a connection: tls_static_params and
// tls_progress_params of mlx5_ifc.h; what the hardware makes of it: as the kernel's driver expects
// (en_accel/ktls_tx.c, ktls_rx.c) and its Documentation/networking/tls-offload.rst describes.
#ifndef HCASIM_MODEL_CRYPTO_TLS_H
#define HCASIM_MODEL_CRYPTO_TLS_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/crypto/gcm.h"
#include "model/state/fields.h"
#include "prm/crypto.h"

namespace hcasim {

constexpr std::size_t kTlsHeader = 5, kTlsNonce = 8;  // bytes
constexpr std::size_t kMostTlsHead =
    kTlsHeader + kTlsNonce;  // what is in front of the encrypted bytes, at most
using TlsHead = std::array<std::uint8_t, kMostTlsHead>;

// Static parameters of one direction of a connection.
struct TlsParams {
  bool set = false;
  std::uint64_t first_record = 0;  // number of the record at the start, or at resync_sn
  std::uint32_t resync_sn = 0;
  std::array<std::uint8_t, 4> salt{};
  std::uint32_t dek = 0;
  bool v13 = false;                          // TLS 1.3
  std::array<std::uint8_t, kTlsNonce> iv{};  // its IV, behind the salt

  // False: not those of a version that is known.
  bool read(const std::uint8_t* tls_static_params);
  // Bytes of a record in front of what is encrypted; of 1.3 there is no nonce among them.
  std::size_t head() const { return v13 ? kTlsHeader : kMostTlsHead; }
  // What the header counts besides the encrypted bytes. Of 1.3 these end with the record's true type.
  std::uint32_t overhead() const { return static_cast<std::uint32_t>(head() - kTlsHeader + kGcmTag); }
  // Of the record that begins with `first`, with that number.
  void start(const GcmKey& key, GcmStream& gcm, bool decrypt, std::uint64_t record,
             const TlsHead& first) const;
  // Whether a record can begin with these kTlsHeader bytes.
  bool header(const std::uint8_t* first) const;
  // The same whatever its type is: of a record that leaves, it is its program's to choose (Linux:
  // TLS_SET_RECORD_TYPE takes any byte).
  bool header_of_any_type(const std::uint8_t* first) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, set, first_record, resync_sn, salt, dek);
    HCASIM_FIELDS_SINCE(22, a, v13, iv);
  }
};

// What the header says, of the bytes behind it.
inline std::uint32_t tls_length(const std::uint8_t* header) {
  return static_cast<std::uint32_t>(header[3] << 8 | header[4]);
}

// A TIS: what leaves by it are records, one behind the other, with room for their tags.
struct TlsTx {
  TlsParams params;
  bool started = false;
  std::uint64_t record = 0;  // the number of the one that has begun, or begins next
  TlsHead head{};
  std::uint8_t have = 0;   // of head
  std::uint32_t left = 0;  // bytes of the record to be encrypted
  std::uint8_t tag_done = 0;
  std::array<std::uint8_t, kGcmTag> tag{};
  GcmStream gcm;

  // Static parameters. Of another version than before: nothing leaves until progress parameters follow.
  void set(const TlsParams& next);
  // Progress parameters: the next byte begins the record of the static parameters' number.
  void restart();
  // The stream's next bytes, in place. False: they are no record.
  bool push(const GcmKey& key, std::uint8_t* data, std::size_t len);

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, params, started, record, head, have, left, tag_done, tag, gcm);
    if constexpr (Archive::kLoads)
      a.check(tag_done <= kGcmTag && have <= params.head(), "more of a record is there than it has");
  }
};

// A TIR: what comes to it are segments of one connection.
//
// It follows records by their headers. Of one that is there in order, it decrypts and checks each byte. When
// a segment is missing, that record is left alone; the next one is decrypted, if its header is not among what
// is missing. If it is, the hardware searches for something that looks like a header, says so (kResync), and
// follows from there, until static parameters tell the number of the record that begins at resync_sn.
//
// A segment is decrypted as a whole or not at all, since its completion says one thing of it.
struct TlsRx {
  TlsParams params;
  bool started = false;
  std::uint8_t tracker = prm::kTrackerStart, auth = prm::kAuthNoOffload;
  std::uint32_t next_sn = 0;      // TCP sequence number that continues what has come
  std::uint32_t next_record = 0;  // ... and of the next record's header, if the current one's is whole
  std::uint32_t resync_sn = 0;    // where the search has found one
  std::uint32_t offset = 0;       // records between that and the current one
  std::uint64_t record = 0;       // number of the current one
  bool open = false;              // the current one is decrypted
  TlsHead head{};
  std::uint8_t have = 0;
  std::uint8_t tag_done = 0;
  std::array<std::uint8_t, kGcmTag> tag{};  // as it came
  GcmStream gcm;

  // What a segment did besides, for traces.
  struct Events {
    bool lost = false, found = false;
  };

  // Static parameters. Of another version than before: nothing is followed until progress parameters come.
  void set(const TlsParams& next);
  // Progress parameters: a record begins at `sn`.
  void restart(std::uint32_t sn);
  // Static parameters, again: true if they confirm what the search has found.
  bool confirm();
  // The segment's payload. Only if it returns kDecrypted, `data` is what was encrypted; else it is not to be
  // used.
  prm::CqeTls take(const GcmKey& key, std::uint32_t sn, std::uint8_t* data, std::size_t len, Events& events);
  void write_progress(std::uint8_t* tls_progress_params) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, params, started, tracker, auth, next_sn, next_record, resync_sn, offset, record, open,
                  head, have, tag_done, tag, gcm);
    if constexpr (Archive::kLoads)
      a.check(tag_done <= kGcmTag && have <= params.head() && (!open || open_is_sound()),
              "more of a record is there than it has");
  }

 private:
  // Bytes that are the next in order.
  struct Walk {
    std::uint8_t* data;
    std::size_t len;
    bool decrypted = true;  // all so far
    bool forged = false;    // a record's tag is wrong
  };
  void advance(Walk& w, std::size_t n) {
    w.data += n;
    w.len -= n;
    next_sn += static_cast<std::uint32_t>(n);
  }
  // What has come of the record that is decrypted, and what is to come, is all of it.
  bool open_is_sound() const {
    const std::uint32_t left = next_record - next_sn;
    if (have < params.head()) return tag_done == 0 && left >= params.head() - have + kGcmTag;
    return left > kGcmTag ? tag_done == 0 : tag_done + left == kGcmTag;
  }
  void lose(Events& events);
  void search(Walk& w, Events& events);
  void take_header(const GcmKey& key, Walk& w, Events& events);
  void take_open(const GcmKey& key, Walk& w);
  void end_record();
};

}  // namespace hcasim
#endif
