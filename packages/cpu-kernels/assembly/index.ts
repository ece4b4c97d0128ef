// One line per family; `src/ops/` binds these exports.
export * from "./fill";
