// SPDX-License-Identifier: BSD-3-Clause
#include "card/state/function_image.h"

#include "card/state/load.h"
#include "card/state/save.h"
#include "firmware-stub/firmware.h"
#include "model/device.h"

namespace hcasim::saved {

namespace {

struct Head {
  std::string kind = "virtual function", link, generation;
  bool whole = false;

  Head(const fw::Options& o, bool all)
      : link(o.link == fw::Link::kEthernet ? "ethernet" : "infiniband"),
        generation(o.generation->key),
        whole(all) {}
  template <class Archive>
  void list_state(Archive& a) {
    one(a, "kind", kind);
    one(a, "link", link);
    one(a, "generation", generation);
    a("whole", whole);
  }

 private:
  template <class Archive>
  static void one(Archive& a, const char* name, std::string& own) {
    if constexpr (Archive::kLoads) {
      std::string saved;
      a(name, saved);
      a.check(saved == own, "the image is of another kind of card");
    } else {
      a(name, own);
    }
  }
};

template <class T>
struct Part {
  T& of;
  template <class Archive>
  void list_state(Archive& a) {
    of.list_image(a);
  }
};

struct Image {
  Image(fw::Firmware& of, bool all) : head(of.options(), all), function{of.function()}, firmware{of} {}
  Head head;
  Part<Function> function;
  Part<fw::Firmware> firmware;

  template <class Archive>
  void list_state(Archive& a) {
    a("head", head);
    if (!head.whole) return;
    if constexpr (!Archive::kNames) a("function", function);  // where nothing is that others refer to
    a("firmware", firmware);
  }
};

std::string write(Image image) {
  Names names;
  StateNames naming(names);
  image.list_state(naming);
  TaggedWriter writer(kImageVersion);
  StateSave archive(writer, names);
  image.list_state(archive);
  return std::move(writer).finish();
}

// True: it is a head alone.
bool read_head(fw::Firmware& of, std::string_view bytes) {
  TaggedReader reader(bytes);
  if (reader.version() != kImageVersion) throw StateError("the image is of another version");
  StateLoad archive(reader);
  Image image(of, false);
  archive("head", image.head);
  if (!image.head.whole) archive.finish();
  return !image.head.whole;
}

void read(fw::Firmware& into, std::string_view bytes) {
  into.clear_for_image();
  TaggedReader reader(bytes);
  StateLoad archive(reader);
  archive.functions_are(into.device().functions());
  archive.function_is(into.function().id());
  Image image(into, true);
  image.list_state(archive);
  archive.finish();
}

}  // namespace

std::string FunctionImages::save(fw::Firmware& of) {
  of.device().dma().loans().settle_all(of.function().id());
  return write(Image(of, true));
}

std::string FunctionImages::head(fw::Firmware& of) { return write(Image(of, false)); }

bool FunctionImages::load(fw::Firmware& into, std::string_view image) {
  try {
    if (read_head(into, image)) return true;
  } catch (const StateError&) {
    return false;
  }
  const std::string before = save(into);
  try {
    read(into, image);
    if (!into.image_fits()) throw StateError("the function may not have what the image has");
  } catch (const std::exception&) {  // memory that the image asks for may not be there
    read(into, before);
    into.device().migration().restored(into.function().id());
    return false;
  }
  into.image_loaded();
  return true;
}

}  // namespace hcasim::saved
