
def CLASS : Pass<"FLAG", "::kpkg::tile::KernelOp"> {
  let summary = "drops additions of zero";
  let statistics = [Statistic<"dropped", "dropped-zeros", "Additions of zero that are gone">];
}
