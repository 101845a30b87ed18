// Makes the arguments of an op from the attributes of a node.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_ONNXRUNTIME_ARGUMENTS_H
#define KPKG_RUNTIME_ONNXRUNTIME_ARGUMENTS_H

#include "runtime/onnxruntime/OrtApi.h"

#include <kpkg/kpkg.hpp>

#include <forward_list>
#include <optional>
#include <string>
#include <vector>

namespace kpkg::ort {

/// The attributes of a node. A reader returns nothing if there is no attribute of the name, or one of another type.
class Attributes {
public:
  virtual ~Attributes() = default;
  virtual std::optional<int64_t> integer(const char *name) const = 0;
  virtual std::optional<float> real(const char *name) const = 0;
  virtual std::optional<std::string> text(const char *name) const = 0;
  /// Gives an empty list for an attribute that is no list.
  virtual std::optional<std::vector<int64_t>> integers(const char *name) const = 0;
};

/// The attributes of a node whose kernel is made.
class KernelAttributes final : public Attributes {
public:
  KernelAttributes(const Api &api, const KernelInfo *info) : api(api), info(info) {}
  std::optional<int64_t> integer(const char *name) const final;
  std::optional<float> real(const char *name) const final;
  std::optional<std::string> text(const char *name) const final;
  std::optional<std::vector<int64_t>> integers(const char *name) const final;

private:
  const Api &api;
  const KernelInfo *info;
};

/// The attributes of a node whose shapes are inferred.
class ShapeAttributes final : public Attributes {
public:
  ShapeAttributes(const Api &api, const ShapeContext *context) : api(api), context(context) {}
  std::optional<int64_t> integer(const char *name) const final;
  std::optional<float> real(const char *name) const final;
  std::optional<std::string> text(const char *name) const final;
  std::optional<std::vector<int64_t>> integers(const char *name) const final;

private:
  const Attribute *find(const char *name) const;
  const Api &api;
  const ShapeContext *context;
};

/// Arguments of an op. Those that are no tensors are complete; tensors have their defaults.
class Arguments {
public:
  /// Throws Failure for an attribute that is missing or does not fit the schema.
  Arguments(const Op &op, const Attributes &attributes);
  Arguments(const Arguments &) = delete;
  Arguments &operator=(const Arguments &) = delete;

  const std::vector<kpkg_value> &values() const { return all; }

private:
  kpkg_value read(const Op &op, const ArgumentInfo &argument, const Attributes &attributes);

  std::vector<kpkg_value> all;
  std::forward_list<std::vector<int64_t>> lists; ///< the memory of entries
  std::forward_list<std::string> strings;
};

} // namespace kpkg::ort

#endif // KPKG_RUNTIME_ONNXRUNTIME_ARGUMENTS_H
