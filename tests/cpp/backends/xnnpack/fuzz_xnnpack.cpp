// Damages payloads of ExecuTorch's XNNPACK delegate and runs those that still load: nothing may
// crash, hang, or access memory outside of its blocks. Most useful with RUSHLIGHT_SANITIZE=ON.
//
// Usage: fuzz_xnnpack ROUNDS FILE...: damages the payloads of each file's delegates ROUNDS times
// each, with the same damage in every run of the test. They run with one or two threads, on each
// instruction set, with several input sizes.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fuzz_delegates.h"
#include "rushlight/backends/xnnpack/payload/xnnpack_fb.h"
#include "rushlight/backends/xnnpack/xnnpack_backend.h"

namespace {

using namespace rushlight;
using namespace rushlight::test;
namespace layout = rushlight::fb::xnnpack::xnnpack_layout;

// All numbers of a graph; the schema says where they are.
class GraphSlots : public SlotList {
 public:
  explicit GraphSlots(const std::vector<uint8_t>& payload) : SlotList(payload.data()) {
    uint32_t start = 0;
    std::memcpy(&start, &payload[10], sizeof(start));  // of the flatbuffer, after the header
    walk(fb::xnnpack::root_Graph(payload.data() + start), 0);
  }

 private:
  void walk(const fb::Table& table, size_t kind) {
    const fb::TableLayout table_layout = layout::kGraph.tables[kind];
    for (unsigned i = 0; i < table_layout.n_fields; ++i) {
      const fb::FieldLayout field = layout::kGraph.fields[table_layout.first_field + i];
      const uint8_t* at = Fields(table).field(i);
      if (at != nullptr) walk_field(table, i, field, at);
    }
  }
  void walk_field(const fb::Table& table, unsigned i, fb::FieldLayout field, const uint8_t* at) {
    switch (field.kind) {
      case fb::FieldKind::Scalar:
        add_fields(table, {{i, size_t{1} << field.arg}});
        break;
      case fb::FieldKind::Vector:
        if (field.arg == 2) add(fb::Vector<uint32_t>(fb::follow(at)));
        break;
      case fb::FieldKind::Table:
        walk(fb::Table(fb::follow(at)), field.arg);
        break;
      case fb::FieldKind::Tables: {
        const fb::Tables<fb::Table> tables(fb::follow(at));
        for (size_t k = 0; k < tables.size(); ++k) walk(tables[k], field.arg);
        break;
      }
      case fb::FieldKind::Union: {
        add_fields(table, {{i, 1}});
        const uint8_t* value = Fields(table).field(i + 1);
        const uint8_t first = layout::kGraph.unions[field.arg].first_member;
        if (*at == 0 || value == nullptr) break;
        walk(fb::Table(fb::follow(value)), layout::kGraph.members[first + *at - 1]);
        break;
      }
      case fb::FieldKind::String:
      case fb::FieldKind::UnionValue:
        break;
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: fuzz_xnnpack ROUNDS FILE...\n");
    return 2;
  }
  const size_t rounds = std::strtoul(argv[1], nullptr, 10);
  for (int i = 2; i < argc; ++i) {
    std::vector<Recording> recordings;
    if (!record<XnnpackBackend>(argv[i], &recordings)) {
      std::fprintf(stderr, "%s: does not run undamaged\n", argv[i]);
      return 1;
    }
    for (const Recording& recording : recordings) {
      const GraphSlots slots(recording.payload);
      if (fuzz<XnnpackBackend>(argv[i], recording, slots.slots(), true, rounds)) continue;
      std::fprintf(stderr, "%s: a delegate does not run undamaged\n", argv[i]);
      return 1;
    }
  }
  return 0;
}
