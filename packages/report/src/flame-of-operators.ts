import type { FlameNode } from "./charts/flame-chart.ts";
import { kindOfPhase, outsideNames } from "./phases.ts";
import type { ProfileReport } from "./profile-report.ts";
import type { Kind } from "./tokens.ts";

/** Whether forward, backward and update are parts of the whole first, or parts of each operator last. */
export type FlameLayout = "apart" | "together";

interface Growing {
  readonly name: string;
  readonly children: Map<string, Growing>;
  kind: Kind | undefined;
  share: number;
}

const growing = (name: string): Growing => ({ name, children: new Map(), kind: undefined, share: 0 });

/** A scope of one phase has the phase's kind, one of several has none of its own. */
const settled = ({ name, kind, share, children }: Growing, stepSeconds: number): FlameNode => {
  const parts = [...children.values()].map((child) => settled(child, stepSeconds));
  const [first] = parts;
  return {
    name,
    seconds: share * stepSeconds,
    kind: kind ?? (first !== undefined && parts.every((part) => part.kind === first.kind) ? first.kind : "other"),
    children: parts,
  };
};

/**
 * The step as scope → operator: `apart` has the phases above the scopes, `together` has them below the operators. What
 * lies outside of operators stands beside them. By shares of all ranks' time, so that the whole is the step.
 */
export const flameOfOperators = (
  { operators, outside, step }: Pick<ProfileReport, "operators" | "outside" | "step">,
  layout: FlameLayout,
): FlameNode => {
  const root = growing("step");
  const add = (
    path: readonly string[],
    keyOf: (name: string, depth: number) => string,
    kind: Kind,
    share: number,
  ): void => {
    if (!(share > 0)) return;
    root.share += share;
    let at = root;
    for (const [depth, name] of path.entries()) {
      const child = at.children.get(keyOf(name, depth)) ?? growing(name);
      at.children.set(keyOf(name, depth), child);
      child.share += share;
      at = child;
    }
    at.kind = kind;
  };
  for (const { operator, scope, phase, calls, share } of operators) {
    const places = scope.split("/").filter((part) => part !== "");
    const leaf = calls === 1 ? operator : `${operator} × ${calls}`;
    const path = layout === "apart" ? [phase, ...places, leaf] : [...places, operator, phase];
    // An operator may have the name of a scope beside it: they are told apart by what they are.
    const leaves = path.length - (layout === "apart" ? 1 : 2);
    add(path, (name, depth) => `${depth >= leaves ? "operator" : "scope"} ${name}`, kindOfPhase[phase], share);
  }
  for (const { kind, share } of outside)
    if (kind === "waiting") add([outsideNames[kind]], (name) => `outside ${name}`, "exposed", share);
    else add(["outside of kernels", outsideNames[kind]], (name) => `outside ${name}`, "other", share);
  return settled(root, step.median);
};
