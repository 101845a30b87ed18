// Finds the places of a kernel's accesses to memory by symbolic execution.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A walk in the order of execution keeps a linear form for each Int variable. Numbers of equal operands are one
// unknown, so that two sites that compute `block_idx.x * 64` agree. A variable that a loop assigns is a new unknown in
// each iteration. If the loop only adds a fixed step, the unknown has that step.
#include "compiler/check/Places.h"

#include <fmt/format.h>
#include <optional>
#include <unordered_map>

namespace kpkg::compiler {

using hir::Kind;

Linear sum(const Linear &a, const Linear &b, int64_t factor) {
  // Wraps, as sums of Ints in kernels do.
  auto added = [factor](int64_t to, int64_t number) {
    return int64_t(uint64_t(to) + uint64_t(factor) * uint64_t(number));
  };
  Linear result = a;
  result.constant = added(a.constant, b.constant);
  for (auto [unknown, times] : b.factors)
    if ((result.factors[unknown] = added(result.factors[unknown], times)) == 0)
      result.factors.erase(unknown);
  return result;
}

Effect effectOf(Kind kind) {
  switch (kind) {
  case Kind::Store:
  case Kind::Scatter:
    return Effect::Write;
  case Kind::AddStore:
#define HIR_ATOMIC(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    return Effect::Update;
  default:
    return Effect::Read;
  }
}

namespace {

/// Stands for scratch memory among the arguments. Its reads follow its writes, so that they are not compared.
constexpr unsigned kScratch = ~0u;

/// A part of an argument.
struct View {
  unsigned argument = 0;
  std::string key;                      ///< equal for equal parts
  std::vector<unsigned> dims;           ///< which dimensions of the argument are left
  std::vector<Linear> begins;           ///< where the part begins, for each dimension of the argument
  std::vector<std::vector<Span>> spans; ///< as in Access
};

std::string keyOf(const Linear &number) {
  std::string text = std::to_string(number.constant);
  for (auto [unknown, factor] : number.factors)
    text += fmt::format("+{}n{}", factor, unknown);
  return text;
}

/// Adds the variables that a block assigns.
void assignedIn(const hir::Block &block, std::set<const hir::Local *> &locals) {
  for (const hir::Node *node : block.nodes) {
    if (node->kind == Kind::Set || node->kind == Kind::For)
      locals.insert(node->local);
    for (const std::unique_ptr<hir::Block> &region : node->regions)
      assignedIn(*region, locals);
  }
}

class Walk {
public:
  explicit Walk(const hir::Function &kernel) : kernel(kernel) {
    std::set<unsigned> read;
    for (const hir::Node &node : kernel.nodes) {
      if (!isAccess(node.kind))
        continue;
      Effect effect = effectOf(node.kind);
      if (effect != Effect::Write)
        read.insert(rootOf(node.operands[0]));
      if (effect != Effect::Read)
        written.insert(rootOf(node.operands[0]));
    }
    for (unsigned argument : written)
      if (argument != kScratch && read.count(argument))
        compared.insert(argument);
  }

  Places run() {
    if (!compared.empty())
      block(kernel.body);
    return std::move(places);
  }

private:
  const hir::Function &kernel;
  Places places;
  std::set<unsigned> written, compared; ///< arguments
  std::unordered_map<const hir::Node *, Linear> numbers;
  std::unordered_map<const hir::Node *, View> views;
  std::map<const hir::Local *, Linear> variables;
  std::map<std::string, unsigned> known;
  std::vector<unsigned> loops;
  std::map<const hir::Node *, size_t> branches;
  unsigned loopCount = 0;

  static bool isAccess(Kind kind) {
    switch (kind) {
    case Kind::Element:
#define HIR_ACCESS(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      return true;
    default:
      return false;
    }
  }

  static unsigned rootOf(const hir::Node *view) {
    while (view->kind != Kind::Parameter && view->kind != Kind::Scratch)
      view = view->operands[0];
    return view->kind == Kind::Scratch ? kScratch : unsigned(view->ints[0]);
  }

