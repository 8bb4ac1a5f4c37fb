// SPDX-License-Identifier: Apache-2.0
// libwelkin_python.so: classes that torch itself binds to Python (torch.classes.welkin), so that this library depends on no
// interpreter and no version of it. torch releases the GIL while a method runs. python/welkin/ is the interface for
// users.
#include <torch/custom_class.h>

#include "apps/python/answer.h"
#include "apps/python/native_dataset.h"
#include "apps/python/native_model.h"
#include "apps/python/native_training.h"
#include "version.h"

namespace welkin::apps::python {
namespace {

template <typename Class>
using Pointer = c10::intrusive_ptr<Class>;

// Makes a method for torch's binding; answers() converts its exceptions.
template <auto Method, typename Class, typename... Arguments>
auto method(const Pointer<Class>& self, Arguments... arguments) {
  return answered([&] { return ((*self).*Method)(arguments...); });
}

template <typename Class>
Pointer<Class> made(const Words& words, const Words& plugins) {
  return answered([&] { return c10::make_intrusive<Class>(words, plugins); });
}

using Samples = std::tuple<at::Tensor, at::Tensor>;

void bind_dataset(torch::Library& library) {
  library.class_<NativeDataset>("Dataset")
      .def("size", method<&NativeDataset::size, NativeDataset>)
      .def("spec", method<&NativeDataset::spec, NativeDataset>)
      .def("warnings", method<&NativeDataset::warnings, NativeDataset>)
      .def("location", method<&NativeDataset::location, NativeDataset, int64_t>)
      .def("read", method<&NativeDataset::read, NativeDataset, std::vector<int64_t>, bool>);
}

void bind_model(torch::Library& library) {
  library.class_<NativeModel>("Model")
      .def(torch::init(&made<NativeModel>))
      .def("forward", method<&NativeModel::forward, NativeModel, at::Tensor>)
      .def("facts", method<&NativeModel::facts, NativeModel>)
      .def("tensor_names", method<&NativeModel::tensor_names, NativeModel>)
      .def("tensors", method<&NativeModel::tensors, NativeModel>)
      .def("scores", method<&NativeModel::scores, NativeModel>)
      .def("dataset", method<&NativeModel::dataset, NativeModel, std::string>);
}

void bind_training(torch::Library& library) {
  library.class_<NativeTraining>("Training")
      .def(torch::init(&made<NativeTraining>))
      .def("config", method<&NativeTraining::config, NativeTraining>)
      .def("run", method<&NativeTraining::run, NativeTraining>)
      .def("stop", method<&NativeTraining::stop, NativeTraining>)
      .def("take", method<&NativeTraining::take, NativeTraining>);
}

}  // namespace
}  // namespace welkin::apps::python

TORCH_LIBRARY_FRAGMENT(welkin, library) {
  welkin::apps::python::bind_dataset(library);
  welkin::apps::python::bind_model(library);
  welkin::apps::python::bind_training(library);
  library.def("version", [] { return std::string(welkin::kVersion); });
}
