import type { FlameNode } from "./charts/flame-chart.ts";
import { kindOfPhase, outsideNames } from "./phases.ts";
import type { ProfileReport } from "./profile-report.ts";
import type { Kind } from "./tokens.ts";

/**
 * Position of phases in the flame chart. `separate`: forward, backward and update at the top level. `combined`:
 * forward, backward and update below each operator.
 */
export type FlameLayout = "separate" | "combined";

/** A flame node under construction. */
interface MutableFlameNode {
  readonly name: string;
  readonly children: Map<string, MutableFlameNode>;
  kind: Kind | undefined;
  share: number;
}

const mutableNode = (name: string): MutableFlameNode => ({ name, children: new Map(), kind: undefined, share: 0 });

/**
 * Converts a node under construction to a finished node. A scope with a single phase has the kind of its phase; a scope
 * with several phases has the kind `other`.
 */
const toFlameNode = ({ name, kind, share, children }: MutableFlameNode, stepSeconds: number): FlameNode => {
  const parts = [...children.values()].map((child) => toFlameNode(child, stepSeconds));
  const [first] = parts;
  return {
    name,
    seconds: share * stepSeconds,
    kind: kind ?? (first !== undefined && parts.every((part) => part.kind === first.kind) ? first.kind : "other"),
    children: parts,
  };
};

/**
 * Builds the tree of scopes and operators of a step. `separate` has the phases above the scopes, `combined` has the
 * phases below the operators. Times outside operators are at the level of the scopes. Widths are shares of the total
 * time of all ranks, so that they add up to the step.
 */
export const flameOfOperators = (
  { operators, outside, step }: Pick<ProfileReport, "operators" | "outside" | "step">,
  layout: FlameLayout,
): FlameNode => {
  const root = mutableNode("step");
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
      const child = at.children.get(keyOf(name, depth)) ?? mutableNode(name);
      at.children.set(keyOf(name, depth), child);
      child.share += share;
      at = child;
    }
    at.kind = kind;
  };
  for (const { operator, scope, phase, calls, share } of operators) {
    const scopes = scope.split("/").filter((part) => part !== "");
    const leaf = calls === 1 ? operator : `${operator} × ${calls}`;
    const path = layout === "separate" ? [phase, ...scopes, leaf] : [...scopes, operator, phase];
    // An operator and a sibling scope may have the same name, so keys include the type of the node.
    const leaves = path.length - (layout === "separate" ? 1 : 2);
    add(path, (name, depth) => `${depth >= leaves ? "operator" : "scope"} ${name}`, kindOfPhase[phase], share);
  }
  for (const { kind, share } of outside)
    if (kind === "waiting") add([outsideNames[kind]], (name) => `outside ${name}`, "exposed", share);
    else add(["outside of kernels", outsideNames[kind]], (name) => `outside ${name}`, "other", share);
  return toFlameNode(root, step.median);
};