  Linear unknown(Unknown of) {
    places.unknowns.push_back(std::move(of));
    return {{{unsigned(places.unknowns.size() - 1), 1}}, 0};
  }
  /// Returns a number of which nothing is known here.
  Linear unknownHere() { return unknown({{loops.begin(), loops.end()}}); }
  static Linear plus(const Linear &a, const Linear &b) { return sum(a, b, 1); }
  static Linear constant(int64_t value) { return {{}, value}; }

  // Numbers

  Linear numberOf(const hir::Node *node) {
    auto found = numbers.find(node);
    return found == numbers.end() ? numbers[node] = unknownHere() : found->second;
  }

  /// Returns the unknown for equal operands. It differs where these do.
  Linear equalNumber(const std::string &key, const std::vector<Linear> &operands) {
    std::string all = key;
    Unknown number;
    for (const Linear &operand : operands) {
      all += "," + keyOf(operand);
      for (auto [unknown, factor] : operand.factors)
        number.loops.insert(places.unknowns[unknown].loops.begin(), places.unknowns[unknown].loops.end());
    }
    auto [found, isNew] = known.try_emplace(all, unsigned(places.unknowns.size()));
    if (isNew)
      places.unknowns.push_back(std::move(number));
    return {{{found->second, 1}}, 0};
  }

  Linear evaluate(const hir::Node &node) {
    auto operand = [&](size_t i) { return numberOf(node.operands[i]); };
    bool isInt = node.type->isScalar(DType::Int);
    switch (node.kind) {
    case Kind::Constant:
      if (node.value.isInt())
        return constant(node.value.asInt());
      return equalNumber("constant " + node.value.str() + node.type->str(), {});
    case Kind::Get: {
      auto found = variables.find(node.local);
      return found == variables.end() ? variables[node.local] = unknownHere() : found->second;
    }
    case Kind::Add:
    case Kind::Sub:
      if (isInt)
        return sum(operand(0), operand(1), node.kind == Kind::Add ? 1 : -1);
      break;
    case Kind::Negate:
      if (isInt)
        return sum({}, operand(0), -1);
      break;
    case Kind::Mul:
      for (size_t i : {0, 1})
        if (isInt && operand(i).isConstant())
          return sum({}, operand(1 - i), operand(i).constant);
      break;
    case Kind::Element: {
      const View &view = views.at(node.operands[0]);
      if (written.count(view.argument))
        return unknownHere();
      return equalNumber("element " + view.key, numbersFrom(node, 1));
    }
    case Kind::ViewShape:
    case Kind::ViewStride:
      return equalNumber(fmt::format("{} {} {}", int(node.kind), views.at(node.operands[0]).key, node.ints[0]), {});
    default:
      break;
    }
    return isFunction(node) ? equalNumber(functionKey(node), numbersFrom(node, 0)) : unknownHere();
  }

  /// Returns whether a scalar follows from the node's scalar operands alone.
  static bool isFunction(const hir::Node &node) {
    for (const hir::Node *operand : node.operands)
      if (!operand->type->isScalar())
        return false;
    switch (node.kind) {
#define HIR(Name)
#define HIR_ELEMENTWISE(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    case Kind::Parameter:
    case Kind::BlockIndex:
    case Kind::GridSize:
      return true;
    default:
      return false;
    }
  }
  static std::string functionKey(const hir::Node &node) {
    std::string key = fmt::format("{} {}", int(node.kind), node.type->str());
    for (int64_t number : node.ints)
      key += " " + std::to_string(number);
    return key;
  }

  std::vector<Linear> numbersFrom(const hir::Node &node, size_t first) {
    std::vector<Linear> result;
    for (size_t i = first; i < node.operands.size(); ++i)
      result.push_back(numberOf(node.operands[i]));
    return result;
  }

