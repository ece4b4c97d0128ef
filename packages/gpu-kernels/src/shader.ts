import type { Pass } from "./kernel.ts";
import { wgsl } from "./wgsl.ts";

/** A variable of a shader. Bindings of a pass with the same memory share one variable. */
export interface ShaderVariable {
  readonly name: string;
  readonly type: string;
  readonly writable: boolean;
}

export interface ShaderParts {
  readonly pass: Pass;
  readonly variables: readonly ShaderVariable[];
  /**
   * Renamed variables, from the name in the pass to the name in the shader. Bindings of the same memory share one
   * variable: with y → x, the WGSL of `y` reads and writes `x`.
   */
  readonly renamed: ReadonlyMap<string, string>;
  /** Whether the grid has more workgroups than the pass needs, so that the shader must skip the excess workgroups. */
  readonly guarded: boolean;
  /** Whether the pass runs in slices. The uniform `slice.first` is the first workgroup of a slice. */
  readonly sliced: boolean;
}

const enables = {
  f16: "f16",
  subgroups: "subgroups",
  "subgroup-matrix": "chromium_experimental_subgroup_matrix",
} as const;

/**
 * Maximum number of workgroups along one dimension of a grid. This is WebGPU's default limit, which every adapter
 * supports.
 */
const maxAlongDimension = 65_535;

/** Returns the dimensions of a grid of at least `groups` workgroups. */
export const gridOf = (groups: number): readonly [number, number, number] => {
  if (groups <= maxAlongDimension) return [groups, 1, 1];
  const rows = Math.ceil(groups / maxAlongDimension);
  if (rows <= maxAlongDimension) return [Math.ceil(groups / rows), rows, 1];
  return [maxAlongDimension, maxAlongDimension, Math.ceil(groups / maxAlongDimension ** 2)];
};

export const gridGroups = ([x, y, z]: readonly [number, number, number]): number => x * y * z;

/** Renames variables in WGSL. Only complete words are renamed, and not members after a dot. */
const rename = (code: string, renamed: ReadonlyMap<string, string>): string => {
  let text = code;
  for (const [from, to] of renamed) text = text.replace(new RegExp(`(?<![.\\w])${from}(?!\\w)`, "g"), to);
  return text;
};

/**
 * Returns the names of the uniforms that a pass has, in the order of their bind group layout: sizes, then the slice.
 */
export const uniformsOf = ({ pass, sliced }: Pick<ShaderParts, "pass" | "sliced">): readonly ("sizes" | "slice")[] => [
  ...(pass.sizes === undefined ? [] : (["sizes"] as const)),
  ...(sliced ? (["slice"] as const) : []),
];

/** Returns the complete WGSL module of a pass, with the entry point `entry`. */
export const shaderModule = (parts: ShaderParts): string => {
  const { pass, variables, renamed, guarded, sliced } = parts;
  const features = pass.features ?? [];
  const subgroups = features.includes("subgroups") || features.includes("subgroup-matrix");
  const head = [
    ...features.map((feature) => `enable ${enables[feature]};`),
    // In our kernels, all invocations of a subgroup run out of work at the same time. The uniformity analysis cannot
    // prove this through function calls.
    ...(features.includes("subgroups") ? ["diagnostic(off, subgroup_uniformity);"] : []),
    ...(features.includes("subgroup-matrix") ? ["diagnostic(off, chromium.subgroup_matrix_uniformity);"] : []),
    ...variables.map(
      ({ name, type, writable }, slot) =>
        `@group(0) @binding(${slot}) var<storage, ${writable ? "read_write" : "read"}> ${name}: ${type};`,
    ),
  ];
  const fields = Object.keys(pass.sizes ?? {}).map((field) => `${field}: u32`);
  const uniforms = uniformsOf(parts).map((name, i) => {
    const type = name === "sizes" ? "Sizes" : "Slice";
    return `@group(0) @binding(${variables.length + i}) var<uniform> ${name}: ${type};`;
  });
  const subgroupParameters = subgroups
    ? ", @builtin(subgroup_invocation_id) subgroup_lane: u32, @builtin(subgroup_size) subgroup_size: u32"
    : "";
  return `${wgsl`
    ${head}
    ${pass.sizes === undefined ? "" : `struct Sizes { ${fields.join(", ")} }`}
    ${sliced ? "struct Slice { first: u32, groups: u32 }" : ""}
    ${uniforms}
    ${rename(pass.code, renamed)}
    @compute @workgroup_size(${pass.workgroupSize})
    fn entry(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32${subgroupParameters}) {
      let local_group = id.x + grid.x * (id.y + grid.y * id.z);
      ${guarded ? `if (local_group >= ${sliced ? "slice.groups" : `${pass.groups}u`}) { return; }` : ""}
      main(local_group${sliced ? " + slice.first" : ""}, lane${subgroups ? ", subgroup_lane, subgroup_size" : ""});
    }
  `}\n`;
};
