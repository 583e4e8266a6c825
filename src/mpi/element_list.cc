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

}  // namespace

bool TypeLayout::add_elements(Count first, ElementList& list, std::size_t most) const {
  if (is_opaque()) return false;
  if (size_ == 0) return true;
  if (named_ != Datatype{}) {
    if (list.type == Datatype{}) list = {named_, extent_.bytes, {}};
    return list.type == named_ && add(list, {first, 1}, most);
  }
  return visit_rows([&](const Row& row) {
    const TypeLayout& part = parts_.at(row.part);
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