  /// Returns bounds of the numbers in a tile: of sums and multiples of `iota` and of scalars.
  std::optional<Span> boundsOf(const hir::Node &tile) {
    auto operand = [&](size_t i) { return boundsOf(*tile.operands[i]); };
    switch (tile.kind) {
    case Kind::Iota:
      return Span{constant(0), constant(tile.type->size())};
    case Kind::Splat:
      return Span{numberOf(tile.operands[0]), plus(numberOf(tile.operands[0]), constant(1))};
    case Kind::Constant:
      return tile.value.isInt() ? std::optional(Span{constant(tile.value.asInt()), constant(tile.value.asInt() + 1)})
                                : std::nullopt;
    case Kind::Broadcast:
    case Kind::Reshape:
    case Kind::Permute:
      return operand(0);
    case Kind::Add:
      if (auto a = operand(0), b = operand(1); a && b)
        return Span{plus(a->low, b->low), plus(plus(a->high, b->high), constant(-1))};
      return std::nullopt;
    case Kind::Mul:
      if (auto a = operand(0), b = operand(1); a && b)
        for (const auto &[times, of] : {std::pair(*b, *a), std::pair(*a, *b)})
          if (int64_t factor = times.low.constant;
              times.low.isConstant() && times.high == constant(factor + 1) && factor >= 0 && factor < INT32_MAX)
            return Span{sum({}, of.low, factor), sum(constant(1 - factor), of.high, factor)};
      return std::nullopt;
    default:
      return std::nullopt;
    }
  }

  // Places

  View viewOf(const hir::Node &node) {
    View view;
    if (node.kind == Kind::Parameter || node.kind == Kind::Scratch) {
      view.argument = rootOf(&node);
      view.key = "argument " + std::to_string(view.argument);
      for (int dim = 0; dim < node.type->rank; ++dim)
        view.dims.push_back(unsigned(dim));
      view.begins.resize(view.dims.size());
      view.spans.resize(view.dims.size());
      return view;
    }
    view = views.at(node.operands[0]);
    std::vector<Linear> given = numbersFrom(node, 1);
    view.key += node.kind == Kind::DropDims ? " drop" : " slice";
    for (int64_t number : node.ints)
      view.key += " " + std::to_string(number);
    for (const Linear &number : given)
      view.key += "," + keyOf(number);
    if (node.kind == Kind::DropDims) {
      for (size_t i = node.ints.size(); i-- > 0;) {
        unsigned dim = view.dims[size_t(node.ints[i])];
        Linear at = plus(view.begins[dim], given[i]);
        view.spans[dim].push_back({at, plus(at, constant(1))});
        view.dims.erase(view.dims.begin() + node.ints[i]);
      }
      return view;
    }
    unsigned dim = view.dims[size_t(node.ints[0])];
    view.spans[dim].push_back({plus(view.begins[dim], given[0]), plus(view.begins[dim], given[1])});
    // A negative begin is clipped to 0.
    Linear begin = given[0].isConstant() && given[0].constant >= 0 ? given[0] : equalNumber("clipped", {given[0]});
    view.begins[dim] = plus(view.begins[dim], begin);
    return view;
  }

  void access(const hir::Node &node) {
    const hir::Node *place = node.operands[0];
    bool isWindow = place->kind == Kind::Window;
    const View &view = views.at(isWindow ? place->operands[0] : place);
    if (!compared.count(view.argument))
      return;
    Access found{&node, view.argument, view.spans, loops, branches};
    auto add = [&](size_t dim, const Linear &offset, int64_t size) {
      Linear low = plus(view.begins[view.dims[dim]], offset);
      found.spans[view.dims[dim]].push_back({low, plus(low, constant(size))});
    };
    for (size_t dim = 0; dim < view.dims.size(); ++dim)
      if (isWindow)
        add(dim, numberOf(place->operands[1 + dim]), place->type->shape[dim]);
      else if (node.kind == Kind::Element)
        add(dim, numberOf(node.operands[1 + dim]), 1);
      else if (auto bounds = boundsOf(*node.operands[1 + dim])) {
        const Linear &begin = view.begins[view.dims[dim]];
        found.spans[view.dims[dim]].push_back({plus(begin, bounds->low), plus(begin, bounds->high)});
      }
    places.accesses.push_back(std::move(found));
  }

