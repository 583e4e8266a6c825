#include "_key_value_store.hpp"

#include <string>
#include <utility>

#include "ropewalk/error.hpp"

namespace nb = nanobind;

namespace ropewalk::python {
namespace {

class PythonStore final : public KeyValueStore {
 public:
  explicit PythonStore(nb::object store) : store_(std::move(store)) {}
  PythonStore(const PythonStore&) = delete;
  PythonStore& operator=(const PythonStore&) = delete;
  ~PythonStore() override {
    const nb::gil_scoped_acquire held;
    store_.reset();
  }
  void set(const std::string& key, const std::string& value) override {
    call([&] { store_.attr("set")(key.c_str(), nb::bytes(value.data(), value.size())); });
  }
  std::string get(const std::string& key) override {
    std::string value;
    call([&] {
      const nb::bytes found(store_.attr("get")(key.c_str()));
      value.assign(found.c_str(), found.size());
    });
    return value;
  }
  // Some stores cannot delete a key, so this does not fail where the store refuses.
  void remove(const std::string& key) override {
    try {
      call([&] { store_.attr("delete_key")(key.c_str()); });
    } catch (const Error&) {  // the key stays until the store ends
    }
  }

 private:
  // Turns a Python exception into an Error, because a Python exception may exist only while the GIL
  // is held.
  template <class Call>
  static void call(Call call) {
    const nb::gil_scoped_acquire held;
    try {
      call();
    } catch (const nb::python_error& error) {
      throw Error(ErrorCode::mpi, std::string("store: ") + nb::str(error.value()).c_str());
    }
  }

  nb::object store_;
};

}  // namespace

std::shared_ptr<KeyValueStore> key_value_store(nb::object store) {
  return std::make_shared<PythonStore>(std::move(store));
}

}  // namespace ropewalk::python
