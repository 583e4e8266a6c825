#include "without_mpi/interfaces.hpp"

#include <algorithm>
#include <iterator>

#include "ropewalk/error.hpp"
#include "settings/text.hpp"
#include "settings/value.hpp"

namespace ropewalk::without_mpi {
namespace {

std::string names_of(std::span<const os::Interface> interfaces) {
  std::string names;
  std::string_view last;
  for (const os::Interface& one : interfaces) {
    if (one.name == last) continue;  // an interface with several addresses
    names += (names.empty() ? "" : ", ") + one.name;
    last = one.name;
  }
  return names.empty() ? "none" : names;
}

void add_named(std::vector<os::Address>& out, std::span<const os::Interface> interfaces,
               std::string_view name) {
  const std::size_t before = out.size();
  for (const os::Interface& one : interfaces) {
    if (one.name == name) out.push_back(one.address);
  }
  if (out.size() > before) return;
  throw Error(ErrorCode::argument, "ROPEWALK_INTERFACE: '" + std::string(name) +
                                       "' is no interface of this host that is up and has an "
                                       "address, expected some of: " +
                                       names_of(interfaces));
}

}  // namespace

std::vector<os::Address> addresses_of(std::span<const os::Interface> interfaces,
                                      std::string_view wish) {
  std::vector<os::Address> out;
  if (!wish.empty()) {
    settings::each_word(wish, [&](std::string_view name) {
      add_named(out, interfaces, name);
      return true;
    });
    return out;
  }
  std::vector<os::Interface> offered;
  std::ranges::copy_if(interfaces, std::back_inserter(offered),
                       [](const os::Interface& one) { return !one.loopback; });
  std::ranges::stable_sort(offered, std::greater{}, &os::Interface::megabits_per_s);
  for (const os::Interface& one : offered) out.push_back(one.address);
  return out;
}

std::vector<os::Address> addresses_to_offer() {
  const settings::Value wish = settings::get(settings::Id::interface);
  return addresses_of(os::interfaces(), wish.given ? std::string_view(wish.text) : "");
}

}  // namespace ropewalk::without_mpi