  // Control flow

  void block(const hir::Block &of) {
    for (const hir::Node *node : of.nodes)
      visit(*node);
  }

  void visit(const hir::Node &node) {
    switch (node.kind) {
    case Kind::Set:
      // Without an operand it sets a flag.
      variables[node.local] = node.operands.empty() ? unknownHere() : numberOf(node.operands[0]);
      return;
    case Kind::If:
      branch(node);
      return;
    case Kind::And:
    case Kind::Or:
      block(*node.regions[0]);
      return;
    case Kind::For:
    case Kind::While:
    case Kind::ForTiles:
      loop(node);
      return;
    case Kind::Scratch:
    case Kind::DropDims:
    case Kind::SliceView:
      views[&node] = viewOf(node);
      return;
#define HIR_ACCESS(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      access(node);
      return;
    case Kind::Element:
      access(node);
      break;
    case Kind::Parameter:
      if (node.type->kind == TypeKind::View) {
        views[&node] = viewOf(node);
        return;
      }
      break;
    default:
      break;
    }
    if (node.type->isScalar())
      numbers[&node] = evaluate(node);
  }

  void forget(const std::set<const hir::Local *> &locals) {
    for (const hir::Local *local : locals)
      variables[local] = unknownHere();
  }

  void branch(const hir::Node &node) {
    std::map<const hir::Local *, Linear> before = variables;
    std::set<const hir::Local *> assigned;
    for (size_t i = 0; i < node.regions.size(); ++i) {
      variables = before;
      branches[&node] = i;
      block(*node.regions[i]);
      assignedIn(*node.regions[i], assigned);
    }
    branches.erase(&node);
    forget(assigned);
  }

  /// Returns the step of a variable that each iteration increases once, by a constant or by the size of the grid. Else
  /// returns 0.
  int64_t stepOf(const hir::Local *local, const hir::Block &body) {
    const hir::Node *update = nullptr;
    std::set<const hir::Local *> nested;
    for (const hir::Node *node : body.nodes) {
      if (node->kind == Kind::Set && node->local == local) {
        if (update || node->operands.empty())
          return 0;
        update = node->operands[0];
      }
      for (const std::unique_ptr<hir::Block> &region : node->regions)
        assignedIn(*region, nested);
    }
    if (!update || nested.count(local) || update->kind != Kind::Add || update->operands[0]->kind != Kind::Get ||
        update->operands[0]->local != local)
      return 0;
    return stepOf(update->operands[1]);
  }
  static int64_t stepOf(const hir::Node *step) {
    if (step->kind == Kind::GridSize)
      return 1;
    return step->kind == Kind::Constant && step->value.isInt() ? step->value.asInt() : 0;
  }

  void loop(const hir::Node &node) {
    std::set<const hir::Local *> assigned;
    for (const std::unique_ptr<hir::Block> &region : node.regions)
      assignedIn(*region, assigned);
    loops.push_back(++loopCount);
    for (const hir::Local *local : assigned)
      variables[local] = unknown({{loops.back()}, stepOf(local, *node.regions.back())});
    if (node.kind == Kind::For)
      variables[node.local] = unknown({{loops.back()}, stepOf(node.operands[2])});
    for (const hir::Local *coordinate : node.locals)
      variables[coordinate] = unknown({{loops.back()}, 1, /*isCoordinate=*/true});
    for (const std::unique_ptr<hir::Block> &region : node.regions)
      block(*region);
    loops.pop_back();
    forget(assigned);
  }
};

} // namespace

Places placesOf(const hir::Function &kernel) { return Walk(kernel).run(); }

} // namespace kpkg::compiler
