#include "mpi/element_list.hpp"

#include "mpi/layout.hpp"

namespace ropewalk::mpi {
namespace {

// Puts elements behind the last run where they continue it.
bool add(ElementList& list, ElementList::Run run, std::size_t most) {
  if (run.count <= 0) return true;
  if (!list.runs.empty()) {
    ElementList::Run& last = list.runs.back();
    if (last.offset + last.count * list.extent == run.offset) {
      last.count += run.count;
      return true;
    }
  }
  if (list.runs.size() == most) return false;
  list.runs.push_back(run);
  return true;
}

bool add_named(ElementList& list, Datatype named, Count extent, ElementList::Run run,
               std::size_t most) {
  if (list.type == Datatype{}) list = {named, extent, {}};
  return list.type == named && add(list, run, most);
}

}  // namespace

bool TypeLayout::add_elements(Count first, ElementList& list, std::size_t most) const {
  if (is_opaque()) return false;
  if (size_ == 0) return true;
  if (named_ != Datatype{}) {
    return add_named(list, named_, extent_.bytes, {first, 1}, most);
  }
  return visit_rows([&](const Row& row) {
    const TypeLayout& part = parts_.at(row.part);
    const bool named = !part.is_opaque() && part.size_ > 0 && part.named_ != Datatype{};
    if (named) {
      const ElementList::Run run{first + row.first, row.count};
      return add_named(list, part.named_, part.extent_.bytes, run, most);
    }
    for (Count i = 0; i < row.count; ++i) {
      if (!part.add_elements(first + row.first + i * part.extent_.bytes, list, most)) return false;
    }
    return true;
  });
}

std::optional<ElementList> element_list(Datatype type, std::size_t most) {
  ElementList list;
  if (!TypeLayout(type).add_elements(0, list, most)) return std::nullopt;
  return list;
}

}  // namespace ropewalk::mpi
