import type { FlameNode } from "./charts/flame-chart.ts";
import { kindOfPhase } from "./phases.ts";
import type { OperatorRow } from "./profile-report.ts";
import type { Kind } from "./tokens.ts";

/** Whether forward, backward and update are parts of the whole first, or parts of each operator last. */
export type FlameLayout = "apart" | "together";

interface Growing {
  readonly name: string;
  readonly children: Map<string, Growing>;
  kind: Kind | undefined;
  seconds: number;
}

const growing = (name: string): Growing => ({ name, children: new Map(), kind: undefined, seconds: 0 });

/** A scope of one phase has the phase's kind, one of several has none of its own. */
const settled = ({ name, kind, seconds, children }: Growing): FlameNode => {
  const parts = [...children.values()].map(settled);
  const [first] = parts;
  return {
    name,
    seconds,
    kind: kind ?? (first !== undefined && parts.every((part) => part.kind === first.kind) ? first.kind : "other"),
    children: parts,
  };
};

/** The step as scope → operator: `apart` has the phases above the scopes, `together` has them below the operators. */
export const flameOfOperators = (operators: readonly OperatorRow[], layout: FlameLayout): FlameNode => {
  const root = growing("step");
  for (const { operator, scope, phase, calls, seconds } of operators) {
    if (!(seconds.median > 0 && seconds.median < Infinity)) continue;
    const places = scope.split("/").filter((part) => part !== "");
    const leaf = calls === 1 ? operator : `${operator} × ${calls}`;
    const path = layout === "apart" ? [phase, ...places, leaf] : [...places, operator, phase];
    root.seconds += seconds.median;
    let at = root;
    for (const [depth, name] of path.entries()) {
      // An operator may have the name of a scope beside it: they are told apart by what they are.
      const key = `${depth >= path.length - (layout === "apart" ? 1 : 2) ? "operator" : "scope"} ${name}`;
      const child = at.children.get(key) ?? growing(name);
      at.children.set(key, child);
      child.seconds += seconds.median;
      at = child;
    }
    at.kind = kindOfPhase[phase];
  }
  return settled(root);
};
